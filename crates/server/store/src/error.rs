//! Errors of the store. The main type is [`StoreError`].

use std::path::PathBuf;

use super::JobState;

/// Reason why an operation of the store failed. `Display` describes the problem, its place and a
/// remedy. `source` contains the database's message.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The data directory cannot be used.
    #[error(
        "could not {operation} {}; storage.data_dir must be a directory that this user may write to",
        path.display()
    )]
    DataDir { operation: &'static str, path: PathBuf, source: std::io::Error },
    /// The database cannot be reached or opened.
    #[error(
        "could not open the database {place}; check storage.database_url, or that its server runs"
    )]
    Unreachable {
        /// Location of the database, without passwords.
        place: String,
        source: sqlx::Error,
    },
    /// The URL does not name a supported database.
    #[error("storage.database_url is not usable: {reason}")]
    BadUrl {
        /// Description of the problem, without passwords.
        reason: String,
    },
    /// A newer program wrote the database.
    #[error(
        "the database {place} has version {found}; this program supports versions up to {known}. It was \
         left unchanged: start the newer program, or set another storage.data_dir"
    )]
    Newer {
        place: String,
        found: i64,
        /// The highest version that this program supports.
        known: i64,
    },
    /// An older program wrote the database. Read-only access does not migrate it.
    #[error(
        "the database {place} has version {found}, but this program reads version {known}; `warpgauge \
         serve`, or any evaluation on this machine, updates it"
    )]
    Older {
        place: String,
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// The database belongs to another program.
    #[error(
        "the database {place} contains tables of another program and was left unchanged; set another \
         storage.data_dir or storage.database_url"
    )]
    Foreign { place: String },
    /// The database file is no longer at the path at which it was opened.
    #[error(
        "the database {place} was {what} while this program used it, so nothing can be stored: move it \
         back to its place, or restart the server with the present file"
    )]
    Gone {
        place: String,
        /// Description of what happened to the file.
        what: String,
    },
    /// A directory or a file is open to other users, and its mode cannot be changed.
    #[error(transparent)]
    Private(warpgauge_private_files::PrivateError),
    /// A migration failed. The database is unchanged.
    #[error("could not update the database {place} to version {version}; it is unchanged")]
    Migration {
        place: String,
        /// The version of the failed migration.
        version: i64,
        source: sqlx::Error,
    },
    /// The file is not a database, or is damaged.
    #[error(
        "the database {place} is damaged ({operation}); restore a copy, or move it away to start with \
         an empty one (docs/store.md, \"A damaged database\")"
    )]
    Corrupt { operation: &'static str, place: String, source: sqlx::Error },
    /// The disk is full.
    #[error(
        "could not {operation}: the disk of {place} is full; free some space, or lower storage.keep_* \
         and clean up"
    )]
    DiskFull {
        operation: &'static str,
        place: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database or its directory is read-only.
    #[error(
        "could not {operation}: {place} is read-only for this user; make it writable, or name another \
         storage.data_dir"
    )]
    ReadOnly {
        operation: &'static str,
        place: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Other processes locked the database for too long.
    #[error(
        "could not {operation}: other processes locked the database {place} for too long; try again"
    )]
    Busy { operation: &'static str, place: String, source: sqlx::Error },
    /// Any other error of the database.
    #[error("could not {operation} in the database {place}")]
    Database { operation: &'static str, place: String, source: sqlx::Error },
    /// An error with a file beside the database.
    #[error("could not {operation} the stored file {key}")]
    Object {
        operation: &'static str,
        key: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row contains a value that this program never writes.
    #[error("the database {place} contains {what}, which this program did not write")]
    Odd {
        place: String,
        /// The unexpected value.
        what: String,
    },
    /// The idempotency key was used for another request.
    #[error(
        "the idempotency key `{key}` belongs to job {existing}, whose request differs; use a new key \
         for a new request"
    )]
    Conflict {
        key: String,
        /// The job that was created with the key.
        existing: String,
    },
    /// The owner has reached a quota on jobs.
    #[error(
        "{current} of your jobs are {what}, and at most {limit} are allowed; wait for some to end"
    )]
    Quota {
        /// `waiting` or `running`.
        what: &'static str,
        current: u64,
        limit: u64,
    },
    /// The owner has reached its quota on stored data.
    #[error("{0}")]
    Full(String),
    /// Another process now holds the job, or the job has ended.
    #[error("this process no longer holds job {job}")]
    LeaseLost { job: String },
    /// The transition between these states is not allowed.
    #[error("job {job} cannot change from {} to {}", super::state::name(*from), super::state::name(*to))]
    IllegalTransition { job: String, from: JobState, to: JobState },
    /// A value is too long or out of range.
    #[error("{field} {problem}")]
    Invalid {
        field: &'static str,
        /// The problem, and the allowed range.
        problem: String,
    },
    /// The store was closed.
    #[error("the store is closed: the program is shutting down")]
    Closed,
}

impl From<warpgauge_private_files::PrivateError> for StoreError {
    fn from(error: warpgauge_private_files::PrivateError) -> Self {
        use warpgauge_private_files::PrivateError;
        match error {
            PrivateError::System { operation, path, source } => {
                Self::DataDir { operation, path, source }
            }
            other => Self::Private(other),
        }
    }
}

/// PostgreSQL's codes for a full disk or exhausted memory.
const PG_FULL: [&str; 2] = ["53100", "53200"];

impl StoreError {
    /// Classifies an error of the database by its remedy.
    pub(super) fn database(operation: &'static str, place: &str, source: sqlx::Error) -> Self {
        let place = place.to_owned();
        let code = source.as_database_error().and_then(|error| error.code());
        let code = code.as_deref().unwrap_or_default().to_owned();
        // SQLite's codes are numbers with the primary code in the low byte. PostgreSQL's codes have
        // five characters.
        let number = code.parse::<u32>().ok();
        let sqlite = number.filter(|_| !is_postgres(&source)).map(|code| code & 0xff);
        match sqlite {
            Some(13) => return Self::DiskFull { operation, place, source: source.into() },
            Some(8 | 14 | 3) => return Self::ReadOnly { operation, place, source: source.into() },
            Some(5 | 6) => return Self::Busy { operation, place, source },
            Some(11 | 26) => return Self::Corrupt { operation, place, source },
            Some(_) => return Self::Database { operation, place, source },
            None => {}
        }
        match code.as_str() {
            code if PG_FULL.contains(&code) => {
                Self::DiskFull { operation, place, source: source.into() }
            }
            "25006" => Self::ReadOnly { operation, place, source: source.into() },
            "XX001" | "XX002" => Self::Corrupt { operation, place, source },
            "55P03" | "40P01" | "40001" | "53300" => Self::Busy { operation, place, source },
            _ => Self::Database { operation, place, source },
        }
    }

    /// Classifies an error of a file operation.
    pub(super) fn file(
        operation: &'static str,
        key: &str,
        source: Box<dyn std::error::Error + Send + Sync>,
    ) -> Self {
        use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull};
        let place = key.to_owned();
        match io_kind(source.as_ref()) {
            Some(StorageFull | std::io::ErrorKind::FileTooLarge) => {
                Self::DiskFull { operation, place, source }
            }
            Some(PermissionDenied | ReadOnlyFilesystem) => {
                Self::ReadOnly { operation, place, source }
            }
            _ => Self::Object { operation, key: place, source },
        }
    }

    /// Returns the message for callers: the problem and a remedy. It omits the data's location and
    /// the database's message, which the log contains.
    pub fn for_callers(&self) -> String {
        let text = self.to_string();
        let place = match self {
            Self::DataDir { path, .. } => path.display().to_string(),
            Self::Unreachable { place, .. }
            | Self::Newer { place, .. }
            | Self::Older { place, .. }
            | Self::Foreign { place }
            | Self::Gone { place, .. }
            | Self::Migration { place, .. }
            | Self::Corrupt { place, .. }
            | Self::DiskFull { place, .. }
            | Self::ReadOnly { place, .. }
            | Self::Busy { place, .. }
            | Self::Database { place, .. }
            | Self::Odd { place, .. } => place.clone(),
            Self::Private(_) => {
                return "the server's data directory is open to other users; its log contains the remedy"
                    .to_owned();
            }
            _ => return text,
        };
        text.replace(&format!("the database {place}"), "the server's database")
            .replace(&place, "the server's data")
    }

    /// Returns whether the store works and rejected the operation.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. }
                | Self::Quota { .. }
                | Self::Full(_)
                | Self::LeaseLost { .. }
                | Self::IllegalTransition { .. }
                | Self::Invalid { .. }
        )
    }

    /// Returns whether a retry may succeed later, after an operator frees space or the database is
    /// available again.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Unreachable { .. } | Self::Gone { .. })
            || self.is_transient()
    }

    /// Returns whether a retry may succeed in a moment without intervention.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } => true,
            Self::Database { source, .. } => lost_connection(source),
            _ => false,
        }
    }
}

/// Returns whether the connection failed, as opposed to the statement.
pub(super) fn lost_connection(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => true,
        sqlx::Error::PoolTimedOut => true,
        // These codes mean an administrator's shutdown, a crash shutdown, a start-up, and
        // connection failures.
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("57P0") || code.starts_with("08"))
        }
        _ => false,
    }
}

fn is_postgres(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some())
}

/// Returns the kind of the I/O error at the end of the chain of causes.
fn io_kind(error: &(dyn std::error::Error + 'static)) -> Option<std::io::ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Some(io.kind());
        }
        cause = error.source();
    }
    None
}

/// Formats an error and its causes for a log.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_read_what_to_do_and_no_places() {
        let said = || sqlx::Error::Io(std::io::Error::other("role \"operator\" at 10.0.0.1"));
        let other = || std::io::Error::other("operator");
        for place in ["postgres://operator@host/db", "/var/lib/operator/warpgauge.db"] {
            let place = place.to_owned();
            let errors = [
                StoreError::Unreachable { place: place.clone(), source: said() },
                StoreError::Corrupt { operation: "read", place: place.clone(), source: said() },
                StoreError::Database { operation: "read", place: place.clone(), source: said() },
                StoreError::Gone { place: place.clone(), what: "deleted".to_owned() },
                StoreError::DiskFull {
                    operation: "write",
                    place: place.clone(),
                    source: Box::new(other()),
                },
                StoreError::DataDir {
                    operation: "write in",
                    path: place.clone().into(),
                    source: other(),
                },
            ];
            for error in errors {
                let text = error.for_callers();
                assert!(!text.contains(&place) && !text.contains("operator"), "{text}");
                assert!(text.contains("the server's da"), "{text}");
            }
        }
    }
}
