//! What a job leaves beside its report: code, logs, and the files of profilers.
//!
//! A `Shelf` keeps what cannot be made again, within a budget of bytes; `serve` hands it out, and
//! makes the rest on demand.

mod serve;
mod shelf;
mod types;

pub(super) use shelf::{KeptKernel, Shelf};
pub use types::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};
