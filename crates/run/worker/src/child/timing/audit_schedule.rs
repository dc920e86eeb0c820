//! Which launches are verified, and how long that may take.

use std::time::Duration;

use super::judge::Phase;
use crate::child::secret::Secret;
use warpgauge_model::DeviceKind;

/// Time that verifying timed launches may take: with fewer verified than were wanted, a time is not ranked.
const AUDIT_TIME: Duration = Duration::from_secs(10);

/// The same on the emulated device, which is slow, and whose times count for nothing.
const EMULATED_AUDIT_TIME: Duration = Duration::from_secs(2);

/// The part of that time that launches which keep their variables get beside it, in each phase.
const HISTORY_SHARE: u32 = 3;

/// The launches of a batch that are to be verified, and what verification took so far.
#[derive(Default)]
pub(crate) struct Assigned {
    pub phase: Phase,
    /// Launches of the phase before the batch.
    before: usize,
    /// Places in the batch, descending.
    places: Vec<usize>,
    /// Launches of the phase after the batch that will be chosen, as far as is known.
    later: usize,
    /// Which are verified where there is no time for all of them.
    secret: Secret,
    /// Launches of the phase that were verified.
    done: u32,
    /// Wall time that they took.
    spent: Duration,
    /// What it was when the batch began.
    spent_before: Duration,
}

impl Assigned {
    /// Another batch begins; `places` are ascending. `later`: how many launches of the phase will be
    /// chosen after it.
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

    /// Whether the launch at this place is one of them.
    pub(crate) fn takes(&mut self, index: usize) -> bool {
        self.places.pop_if(|place| *place == index).is_some()
    }

    /// Whether the launch that was taken is verified: the first of a phase is, and at least one of the
    /// others if it takes no longer than all of them may. Where there is no time for all that are to come,
    /// chance decides, so that the last are no safer than the second.
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

    /// How many launches will be taken after the one that was.
    pub(crate) fn later(&self) -> usize {
        self.places.len() + self.later
    }

    /// One was verified.
    pub(crate) fn took(&mut self, time: Duration) {
        self.spent += time;
        self.done += 1;
    }

    /// Wall time spent on the batch.
    pub(crate) fn spent_on_batch(&self) -> Duration {
        self.spent - self.spent_before
    }

    /// Place among the launches of the phase of the one at this place in the batch.
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
        // One of a phase is verified however long it takes, and then no other.
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

    /// A kernel that rests late, once the time for verifying would be up, is found.
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
            // A quarter of them, as there is time for.
            assert!((20..=26).contains(&verified.len()), "{}", verified.len());
            late += verified.iter().filter(|&&trial| trial >= batches * of_each / 2).count();
        }
        // Half of a quarter of 100, 100 times.
        assert!((1_000..1_500).contains(&late), "{late}");
    }
}
