//! Artifacts and retention, as their callers use them.

use std::time::Duration;

use super::{Store, StoreError};

/// What is to be kept. Jobs that have not ended are always kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Ended jobs up to this age; `None`: whatever their age.
    pub max_age: Option<Duration>,
    /// So many ended jobs; 0: any number.
    pub max_jobs: u64,
    /// So many bytes of requests and reports, before compression; 0: any number.
    pub max_bytes: u64,
}

/// What was taken down.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cleaned {
    /// Jobs, with their requests, reports and artifacts.
    pub jobs: u64,
    /// Bytes of their requests and reports, before compression.
    pub bytes: u64,
}

/// A file that a job left.
#[derive(Debug, Clone)]
pub struct ArtifactRow {
    /// Its name among those of the job.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Whether its bytes gave way to younger artifacts.
    pub gone: bool,
}

/// A file that a job left, with its bytes unless they gave way.
#[derive(Debug, Clone)]
pub struct StoredArtifact {
    /// Its content.
    pub bytes: Option<Vec<u8>>,
}

impl Store {
    /// Removes nothing yet.
    pub async fn cleanup(&self, _: &Retention) -> Result<Cleaned, StoreError> {
        Ok(Cleaned::default())
    }

    /// Keeps nothing yet.
    pub async fn put_artifact(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: Vec<u8>,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Finds nothing yet.
    pub async fn artifact(&self, _: &str, _: &str) -> Result<Option<StoredArtifact>, StoreError> {
        Ok(None)
    }

    /// Finds nothing yet.
    pub async fn artifacts(&self, _: &str) -> Result<Vec<ArtifactRow>, StoreError> {
        Ok(Vec::new())
    }
}
