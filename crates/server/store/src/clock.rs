//! Times in the database: microseconds since the Unix epoch.

use std::time::{Duration, SystemTime};

/// Returns the current time.
pub(super) fn now() -> i64 {
    micros(SystemTime::now())
}

/// Converts a time to microseconds for the database. A time before 1970 becomes 1970.
pub(super) fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Converts a time from the database.
pub(super) fn time(micros: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Converts a duration to microseconds for the database.
pub(super) fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
