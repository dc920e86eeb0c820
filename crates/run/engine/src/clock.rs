//! Wall clock.

use std::time::Instant;

/// Milliseconds of wall clock since then.
pub(crate) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
