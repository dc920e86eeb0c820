//! Checks whether the store can be used now. The checks examine the disk, not remembered state. The
//! main type is [`StoreHealth`].

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::{AnyConnection, Connection, Executor};

use super::database::{Backend, Database};
use super::error::lost_connection;
use super::read::Reader;
use super::{StoreError, migrate};

/// Maximum size of a database that a check reads completely, bytes. Such a read takes about ten
/// milliseconds.
const READ_WHOLE_BYTES: u64 = 16 << 20;

/// Size of a test file that shows whether there is disk space, bytes.
const PROBE_BYTES: usize = 4 << 10;

/// Tables that every job needs.
const TABLES: [&str; 6] = ["owners", "instances", "jobs", "requests", "reports", "numbers"];

/// Timeout for an answer of a database server.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks the opened database, and the directories that must accept new files.
pub struct StoreHealth {
    pub(super) reader: Reader,
    pub(super) database: Database,
    pub(super) directories: Vec<PathBuf>,
}

impl StoreHealth {
    /// Checks whether the files of the store exist and the disk has free space. The call blocks.
    ///
    /// # Errors
    ///
    /// The error describes the problem, its place and a remedy.
    pub fn check_files(&self) -> Result<(), StoreError> {
        self.database.check()?;
        for directory in &self.directories {
            let written = tempfile::tempfile_in(directory)
                .and_then(|mut file| file.write_all(&[1; PROBE_BYTES]));
            written.map_err(|source| unwritable(directory, source))?;
        }
        Ok(())
    }

    /// Returns whether [`Self::check_database`] finds every problem that a heartbeat may find. For
    /// a database server, only heartbeats detect damaged rows.
    pub fn check_is_whole(&self) -> bool {
        self.database.backend == Backend::Sqlite
    }

    /// Checks whether the database can be read over a new connection, because an open one may still
    /// use a deleted file. A small database is read completely.
    ///
    /// # Errors
    ///
    /// The error describes the problem, its place and a remedy.
    pub async fn check_database(&self) -> Result<(), StoreError> {
        let database = &self.database;
        if database.backend == Backend::Postgres {
            return self.check_remote().await;
        }
        database.check()?;
        let Some(mut connection) = database.peek().await? else {
            return Err(gone(database, "deleted or moved away"));
        };
        let outcome = check_sqlite(&mut connection, database).await;
        let _ = connection.close().await;
        outcome
    }

    async fn check_remote(&self) -> Result<(), StoreError> {
        let highest = "SELECT COALESCE(MAX(version), 0) FROM schema_versions";
        // A connection of the pool would take too long while a server is unreachable.
        let asked = async {
            let mut connection = self.database.plain_connection().await?;
            let answer = sqlx::query(highest).fetch_one(&mut connection).await;
            let _ = connection.close().await;
            answer
        };
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        let answer = answer.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        answer.map(drop).map_err(|source| {
            if lost_connection(&source) {
                return StoreError::Unreachable { place: self.reader.place.clone(), source };
            }
            self.reader.failed("read its version")(source)
        })
    }
}

fn gone(database: &Database, what: &str) -> StoreError {
    StoreError::Gone { place: database.place.clone(), what: what.to_owned() }
}

fn unwritable(directory: &Path, source: std::io::Error) -> StoreError {
    let place = directory.display().to_string();
    match StoreError::file("write a file", &place, source.into()) {
        // The message for a single file does not apply to a directory.
        StoreError::Object { source, .. } => StoreError::DataDir {
            operation: "write in",
            path: directory.to_owned(),
            source: std::io::Error::other(source),
        },
        sorted => sorted,
    }
}

async fn check_sqlite(
    connection: &mut AnyConnection,
    database: &Database,
) -> Result<(), StoreError> {
    let place = &database.place;
    let failed = |source| StoreError::database("check it", place, source);
    if migrate::version(connection, database).await? == 0 {
        return Err(gone(database, "emptied"));
    }
    for table in TABLES {
        let sql = format!("SELECT * FROM {table} LIMIT 1");
        connection.fetch_optional(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await.map_err(failed)?;
    }
    let bytes = std::fs::metadata(place).map_or(u64::MAX, |file| file.len());
    if bytes > READ_WHOLE_BYTES {
        return Ok(());
    }
    let found = sqlx::query_scalar::<_, String>("PRAGMA quick_check(1)").fetch_one(connection);
    match found.await.map_err(failed)?.as_str() {
        "ok" => Ok(()),
        what => Err(StoreError::Corrupt {
            operation: "check it",
            place: place.clone(),
            source: sqlx::Error::Protocol(what.chars().take(400).collect()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreConfig};
    use std::io::{Seek, SeekFrom};

    async fn opened(directory: &Path) -> Store {
        Store::open(&StoreConfig::new(directory)).await.unwrap()
    }

    #[tokio::test]
    async fn a_store_that_is_well_is_found_so_again_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = opened(directory.path()).await;
        for _ in 0..3 {
            store.health().check_files().unwrap();
            store.health().check_database().await.unwrap();
        }
        store.close().await;
    }

    #[tokio::test]
    async fn a_database_that_was_removed_or_replaced_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let store = opened(directory.path()).await;
        let file = directory.path().join("warpgauge.db");
        let aside = directory.path().join("aside");
        std::fs::rename(&file, &aside).unwrap();
        assert!(matches!(store.health().check_files(), Err(StoreError::Gone { .. })));
        assert!(matches!(store.health().check_database().await, Err(StoreError::Gone { .. })));
        std::fs::copy(&aside, &file).unwrap();
        assert!(matches!(store.health().check_files(), Err(StoreError::Gone { .. })));
        std::fs::rename(&aside, &file).unwrap();
        store.health().check_files().unwrap();
        store.health().check_database().await.unwrap();
    }

    #[tokio::test]
    async fn a_damaged_database_is_found_although_it_is_remembered_whole() {
        let directory = tempfile::tempdir().unwrap();
        opened(directory.path()).await.close().await;
        let store = opened(directory.path()).await;
        let path = directory.path().join("warpgauge.db");
        let whole = std::fs::read(&path).unwrap();
        for start in [0, 4_096, whole.len() / 2] {
            let mut file = std::fs::File::options().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(start as u64)).unwrap();
            file.write_all(&[0x5a; 8_192]).unwrap();
            let error = store.health().check_database().await.expect_err("it is damaged");
            assert!(matches!(error, StoreError::Corrupt { .. }), "{start}: {error:?}");
            std::fs::write(&path, &whole).unwrap();
            store.health().check_database().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_directory_that_is_gone_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let store = opened(directory.path()).await;
        let objects = directory.path().join("objects");
        std::fs::remove_dir_all(&objects).unwrap();
        let told = store.health().check_files().unwrap_err().to_string();
        assert!(told.contains(objects.to_str().unwrap()), "{told}");
    }
}
