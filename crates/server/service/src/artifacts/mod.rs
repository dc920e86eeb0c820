//! Artifacts of a job: code, logs and profiler files.
//!
//! `collected` keeps artifacts that cannot be produced again, while a job runs. At the job's end
//! they move to the store (`stored`), within a limit on their total size. `serve` returns
//! artifacts, and produces the others on demand. `code` links the source of a kernel with its
//! instructions, and `counted` adds their counters.

mod code;
mod collected;
mod counted;
mod serve;
mod stored;
mod types;

pub(super) use collected::{CollectedArtifacts, Snapshot};
pub(super) use serve::Artifacts;
pub(super) use stored::store_artifacts;
pub use types::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};

use super::submission::{Caller, ServiceFuture};
use warpgauge_job_views::KernelCodeView;

/// Returns the artifacts of jobs. A caller sees only those of its jobs.
pub trait ArtifactService: Send + Sync {
    /// Lists the artifacts of a job.
    fn artifacts<'a>(
        &'a self,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactList>;

    /// Returns one artifact of the named kernel. The default is the job's kernel; in a comparison,
    /// the first candidate.
    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactContent>;

    /// Returns the source of a kernel, with the instructions that were compiled from each line. The
    /// default kernel is that of [`ArtifactService::artifact`].
    fn code<'a>(
        &'a self,
        job_id: &'a str,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, KernelCodeView>;
}

/// The jobs that run in this process.
pub(super) trait RunningJobs: Send + Sync {
    /// Returns the artifacts that a running job has produced so far. Returns `None` if the job does
    /// not run in this process.
    fn artifacts(&self, job_id: &str) -> Option<Snapshot>;
}
