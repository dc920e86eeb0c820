//! What the tests of the store have in common: a database of either kind, empty, of its own.

use std::path::PathBuf;

use super::{Durability, Ending, JobKind, JobState, NewJob, NewReport, Quotas, Store, StoreConfig};

/// An empty database that goes when this is dropped.
pub(super) struct Fresh {
    pub(super) directory: tempfile::TempDir,
    pub(super) config: StoreConfig,
}

/// A SQLite database in a directory of its own.
pub(super) fn sqlite() -> Fresh {
    let directory = tempfile::tempdir().unwrap();
    let config = StoreConfig::new(directory.path());
    Fresh { directory, config }
}

impl Fresh {
    pub(super) async fn store(&self) -> Store {
        Store::open(&self.config).await.unwrap()
    }

    pub(super) fn quotas(mut self, max_waiting: u64, max_running: u64) -> Self {
        self.config.quotas = Quotas { max_waiting, max_running };
        self
    }

    #[expect(dead_code, reason = "for the tests of durability")]
    pub(super) fn power(mut self) -> Self {
        self.config.durability = Durability::Power;
        self
    }

    #[expect(dead_code, reason = "for the tests of files")]
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}

pub(super) fn job(owner: &str) -> NewJob {
    NewJob::new(owner, JobKind::Evaluate, br#"{"kernel":"x"}"#.to_vec())
}

pub(super) fn completed(body: &[u8]) -> Ending {
    let report = NewReport { version: 1, kind: "evaluate".to_owned(), body: body.to_vec() };
    Ending { state: JobState::Completed, report: Some(report), error: None }
}
