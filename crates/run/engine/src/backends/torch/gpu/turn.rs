//! Times of locked calls by the judge's clock, and the overhead that they include.

use std::time::Duration;

/// Target length of a turn with several calls. In longer turns, a GPU at its power limit lowers its
/// clock.
const LONG: Duration = Duration::from_millis(3);

/// Maximum number of calls of a turn. If memory is short, fewer are made. If so few calls do not
/// resolve a difference, more turns follow.
const MOST: u32 = 4;

/// Minimum number of calls of a turn, by the minimum time of a call. The first call after another
/// process has used the device takes about 0.1 ms longer, which a median of three calls hides. For
/// long calls of both sides, this delay is below the margin of a comparison.
const FEWEST: [(Duration, u32); 3] =
    [(Duration::from_millis(5), 1), (Duration::from_millis(2), 2), (Duration::ZERO, 3)];

/// Additional time that polling a runner's gate page takes, compared with polling the judge's page.
pub(super) const WATCHING: Duration = Duration::from_micros(1);

/// Minimum time that is reported for a call, because ratios need times above zero.
const SHORTEST: Duration = Duration::from_nanos(10);

/// Times of some calls of one side, by the judge's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// Time of each call, from the release of its key to the hashes of its results.
    pub(super) calls: Vec<Duration>,
    /// Size of each result of a call, in bytes.
    pub(super) results: Vec<u64>,
}

impl Turn {
    fn median(&self) -> Duration {
        median(self.calls.clone())
    }

    /// Returns the number of calls that make the next turn long enough.
    pub(super) fn calls_of_next(&self) -> u32 {
        let median = self.median();
        let fewest =
            FEWEST.iter().find(|(least, _)| median >= *least).map_or(MOST, |(_, few)| *few);
        let wanted = LONG.as_nanos() / median.as_nanos().max(1) + 1;
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(fewest, MOST)
    }

    /// Returns the time of each call in milliseconds, without the overhead.
    pub(super) fn each_ms(&self, overhead: Overhead) -> Vec<f32> {
        let call = |took: &Duration| took.saturating_sub(overhead.median).max(SHORTEST);
        self.calls.iter().map(|took| (call(took).as_secs_f64() * 1e3) as f32).collect()
    }
}

/// Time to decrypt a call's inputs and to hash its results, without the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Overhead {
    pub(super) median: Duration,
    /// Difference between the tenth and the ninetieth percentile.
    spread: Duration,
}

impl Overhead {
    /// Computes the median and the spread of measurements.
    pub(super) fn of(mut measured: Vec<Duration>) -> Self {
        measured.sort();
        let at = |tenths: usize| {
            let index = measured.len().saturating_sub(1) * tenths / 10;
            measured.get(index).copied().unwrap_or_default()
        };
        Self { median: at(5), spread: at(9) - at(1) }
    }

    /// Returns the uncertainty of the overhead in milliseconds: half of its spread, plus the
    /// additional time of polling a runner's page.
    pub(super) fn resolution_ms(self) -> f64 {
        (self.spread / 2 + WATCHING).as_secs_f64() * 1e3
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn a_turn_has_as_many_calls_as_take_three_milliseconds_within_bounds() {
        let turn = |took| Turn { calls: vec![took; 3], results: Vec::new() };
        assert_eq!(turn(us(10)).calls_of_next(), MOST);
        assert_eq!(turn(us(1500)).calls_of_next(), 3);
        assert_eq!(turn(us(4999)).calls_of_next(), 2);
        assert_eq!(turn(us(5000)).calls_of_next(), 1);
        assert_eq!(turn(us(100_000)).calls_of_next(), 1);
        assert_eq!(Turn::default().calls_of_next(), MOST);
    }

    #[test]
    fn what_is_round_a_call_is_deducted_by_its_median_and_its_spread_is_the_resolution() {
        let overhead = Overhead::of((10..=20).map(us).collect());
        assert_eq!(overhead, Overhead { median: us(15), spread: us(8) });
        assert_eq!(overhead.resolution_ms(), 0.005);
        let turn = Turn { calls: vec![us(25), us(14)], results: Vec::new() };
        assert_eq!(turn.each_ms(overhead), [0.01, 1e-5]);
        assert_eq!(Overhead::of(Vec::new()), Overhead::default());
    }
}
