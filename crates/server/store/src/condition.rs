//! Checks whether the database file is still the one that was opened.
//!
//! A SQLite file that is deleted or moved still accepts writes. They are lost, because the next
//! process opens the file at the original path. So the path is checked before a transaction begins
//! and after it commits, which takes a microsecond. The main type is [`OpenedFile`].

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::StoreError;

/// Identity of the file that was at a path when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl OpenedFile {
    /// Returns the file that is at the path now.
    pub(super) fn at(path: &Path) -> std::io::Result<Self> {
        let found = path.metadata()?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// Checks whether the file at the path is still the opened one.
    ///
    /// # Errors
    /// Returns `Gone`, with a description of what happened to the file.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let what = match Self::at(&self.path) {
            Ok(found) if found == *self => return Ok(()),
            Ok(_) => "replaced by another file".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "deleted or moved away".to_owned()
            }
            Err(error) => format!("made inaccessible ({error})"),
        };
        Err(StoreError::Gone { place: self.path.display().to_string(), what })
    }
}

#[cfg(test)]
mod tests {
    use super::super::database::sqlite_path;
    use super::super::testing::{completed, job, postgres, sqlite};
    use super::super::{JobState, Visibility};
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_database_that_is_deleted_or_replaced_takes_no_more_jobs() {
        let fresh = sqlite();
        let store = fresh.store().await;
        store.health().check_database().await.unwrap();
        let id = store.queue().submit(job("a")).await.unwrap().id;
        let mut lease = store.queue().claim().await.unwrap().unwrap().lease;
        store.queue().advance(&lease, JobState::Compiling).await.unwrap();
        let path = sqlite_path(&fresh.config.data_dir);
        let aside = path.with_extension("aside");
        std::fs::rename(&path, &aside).unwrap();
        for replaced in [false, true] {
            if replaced {
                std::fs::write(&path, "").unwrap();
            }
            let word = if replaced { "replaced" } else { "deleted or moved away" };
            let gone = |error: StoreError| {
                assert!(matches!(error, StoreError::Gone { .. }) && error.may_pass(), "{error}");
                let text = error.to_string();
                assert!(text.contains("warpgauge.db") && text.contains(word), "{text}");
            };
            gone(store.health().check_database().await.unwrap_err());
            gone(store.queue().submit(job("a")).await.unwrap_err());
            gone(store.queue().claim().await.map(drop).unwrap_err());
            gone(store.membership().heartbeat().await.unwrap_err());
            gone(store.queue().try_finish(&mut lease, completed(b"{}")).await.unwrap_err());
        }
        // No file was created in its place. When the file is back, the store works again.
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        std::fs::rename(&aside, &path).unwrap();
        store.health().check_database().await.unwrap();
        store.queue().try_finish(&mut lease, completed(b"{}")).await.unwrap();
        let row = store.jobs().find(&id, Visibility::All).await.unwrap().unwrap();
        assert_eq!(row.state, JobState::Completed);
        store.queue().submit(job("a")).await.unwrap();
        assert_eq!(store.jobs().counts(Visibility::All).await.unwrap().total(), 2);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn on_postgres_a_server_that_is_away_is_told_and_comes_back() {
        needs!("PostgreSQL", crate::testing::server::installed());
        let mut fresh = postgres();
        let store = fresh.store().await;
        store.health().check_database().await.unwrap();
        store.queue().submit(job("a")).await.unwrap();
        fresh.stop_server();
        let error = store.health().check_database().await.unwrap_err();
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        let error = store.queue().submit(job("a")).await.unwrap_err();
        assert!(error.may_pass(), "{error}");
        fresh.start_server();
        store.health().check_database().await.unwrap();
        assert_eq!(store.jobs().counts(Visibility::All).await.unwrap().total(), 1);
        store.queue().submit(job("a")).await.unwrap();
    }
}
