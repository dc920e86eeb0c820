//! What a job leaves beside its report: code, logs, and the files of profilers.
//!
//! `collected` collects what cannot be made again while a job runs; at its end it goes to the store
//! (`stored`), which has a budget for it. `serve` hands it out, and makes the rest on demand.

mod collected;
mod serve;
mod stored;
mod types;

pub(super) use collected::{CollectedArtifacts, Snapshot};
pub(super) use serve::Artifacts;
pub(super) use stored::store_artifacts;
pub use types::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};

use super::submission::{Caller, ServiceFuture};

/// Artifacts of jobs. A caller sees those of its own jobs.
pub trait ArtifactService: Send + Sync {
    /// What a job left beside its report.
    fn artifacts<'a>(
        &'a self,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactList>;

    /// One of them: of the job's kernel or, in a comparison, of the one that is named.
    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactContent>;
}

/// The jobs that run in this process.
pub(super) trait RunningJobs: Send + Sync {
    /// The artifacts of a running job so far; `None` for a job that does not run here.
    fn artifacts(&self, job_id: &str) -> Option<Snapshot>;
}
