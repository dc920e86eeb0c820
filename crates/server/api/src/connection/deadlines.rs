//! Deadlines for clients: [`Deadlines`].

use std::time::{Duration, Instant};

use warpgauge_config::ServerConfig;

/// Limits on how long the server waits for a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// Maximum time between requests.
    pub(crate) idle: Duration,
    /// Maximum time for the head of a request, from its first byte.
    pub(crate) head: Duration,
    /// Maximum time for the whole body of a request.
    pub(crate) body: Duration,
    /// Maximum time until the next piece of a body arrives, and until a client reads more of an
    /// answer. It is also the total delay that is allowed before the minimum speed applies.
    pub(crate) stall: Duration,
    /// Minimum average speed after this delay, bytes per second.
    pub(crate) min_bytes_per_s: f64,
}

impl Deadlines {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let seconds = |given| Duration::try_from_secs_f64(given).unwrap_or(Duration::MAX);
        Self {
            idle: seconds(config.idle_timeout_s),
            head: seconds(config.head_timeout_s),
            body: seconds(config.body_timeout_s),
            stall: seconds(config.stall_timeout_s),
            min_bytes_per_s: config.min_bytes_per_s,
        }
    }

    /// Returns how long to wait for the next piece of a body that began at `started`, and of which
    /// `bytes` have arrived.
    pub(crate) fn next_piece(&self, started: Instant, now: Instant, bytes: usize) -> Duration {
        let spent = now.saturating_duration_since(started);
        let left = self.pace(bytes as u64).min(self.body).saturating_sub(spent);
        left.min(self.stall)
    }

    /// Returns the maximum total time for which a client may have kept the server waiting after it
    /// has read `sent` bytes.
    pub(crate) fn taking(&self, sent: u64) -> Duration {
        self.pace(sent)
    }

    /// Returns the maximum time for the transfer of this number of bytes.
    fn pace(&self, bytes: u64) -> Duration {
        let seconds = bytes as f64 / self.min_bytes_per_s;
        let moving = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        self.stall.saturating_add(moving)
    }

    /// Returns the interval at which deadlines are checked. A missed deadline is detected at most
    /// this much later.
    pub(crate) fn tick(&self) -> Duration {
        let shortest = self.idle.min(self.head).min(self.stall);
        (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn deadlines() -> Deadlines {
        Deadlines {
            idle: SECOND,
            head: SECOND,
            body: 3_600 * SECOND,
            stall: 30 * SECOND,
            min_bytes_per_s: 10_000.0,
        }
    }

    #[test]
    fn a_body_that_moves_has_time_and_one_that_drips_has_not() {
        let deadlines = deadlines();
        let start = Instant::now();
        let left = |spent: u32, bytes| deadlines.next_piece(start, start + spent * SECOND, bytes);
        assert_eq!(left(0, 0), 30 * SECOND);
        // The client sends 286 MiB at 10 Mbit/s.
        assert_eq!(left(239, 299_000_000), 30 * SECOND);
        // The client sends one byte per second.
        assert!(left(29, 29) < 2 * SECOND);
        assert_eq!(left(31, 31), Duration::ZERO);
        // The client is fast, but its body does not end.
        assert_eq!(left(3_600, 1 << 40), Duration::ZERO);
        assert_eq!(left(3_590, 1 << 40), 10 * SECOND);
    }

    #[test]
    fn deadlines_are_those_of_the_configuration() {
        let config: warpgauge_config::Config =
            toml::from_str(warpgauge_config::DEFAULT_TOML).unwrap();
        let deadlines = Deadlines::new(&config.server);
        assert_eq!(deadlines.stall, 30 * SECOND);
        assert_eq!(deadlines.tick(), SECOND);
    }
}
