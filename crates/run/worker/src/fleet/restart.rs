//! Decides when to start a worker again after a start failed. It reads no clock: the caller passes
//! the time.

use std::time::{Duration, Instant};

/// Delay after the first failure. It doubles with each further failure.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// Number of consecutive failures after which the device counts as failed.
const FAILURES_UNTIL_FAILED: u32 = 3;

/// Backoff for a device on which workers cannot be started.
#[derive(Debug, Default)]
pub(super) struct RestartPolicy {
    failures: u32,
    not_before: Option<Instant>,
}

impl RestartPolicy {
    /// Returns the time to wait before the next start of a worker.
    pub(super) fn delay(&self, now: Instant) -> Duration {
        self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// Records that a worker was started.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Records that a worker could not be started. Returns whether the device now counts as failed.
    /// Starts are retried even then, so that a repaired device recovers without intervention.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        let delay = FIRST_DELAY.saturating_mul(1 << self.failures.min(16)).min(LONGEST_DELAY);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + delay);
        self.failures >= FAILURES_UNTIL_FAILED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_space_out_and_a_success_resets() {
        let now = Instant::now();
        let mut policy = RestartPolicy::default();
        assert_eq!(policy.delay(now), Duration::ZERO);
        assert!(!policy.failed(now));
        assert_eq!(policy.delay(now), FIRST_DELAY);
        assert_eq!(policy.delay(now + FIRST_DELAY), Duration::ZERO);
        assert!(!policy.failed(now));
        assert_eq!(policy.delay(now), 2 * FIRST_DELAY);
        assert!(policy.failed(now));
        for _ in 0..100 {
            assert!(policy.failed(now));
        }
        assert_eq!(policy.delay(now), LONGEST_DELAY);
        policy.succeeded();
        assert_eq!(policy.delay(now), Duration::ZERO);
        assert!(!policy.failed(now));
    }
}
