//! What a job leaves beside its report: code, logs, and the files of profilers.
//!
//! `collected` collects what cannot be made again while a job runs; at its end it goes to the store
//! (`kept`), which has a budget for it. `serve` hands it out, and makes the rest on demand.

mod collected;
mod kept;
mod serve;
mod types;

pub(super) use collected::CollectedArtifacts;
pub use types::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};
