//! What the judge's clock says of locked calls, and what it says where there is no call.

use std::time::Duration;

/// How long a turn of several calls is to be. In longer ones a GPU that is at its limit lowers its clock.
const LONG: Duration = Duration::from_millis(3);

/// Most calls of a turn, where there is memory for their inputs. A difference that few calls do not resolve gets more
/// turns.
const MOST: u32 = 4;

/// Fewest calls of a turn, by how long one takes at least. The first call after another process used the device takes some
/// 0.1 ms longer. The median of three does not show that, and calls that are long hardly do.
const FEWEST: [(Duration, u32); 3] =
    [(Duration::from_millis(20), 1), (Duration::from_millis(2), 2), (Duration::ZERO, 3)];

/// What watching a runner's page takes longer than watching the judge's own.
const WATCHING: Duration = Duration::from_micros(1);

/// No call takes less: a time of zero has no ratio to another one.
const SHORTEST: Duration = Duration::from_nanos(10);

/// What the judge's clock says of some calls of one side.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// Each from its key to the hashes of its results.
    pub(super) calls: Vec<Duration>,
    /// Bytes of each result of a call.
    pub(super) results: Vec<u64>,
}

impl Turn {
    fn median(&self) -> Duration {
        median(self.calls.clone())
    }

    /// Calls of another turn that make it long enough.
    pub(super) fn calls_of_next(&self) -> u32 {
        let median = self.median();
        let fewest =
            FEWEST.iter().find(|(least, _)| median >= *least).map_or(MOST, |(_, few)| *few);
        let wanted = LONG.as_nanos() / median.as_nanos().max(1) + 1;
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(fewest, MOST)
    }

    /// Milliseconds of each call, without what there is round one.
    pub(super) fn each_ms(&self, overhead: Overhead) -> Vec<f32> {
        let call = |took: &Duration| took.saturating_sub(overhead.median).max(SHORTEST);
        self.calls.iter().map(|took| (call(took).as_secs_f64() * 1e3) as f32).collect()
    }
}

/// What decrypting a call's inputs and hashing its results take, with no call between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Overhead {
    pub(super) median: Duration,
    /// From the tenth to the ninetieth percentile.
    spread: Duration,
}

impl Overhead {
    /// The median and the spread of some measurements.
    pub(super) fn of(mut measured: Vec<Duration>) -> Self {
        measured.sort();
        let at = |tenths: usize| {
            let index = measured.len().saturating_sub(1) * tenths / 10;
            measured.get(index).copied().unwrap_or_default()
        };
        Self { median: at(5), spread: at(9) - at(1) }
    }

    /// What is not known of it, milliseconds: half of its spread, and what watching the page takes.
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
        assert_eq!(turn(us(5000)).calls_of_next(), 2);
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
