//! What jobs left, between this process and the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ArtifactKind;
use super::collected::{pack, unpack};
use crate::error::{self, ServiceError};
use crate::jobs::{LiveJob, refused};
use crate::shared::Shared;
use warpgauge_executor::KeptKernel;
use warpgauge_model::JobKind;
use warpgauge_model::JobState;
use warpgauge_store::JobRow;

/// Name under which the store has a job's kernels.
const KERNELS: &str = "kernels";

const TAKEN_DOWN: &str = "artifacts of younger jobs needed the space; raise \
                          storage.artifacts_max_bytes, or evaluate again";
const NEVER_KEPT: &str = "the server could not keep it when the job ended, or was killed then; \
                          evaluate again";

/// What was found.
pub(super) enum Lookup<T> {
    Here(T),
    /// It was there, and is not any more, for this reason.
    Gone(&'static str),
    /// The job never left such a thing.
    Nothing,
}

impl Shared {
    /// Gives what an ended job left to the store. What cannot be kept costs the job nothing.
    pub(crate) async fn keep_leavings(&self, job: &LiveJob) {
        let (kernels, files) = {
            let collected = job.collected();
            let files = collected.files.iter().map(|(kind, file)| (*kind, file.path.to_path_buf()));
            (collected.kernels.clone(), files.collect::<Vec<_>>())
        };
        let mut things = Vec::new();
        if !kernels.is_empty() {
            match pack(&kernels) {
                Ok(bytes) => things.push((KERNELS, bytes)),
                Err(error) => tracing::warn!(job = job.id(), error, "kernels cannot be written"),
            }
        }
        for (kind, path) in files {
            match tokio::fs::read(&path).await {
                Ok(bytes) => things.push((kind.name(), bytes)),
                Err(error) => tracing::warn!(job = job.id(), %error, "a tool's file is lost"),
            }
        }
        for (name, bytes) in things {
            if let Err(error) = self.store.put_artifact(job.id(), name, name, bytes).await {
                let error = error::chain(&error);
                tracing::warn!(job = job.id(), name, error, "an artifact cannot be kept");
            }
        }
    }

    /// The job's kernels.
    pub(super) async fn left_kernels(
        &self,
        job: &JobRow,
    ) -> Result<Lookup<Vec<Arc<KeptKernel>>>, ServiceError> {
        if let Some(live) = self.jobs.get(&job.id) {
            let kernels = live.collected().kernels.clone();
            if !kernels.is_empty() {
                return Ok(Lookup::Here(kernels));
            }
        }
        let stored = self.store.artifact(&job.id, KERNELS).await.map_err(refused)?;
        match stored.map(|stored| stored.bytes) {
            Some(Some(bytes)) => unpack(&bytes).map(Lookup::Here).map_err(|why| {
                error::internal("reading a job's kernels", &std::io::Error::other(why))
            }),
            Some(None) => Ok(Lookup::Gone(TAKEN_DOWN)),
            None if had_kernels(job) => Ok(Lookup::Gone(NEVER_KEPT)),
            None => Ok(Lookup::Nothing),
        }
    }

    /// Sizes of the profilers' files that the job left.
    pub(super) async fn left_files(
        &self,
        id: &str,
    ) -> Result<BTreeMap<ArtifactKind, u64>, ServiceError> {
        let mut files = BTreeMap::new();
        if let Some(live) = self.jobs.get(id) {
            files.extend(live.collected().files.iter().map(|(kind, file)| (*kind, file.bytes)));
        }
        for artifact in self.store.artifacts(id).await.map_err(refused)? {
            let kind = ArtifactKind::named(&artifact.name).filter(|_| !artifact.gone);
            files.extend(kind.map(|kind| (kind, artifact.bytes)));
        }
        Ok(files)
    }

    /// A profiler's file.
    pub(super) async fn left_file(
        &self,
        job: &JobRow,
        kind: ArtifactKind,
    ) -> Result<Lookup<Vec<u8>>, ServiceError> {
        let path = self
            .jobs
            .get(&job.id)
            .and_then(|live| live.collected().files.get(&kind).map(|file| file.path.to_path_buf()));
        // It may be on its way to the store: then it is there a moment later.
        if let Some(path) = path
            && let Ok(content) = tokio::fs::read(&path).await
        {
            return Ok(Lookup::Here(content));
        }
        let stored = self.store.artifact(&job.id, kind.name()).await.map_err(refused)?;
        Ok(match stored.map(|stored| stored.bytes) {
            Some(Some(content)) => Lookup::Here(content),
            Some(None) => Lookup::Gone(TAKEN_DOWN),
            None => Lookup::Nothing,
        })
    }
}

/// Whether the job came so far that it must have left kernels.
fn had_kernels(job: &JobRow) -> bool {
    job.kind != JobKind::Sweep && matches!(job.state, JobState::Completed | JobState::TimedOut)
}
