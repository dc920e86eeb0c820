//! Artifacts of a job beside its report: code, logs and profiler files.
//!
//! `collected` collects what cannot be produced again while a job runs. At the job's end these
//! artifacts go to the store (`stored`), within a budget of bytes. `serve` returns artifacts, and
//! produces the rest on demand. `code` links the source of a kernel with its instructions.

mod code;
mod collected;
mod serve;
mod stored;
mod types;

pub(super) use collected::{CollectedArtifacts, Snapshot};
pub(super) use serve::Artifacts;
pub(super) use stored::store_artifacts;
pub use types::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};

use super::submission::{Caller, ServiceFuture};
use warpgauge_job_views::KernelCodeView;

/// Returns the artifacts of jobs. A caller sees only those that belong to its jobs.
pub trait ArtifactService: Send + Sync {
    /// Lists the artifacts of a job.
    fn artifacts<'a>(
        &'a self,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactList>;

    /// Returns one artifact of a kernel: of the named one, else of the job's own. In a comparison
    /// the default is the first candidate.
    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactContent>;

    /// Returns the source of a kernel with the instructions made from each line. The kernel is
    /// chosen as by [`ArtifactService::artifact`].
    fn code<'a>(
        &'a self,
        job_id: &'a str,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, KernelCodeView>;
}

/// The jobs that run in this process.
pub(super) trait RunningJobs: Send + Sync {
    /// Returns the artifacts of a running job so far, or `None` for a job that does not run here.
    fn artifacts(&self, job_id: &str) -> Option<Snapshot>;
}
