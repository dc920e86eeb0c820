//! How long clients may take.

use std::time::{Duration, Instant};

use warpgauge_config::ServerConfig;

/// How long the server waits for its clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// Between requests.
    pub(crate) idle: Duration,
    /// For the head of a request, from its first byte.
    pub(crate) head: Duration,
    /// For a body in all.
    pub(crate) body: Duration,
    /// For the next piece of a body, and for room to send; also what a client may be late in all before
    /// its speed counts.
    pub(crate) stall: Duration,
    /// Slowest average speed after that, bytes per second.
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

    /// How long the next piece of a body is waited for that began at `started` and has `bytes` so far.
    pub(crate) fn next_piece(&self, started: Instant, now: Instant, bytes: usize) -> Duration {
        let spent = now.saturating_duration_since(started);
        let left = self.pace(bytes as u64).min(self.body).saturating_sub(spent);
        left.min(self.stall)
    }

    /// How long a client that took `sent` bytes may have kept the server waiting.
    pub(crate) fn taking(&self, sent: u64) -> Duration {
        self.pace(sent)
    }

    /// How long so many bytes may take.
    fn pace(&self, bytes: u64) -> Duration {
        let seconds = bytes as f64 / self.min_bytes_per_s;
        let moving = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        self.stall.saturating_add(moving)
    }

    /// How often deadlines are looked at: they are kept to this.
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
        // 286 MiB over 10 Mbit/s.
        assert_eq!(left(239, 299_000_000), 30 * SECOND);
        // A byte a second.
        assert!(left(29, 29) < 2 * SECOND);
        assert_eq!(left(31, 31), Duration::ZERO);
        // Fast enough, and yet without an end.
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
