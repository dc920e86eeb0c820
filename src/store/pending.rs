//! Artifacts and retention, as their callers use them.

use std::time::Duration;

use super::{Store, StoreError};

/// Which ended jobs to remove.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    /// Those that ended longer ago.
    pub max_age: Option<Duration>,
    /// All but the youngest so many.
    pub max_jobs: Option<u64>,
    /// The oldest, until no more bytes are kept.
    pub max_bytes: Option<u64>,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cleaned {
    /// Jobs.
    pub jobs: u64,
    /// Bytes.
    pub bytes: u64,
}

/// An artifact.
#[derive(Debug, Clone)]
pub struct ArtifactRow {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

impl Store {
    /// Removes nothing yet.
    pub async fn cleanup(&self, _: &Retention) -> Result<Cleaned, StoreError> {
        Ok(Cleaned::default())
    }

    /// Keeps nothing yet.
    pub async fn put_artifact(&self, _: &str, _: &str, _: Vec<u8>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Finds nothing yet.
    pub async fn artifact(&self, _: &str, _: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    /// Finds nothing yet.
    pub async fn artifacts(&self, _: &str) -> Result<Vec<ArtifactRow>, StoreError> {
        Ok(Vec::new())
    }
}
