//! Wall-clock time.

use std::time::Instant;

/// Returns the wall-clock time since `since`, in milliseconds.
pub(crate) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
