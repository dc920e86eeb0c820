//! Selects the launches to verify, and limits the time for verification.

use std::time::Duration;

use super::judge::Phase;
use crate::child::secret::Secret;
use warpgauge_model::DeviceKind;

/// Time limit for verifying timed launches. If fewer launches are verified than planned, the
/// kernel's time is not ranked.
const AUDIT_TIME: Duration = Duration::from_secs(10);

/// The same limit for the emulated device, which is slow, and whose times are not used.
const EMULATED_AUDIT_TIME: Duration = Duration::from_secs(2);

/// Divisor of the time limit, for launches that keep their variables. Their limit applies to each
/// phase, in addition to the limit of timed launches.
const HISTORY_SHARE: u32 = 3;

/// The launches of a batch that are to be verified, and the time spent on verification so far.
#[derive(Default)]
pub(crate) struct Assigned {
    pub phase: Phase,
    /// Number of launches of the phase before the batch.
    before: usize,
    /// Positions in the batch, descending.
    places: Vec<usize>,
    /// Number of launches of the phase that will be chosen after the batch, as far as known.
    later: usize,
    /// Random source that decides which launches are verified if there is no time for all.
    secret: Secret,
    /// Number of launches of the phase that were verified.
    done: u32,
    /// Wall time of their verification.
    spent: Duration,
    /// Value of `spent` when the batch began.
    spent_before: Duration,
}

impl Assigned {
    /// Begins a batch; `places` are ascending. `later` is the number of launches of the phase that
    /// will be chosen after the batch.
    pub(crate) fn begin(
        &mut self,
        phase: Phase,
        before: usize,
        mut places: Vec<usize>,
        later: usize,
    ) {
        if phase != self.phase {
            *self = Self { phase, ..Self::default() };
        }
        places.reverse();
        (self.before, self.places, self.spent_before) = (before, places, self.spent);
        self.later = later;
    }

    /// Returns whether the launch at this position is chosen, and removes it.
    pub(crate) fn takes(&mut self, index: usize) -> bool {
        self.places.pop_if(|place| *place == index).is_some()
    }

    /// Returns whether to verify a chosen launch. The first of a phase is always verified, and so
    /// is a second one if one verification fits the limit. If there is no time for all remaining
    /// launches, chance decides, so that a cheating kernel gains nothing by waiting for late
    /// launches.
    pub(crate) fn has_time(&mut self, kind: DeviceKind) -> bool {
        let whole = match kind {
            DeviceKind::Cuda => AUDIT_TIME,
            DeviceKind::Emulator => EMULATED_AUDIT_TIME,
        };
        let limit = match self.phase {
            Phase::WarmUp | Phase::Lasting | Phase::Last => whole / HISTORY_SHARE,
            Phase::Timed => whole,
        };
        if self.done == 0 {
            return true;
        }
        let micros = |time: Duration| time.as_micros() as usize;
        let coming = 1 + self.later();
        let each = micros(self.spent / self.done);
        let left = micros(limit.saturating_sub(self.spent));
        let wanted = if self.done == 1 && each <= micros(limit) { left.max(each) } else { left };
        wanted > 0 && self.secret.below(each.saturating_mul(coming).max(1)) < wanted
    }

    /// Returns the number of launches that will be chosen after the current launch.
    pub(crate) fn later(&self) -> usize {
        self.places.len() + self.later
    }

    /// Records a verification and its wall time.
    pub(crate) fn took(&mut self, time: Duration) {
        self.spent += time;
        self.done += 1;
    }

    /// Returns the wall time of verification for this batch.
    pub(crate) fn spent_on_batch(&self) -> Duration {
        self.spent - self.spent_before
    }

    /// Converts a position in the batch to the index among the launches of the phase.
    pub(crate) fn trial(&self, index: usize) -> usize {
        self.before + index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_once_and_time_counts_for_its_phase() {
        let mut assigned = Assigned::default();
        assigned.begin(Phase::WarmUp, 0, vec![0, 2], 0);
        let taken = (0..4).filter(|&index| assigned.takes(index)).collect::<Vec<_>>();
        assert_eq!(taken, [0, 2]);
        // One launch of a phase is verified however long that takes, and then no other.
        assert!(assigned.has_time(DeviceKind::Cuda));
        assigned.took(AUDIT_TIME);
        assert_eq!(assigned.spent_on_batch(), AUDIT_TIME);
        assigned.begin(Phase::WarmUp, 4, vec![1], 0);
        assert_eq!((assigned.spent_on_batch(), assigned.trial(1)), (Duration::ZERO, 5));
        assert!(!assigned.has_time(DeviceKind::Cuda));
        assigned.begin(Phase::Timed, 0, Vec::new(), 0);
        assert!(assigned.has_time(DeviceKind::Cuda) && !assigned.takes(0));
    }

    #[test]
    fn one_is_verified_beside_the_first_however_long_it_takes() {
        for _ in 0..100 {
            let mut assigned = Assigned::default();
            assigned.begin(Phase::Timed, 0, (0..10).collect(), 0);
            let verified = (0..10).filter(|&index| {
                let verified = assigned.takes(index) && assigned.has_time(DeviceKind::Emulator);
                if verified {
                    assigned.took(EMULATED_AUDIT_TIME);
                }
                verified
            });
            assert_eq!(verified.count(), 2);
        }
    }

    /// The schedule must find a kernel that cheats late, when the time for verification would be
    /// over.
    #[test]
    fn where_there_is_no_time_for_all_none_of_them_is_safe() {
        let (batches, of_each) = (10, 10);
        let each = 4 * EMULATED_AUDIT_TIME / (batches * of_each) as u32;
        let mut late = 0;
        for _ in 0..100 {
            let mut assigned = Assigned::default();
            let mut verified = Vec::new();
            for batch in 0..batches {
                let (before, later) = (batch * of_each, (batches - batch - 1) * of_each);
                assigned.begin(Phase::Timed, before, (0..of_each).collect(), later);
                for index in 0..of_each {
                    if assigned.takes(index) && assigned.has_time(DeviceKind::Emulator) {
                        assigned.took(each);
                        verified.push(assigned.trial(index));
                    }
                }
            }
            assert_eq!(verified[0], 0);
            // There is time for a quarter of them.
            assert!((20..=26).contains(&verified.len()), "{}", verified.len());
            late += verified.iter().filter(|&&trial| trial >= batches * of_each / 2).count();
        }
        // Half of a quarter of 100, 100 times.
        assert!((1_000..1_500).contains(&late), "{late}");
    }
}
