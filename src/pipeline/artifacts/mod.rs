//! What a job leaves beside its report: code, logs, and the files of profilers.
//!
//! `leavings` collects what cannot be made again while a job runs; at its end it goes to the store
//! (`kept`), which has a budget for it. `serve` hands it out, and makes the rest on demand.

mod kept;
mod leavings;
mod serve;
mod types;

pub(super) use leavings::{KeptKernel, Leavings};
pub use types::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};
