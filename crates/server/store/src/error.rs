//! What can go wrong with the store.

use std::path::PathBuf;

use super::JobState;

/// Why the store did not do what it was asked for. `Display` says what, where and what to do;
/// `source` has what the database said.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The data directory cannot be used.
    #[error(
        "could not {operation} {}; storage.data_dir must be a directory that this user may write to",
        path.display()
    )]
    DataDir {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The database cannot be reached or opened.
    #[error(
        "could not open the database {place}; check storage.database_url, or that its server runs"
    )]
    Unreachable {
        /// Which, without passwords.
        place: String,
        /// Why not.
        source: sqlx::Error,
    },
    /// The URL is not one of a database that is known here.
    #[error("storage.database_url is not usable: {reason}")]
    BadUrl {
        /// What is wrong with it, without passwords.
        reason: String,
    },
    /// A newer program wrote the database.
    #[error(
        "the database {place} has version {found}, this program knows versions up to {known}; it was \
         left as it is: start the newer program, or name another storage.data_dir"
    )]
    Newer {
        /// Which.
        place: String,
        /// Its version.
        found: i64,
        /// The highest version that this program knows.
        known: i64,
    },
    /// An older program wrote the database, and who only reads does not change it.
    #[error(
        "the database {place} has version {found}, this program reads version {known}; `warpgauge \
         serve`, or any evaluation on this machine, brings it up to date"
    )]
    Older {
        /// Which.
        place: String,
        /// Its version.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// The database belongs to somebody else.
    #[error(
        "the database {place} holds tables of another program and was left as it is; name another \
         storage.data_dir or storage.database_url"
    )]
    Foreign {
        /// Which.
        place: String,
    },
    /// The file of the database is not where it was opened.
    #[error(
        "the database {place} was {what} while this program used it, so nothing can be kept: move it \
         back to its place, or start the server anew with what is there"
    )]
    Gone {
        /// Which.
        place: String,
        /// What became of it.
        what: String,
    },
    /// A directory or a file is open to others, and cannot be closed to them.
    #[error(transparent)]
    Private(warpgauge_private_files::PrivateError),
    /// A migration failed; the database is as before.
    #[error("could not bring the database {place} to version {version}; it is as it was before")]
    Migration {
        /// Which.
        place: String,
        /// The version that could not be reached.
        version: i64,
        /// Why not.
        source: sqlx::Error,
    },
    /// The file is not a database, or damaged.
    #[error(
        "the database {place} is damaged ({operation}); restore a copy, or move it away to start with \
         an empty one (docs/store.md, \"A damaged database\")"
    )]
    Corrupt {
        /// What was tried.
        operation: &'static str,
        /// Which.
        place: String,
        /// What the database said.
        source: sqlx::Error,
    },
    /// There is no space left.
    #[error(
        "could not {operation}: the disk of {place} is full; free some space, or lower storage.keep_* \
         and clean up"
    )]
    DiskFull {
        /// What was tried.
        operation: &'static str,
        /// Where.
        place: String,
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database or its directory may not be written to.
    #[error(
        "could not {operation}: {place} is read-only for this user; make it writable, or name another \
         storage.data_dir"
    )]
    ReadOnly {
        /// What was tried.
        operation: &'static str,
        /// Where.
        place: String,
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Others held the database for too long.
    #[error("could not {operation}: others kept the database {place} busy; try again")]
    Busy {
        /// What was tried.
        operation: &'static str,
        /// Which.
        place: String,
        /// What the database said.
        source: sqlx::Error,
    },
    /// The database failed otherwise.
    #[error("could not {operation} in the database {place}")]
    Database {
        /// What was tried.
        operation: &'static str,
        /// Which.
        place: String,
        /// What it said.
        source: sqlx::Error,
    },
    /// A file beside the database failed.
    #[error("could not {operation} the stored file {key}")]
    Object {
        /// What was tried.
        operation: &'static str,
        /// Which.
        key: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row holds what no version of the program writes.
    #[error("the database {place} holds {what}, which this program did not write")]
    Odd {
        /// Which database.
        place: String,
        /// What is odd.
        what: String,
    },
    /// The idempotency key was used for another request.
    #[error(
        "the idempotency key `{key}` belongs to job {existing}, whose request differs; take a new key \
         for a new request"
    )]
    Conflict {
        /// The key.
        key: String,
        /// The job that has it.
        existing: String,
    },
    /// The owner has as many jobs as an owner may have.
    #[error("{current} of your jobs are {what}, and at most {limit} may be; wait for some to end")]
    Quota {
        /// `waiting` or `running`.
        what: &'static str,
        /// How many there are.
        current: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The owner keeps as much as an owner may.
    #[error("{0}")]
    Full(String),
    /// Somebody else has the job now, or it has ended.
    #[error("job {job} is not held by this process any more")]
    LeaseLost {
        /// The job.
        job: String,
    },
    /// A job cannot go from the one state to the other.
    #[error("job {job} cannot go from {} to {}", super::state::name(*from), super::state::name(*to))]
    IllegalTransition {
        /// The job.
        job: String,
        /// Where it stands.
        from: JobState,
        /// Where it should have gone.
        to: JobState,
    },
    /// A value is too long or out of range.
    #[error("{field} {problem}")]
    Invalid {
        /// Which.
        field: &'static str,
        /// What is wrong, and what is allowed.
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

/// Codes of PostgreSQL that mean that it, or its disk, is full.
const PG_FULL: [&str; 2] = ["53100", "53200"];

impl StoreError {
    /// What the database said while `operation` was tried on `place`, sorted by what to do about it.
    pub(super) fn database(operation: &'static str, place: &str, source: sqlx::Error) -> Self {
        let place = place.to_owned();
        let code = source.as_database_error().and_then(|error| error.code());
        let code = code.as_deref().unwrap_or_default().to_owned();
        // SQLite has numbers, whose low byte is the kind; PostgreSQL has five characters.
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

    /// A file operation that failed.
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

    /// What happened and what to do, for callers: without where the server keeps its data and without what
    /// the database said, which a log has.
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
                return "the server's data directory is open to other users; its log says how to close it"
                    .to_owned();
            }
            _ => return text,
        };
        text.replace(&format!("the database {place}"), "the server's database")
            .replace(&place, "the server's data")
    }

    /// Whether the store answered, and the answer was no: nothing is wrong with the store.
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

    /// Whether the same call may succeed later, once somebody makes room or the database is back.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Unreachable { .. } | Self::Gone { .. })
            || self.is_transient()
    }

    /// Whether the same call may succeed in a moment without anybody's help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } => true,
            Self::Database { source, .. } => lost_connection(source),
            _ => false,
        }
    }
}

/// Whether the connection, not the statement, is what failed.
pub(super) fn lost_connection(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => true,
        sqlx::Error::PoolTimedOut => true,
        // Administrator's shutdown, crash shutdown, starting up, and failures of the connection.
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

/// The kind of the I/O error that is at the bottom of this one.
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

/// An error with its sources, for a log.
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
