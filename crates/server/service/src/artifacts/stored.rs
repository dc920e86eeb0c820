//! Looks up artifacts of jobs in this process and in the store. The main type is [`Source`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::collected::{Snapshot, pack, unpack};
use super::{ArtifactKind, RunningJobs};
use crate::error::{self, ServiceError, refused};
use warpgauge_executor::KeptKernel;
use warpgauge_model::{JobKind, JobState};
use warpgauge_store::{JobRow, Store};

/// Name of the stored artifact that contains a job's kernels.
const KERNELS: &str = "kernels";

const TAKEN_DOWN: &str = "artifacts of newer jobs needed the space; raise \
                          storage.artifacts_max_bytes, or evaluate again";
const NEVER_KEPT: &str = "PyTorch compiled the kernels itself, or the server could not store it when the \
                          job ended, or was killed at that time; for a kernel of another type, evaluate again";

/// Result of looking up an artifact.
pub(super) enum Lookup<T> {
    Here(T),
    /// The artifact existed and was removed for this reason.
    Gone(&'static str),
    /// The job produced no such artifact.
    Nothing,
}

/// Writes the artifacts of an ended job to the store. A failure is logged and does not affect the
/// job.
pub(crate) async fn store_artifacts(store: &Store, job_id: &str, artifacts: Snapshot) {
    let Snapshot { kernels, files } = artifacts;
    let mut things = Vec::new();
    if !kernels.is_empty() {
        match pack(&kernels) {
            Ok(bytes) => things.push((KERNELS, bytes)),
            Err(error) => tracing::warn!(job = job_id, error, "kernels cannot be written"),
        }
    }
    for (kind, (path, _)) in files {
        match tokio::fs::read(&path).await {
            Ok(bytes) => things.push((kind.name(), bytes)),
            Err(error) => tracing::warn!(job = job_id, %error, "a tool's file is lost"),
        }
    }
    for (name, bytes) in things {
        if let Err(error) = store.artifacts().put(job_id, name, name, bytes).await {
            let error = error::chain(&error);
            tracing::warn!(job = job_id, name, error, "an artifact cannot be kept");
        }
    }
}

/// Artifacts of running jobs, and artifacts in the store.
pub(super) struct Source {
    running: Arc<dyn RunningJobs>,
    store: Store,
}

impl Source {
    pub(super) fn new(running: Arc<dyn RunningJobs>, store: Store) -> Self {
        Self { running, store }
    }

    /// Returns the job's kernels.
    pub(super) async fn kernels(
        &self,
        job: &JobRow,
    ) -> Result<Lookup<Vec<Arc<KeptKernel>>>, ServiceError> {
        if let Some(Snapshot { kernels, .. }) = self.running.artifacts(&job.id)
            && !kernels.is_empty()
        {
            return Ok(Lookup::Here(kernels));
        }
        let stored = self.store.artifacts().get(&job.id, KERNELS).await.map_err(refused)?;
        match stored.map(|stored| stored.bytes) {
            Some(Some(bytes)) => unpack(&bytes).map(Lookup::Here).map_err(|why| {
                error::internal("reading a job's kernels", &std::io::Error::other(why))
            }),
            Some(None) => Ok(Lookup::Gone(TAKEN_DOWN)),
            None if had_kernels(job) => Ok(Lookup::Gone(NEVER_KEPT)),
            None => Ok(Lookup::Nothing),
        }
    }

    /// Returns the sizes in bytes of the job's profiler files.
    pub(super) async fn files(
        &self,
        id: &str,
    ) -> Result<BTreeMap<ArtifactKind, u64>, ServiceError> {
        let mut files = BTreeMap::new();
        if let Some(running) = self.running.artifacts(id) {
            files.extend(running.files.into_iter().map(|(kind, (_, bytes))| (kind, bytes)));
        }
        for artifact in self.store.artifacts().list(id).await.map_err(refused)? {
            let kind = ArtifactKind::named(&artifact.name).filter(|_| !artifact.gone);
            files.extend(kind.map(|kind| (kind, artifact.bytes)));
        }
        Ok(files)
    }

    /// Returns a profiler's file.
    pub(super) async fn file(
        &self,
        job: &JobRow,
        kind: ArtifactKind,
    ) -> Result<Lookup<Vec<u8>>, ServiceError> {
        let running = self.running.artifacts(&job.id);
        let path = running.and_then(|mut running| running.files.remove(&kind));
        // The file may have moved to the store since the snapshot.
        if let Some((path, _)) = path
            && let Ok(content) = tokio::fs::read(&path).await
        {
            return Ok(Lookup::Here(content));
        }
        let stored = self.store.artifacts().get(&job.id, kind.name()).await.map_err(refused)?;
        Ok(match stored.map(|stored| stored.bytes) {
            Some(Some(content)) => Lookup::Here(content),
            Some(None) => Lookup::Gone(TAKEN_DOWN),
            None => Lookup::Nothing,
        })
    }
}

/// Returns whether the job ended in a state that implies that it had kernels.
fn had_kernels(job: &JobRow) -> bool {
    job.kind != JobKind::Sweep && matches!(job.state, JobState::Completed | JobState::TimedOut)
}
