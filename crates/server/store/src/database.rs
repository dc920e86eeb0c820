//! Connections to SQLite (a file) and PostgreSQL (a URL). Both use the same statements. The main
//! type is [`Database`].

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Connection, Executor};

use super::StoreError;
use super::condition::OpenedFile;

/// Maximum number of connections for reading. One additional connection writes.
const READERS: u32 = 4;

/// Returns the time limit for obtaining a connection. It is short for PostgreSQL, because an
/// unreachable server does not answer.
fn acquiring(backend: Backend) -> Duration {
    match backend {
        Backend::Postgres => Duration::from_secs(3),
        Backend::Sqlite => Duration::from_millis(BUSY_TIMEOUT_MS),
    }
}

/// Time limit for waiting while other processes lock the database, milliseconds.
const BUSY_TIMEOUT_MS: u64 = 10_000;

/// Failures after which committed data is still present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Data survives the end of any process. A power loss may lose the most recent writes.
    Process,
    /// Data also survives a power loss: each group of writes waits for the disk.
    Power,
}

/// Kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    Sqlite,
    Postgres,
}

/// Location of the database, and its connection settings.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pub(super) backend: Backend,
    /// Path, or URL without password, for messages.
    pub(super) place: String,
    url: String,
    durability: Durability,
    /// The file that was opened. `None` for a database server, and before opening.
    pub(super) file: Option<OpenedFile>,
}

impl Database {
    /// Describes the database at this URL; an empty URL means SQLite in `data_dir`.
    pub(super) fn new(
        url: &str,
        data_dir: &Path,
        durability: Durability,
    ) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        if url.is_empty() {
            let path = sqlite_path(data_dir);
            let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
            let url = options.to_url_lossy().to_string();
            let place = path.display().to_string();
            return Ok(Self { backend: Backend::Sqlite, place, url, durability, file: None });
        }
        let scheme = url.split("://").next().unwrap_or_default();
        if !matches!(scheme, "postgres" | "postgresql") || !url.contains("://") {
            let reason = format!(
                "it begins with `{}`; write postgres://user@host/name, or leave it empty for a file \
                 in the data directory",
                scheme.chars().take(32).collect::<String>()
            );
            return Err(StoreError::BadUrl { reason });
        }
        let place = without_password(url);
        let url = url.to_owned();
        Ok(Self { backend: Backend::Postgres, place, url, durability, file: None })
    }

    /// Opens the database file. If it is missing, creates it with access for this user only.
    /// Connections that are opened later never create a file in its place.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        if self.backend == Backend::Postgres {
            return Ok(());
        }
        let path = Path::new(&self.place);
        warpgauge_private_files::file(path)?;
        for beside in ["db-wal", "db-shm"] {
            warpgauge_private_files::existing_file(&path.with_extension(beside))?;
        }
        let opened = OpenedFile::at(path).map_err(|source| {
            let path = path.to_owned();
            StoreError::DataDir { operation: "look at", path, source }
        })?;
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(false);
        self.url = options.to_url_lossy().to_string();
        self.file = Some(opened);
        Ok(())
    }

    /// Checks whether the file at the path is still the opened one.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.file.as_ref().map_or(Ok(()), OpenedFile::check)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn options(&self) -> Result<AnyConnectOptions, StoreError> {
        let options: AnyConnectOptions = self.url.parse().map_err(|_| StoreError::BadUrl {
            reason: "it is not a URL; write postgres://user@host/name".to_owned(),
        })?;
        Ok(options.disable_statement_logging())
    }

    /// Opens a connection for writing.
    pub(super) async fn connect(&self) -> Result<AnyConnection, StoreError> {
        let opened = AnyConnection::connect_with(&self.options()?).await;
        let mut connection = opened.map_err(|source| self.opening(source))?;
        prepare(&mut connection, self.backend, self.durability)
            .await
            .map_err(|source| self.opening(source))?;
        Ok(connection)
    }

    /// Opens a connection without applying settings.
    pub(super) async fn plain_connection(&self) -> Result<AnyConnection, sqlx::Error> {
        let options: AnyConnectOptions = self.url.parse()?;
        AnyConnection::connect_with(&options.disable_statement_logging()).await
    }

    /// Opens a read-only connection to an existing SQLite file.
    pub(super) async fn peek(&self) -> Result<Option<AnyConnection>, StoreError> {
        if self.backend == Backend::Postgres || !Path::new(&self.place).exists() {
            return Ok(None);
        }
        let options = SqliteConnectOptions::new().filename(&self.place).read_only(true);
        let url = options.to_url_lossy();
        let options = AnyConnectOptions::from_url(&url).map_err(|source| self.opening(source))?;
        let opened = AnyConnection::connect_with(&options.disable_statement_logging()).await;
        opened.map(Some).map_err(|source| self.opening(source))
    }

    /// Returns a pool of connections for reading, opened on demand.
    pub(super) fn readers(&self) -> Result<AnyPool, StoreError> {
        let backend = self.backend;
        let pool = AnyPoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(acquiring(backend))
            .after_connect(move |connection, _| {
                Box::pin(async move { be_patient(connection, backend).await })
            })
            .connect_lazy_with(self.options()?);
        Ok(pool)
    }

    /// Returns a pool with one read-only connection to an existing database. It creates no files
    /// beside the database.
    pub(super) fn only_readers(&self) -> Result<AnyPool, StoreError> {
        let backend = self.backend;
        let options = match backend {
            Backend::Postgres => self.options()?,
            Backend::Sqlite => {
                // If the log is empty or missing, the file is complete. A file that is opened as
                // immutable needs no other files beside it, which another user might be unable to
                // write.
                let log = Path::new(&self.place).with_extension("db-wal");
                let quiet = log.metadata().map_or(true, |log| log.len() == 0);
                let options = SqliteConnectOptions::new().filename(&self.place);
                let url = options.read_only(true).immutable(quiet).to_url_lossy();
                let options = AnyConnectOptions::from_url(&url);
                options.map_err(|source| self.opening(source))?.disable_statement_logging()
            }
        };
        let pool = AnyPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(acquiring(backend))
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    let sql = match backend {
                        Backend::Sqlite => format!("PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}"),
                        Backend::Postgres => "SET default_transaction_read_only = on".to_owned(),
                    };
                    connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await.map(drop)
                })
            })
            .connect_lazy_with(options);
        Ok(pool)
    }

    /// Classifies an error from opening the database.
    pub(super) fn opening(&self, source: sqlx::Error) -> StoreError {
        match StoreError::database("open it", &self.place, source) {
            StoreError::Database { source, .. } => {
                StoreError::Unreachable { place: self.place.clone(), source }
            }
            sorted => sorted,
        }
    }

    /// Returns the statement that begins a writing transaction.
    pub(super) fn begin(&self) -> &'static str {
        match self.backend {
            // This takes the write lock at once. If the lock were upgraded later, the upgrade could
            // fail because another process wrote in between.
            Backend::Sqlite => "BEGIN IMMEDIATE",
            Backend::Postgres => "BEGIN",
        }
    }
}

/// Returns the path of the database in a data directory.
pub(super) fn sqlite_path(data_dir: &Path) -> PathBuf {
    data_dir.join("warpgauge.db")
}

/// Makes a connection wait for locks of other processes. Connections for reading need no other
/// setting. Some settings of [`prepare`] write to the file, which fails on a full disk.
async fn be_patient(connection: &mut AnyConnection, backend: Backend) -> Result<(), sqlx::Error> {
    if backend == Backend::Sqlite {
        let timeout = format!("PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}");
        connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(timeout))).await?;
    }
    Ok(())
}

/// Applies the settings of a connection for writing.
async fn prepare(
    connection: &mut AnyConnection,
    backend: Backend,
    durability: Durability,
) -> Result<(), sqlx::Error> {
    be_patient(connection, backend).await?;
    match (backend, durability) {
        (Backend::Sqlite, _) => {
            // Only an empty file accepts this setting.
            connection.execute(sqlx::raw_sql("PRAGMA auto_vacuum = INCREMENTAL")).await?;
            connection.execute(sqlx::raw_sql("PRAGMA journal_mode = WAL")).await?;
            connection.execute(sqlx::raw_sql("PRAGMA journal_size_limit = 67108864")).await?;
            // The module `log` checkpoints in a separate task. This setting limits the log if that
            // task is too slow.
            connection.execute(sqlx::raw_sql("PRAGMA wal_autocheckpoint = 16384")).await?;
            let synchronous = match durability {
                Durability::Process => "PRAGMA synchronous = NORMAL",
                Durability::Power => "PRAGMA synchronous = FULL",
            };
            connection.execute(sqlx::raw_sql(synchronous)).await?;
        }
        (Backend::Postgres, Durability::Power) => {
            connection.execute(sqlx::raw_sql("SET synchronous_commit = on")).await?;
        }
        // PostgreSQL's administrator decides its durability.
        (Backend::Postgres, Durability::Process) => {}
    }
    Ok(())
}

/// Returns the URL for use in messages: user, host and database name, without the password.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    match rest.rsplit_once('@') {
        None => format!("{scheme}://{rest}"),
        Some((login, place)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{place}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_never_show_a_password() {
        for (url, shown) in [
            ("postgres://me:se@cret@host:5432/db?password=x", "postgres://me@host:5432/db"),
            ("postgres://host/db", "postgres://host/db"),
            ("postgresql://me@/db?host=/tmp", "postgresql://me@/db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn other_databases_are_refused() {
        for url in ["mysql://h/db", "sqlite:///x", "postgres", "/var/db", "redis://u:pw@h"] {
            let error = Database::new(url, Path::new("/x"), Durability::Process).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("postgres://user@host/name") && !text.contains("pw"), "{text}");
        }
    }
}
