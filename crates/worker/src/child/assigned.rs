//! Which launches are verified, and how long that may take.

use std::time::Duration;

use super::trials::Phase;
use warpgauge_model::DeviceKind;

/// Time after which no further timed launch is verified: with fewer than were wanted, a time is not
/// ranked.
const AUDIT_TIME: Duration = Duration::from_secs(10);

/// The same on the emulated device, which is slow, and whose times count for nothing.
const EMULATED_AUDIT_TIME: Duration = Duration::from_secs(2);

/// The part of that time that launches of the warm-up get beside it.
const HISTORY_SHARE: u32 = 3;

/// The launches of a batch that are to be verified, and what verification took so far.
#[derive(Default)]
pub(super) struct Assigned {
    pub phase: Phase,
    /// Launches of the phase before the batch.
    before: usize,
    /// Places in the batch, descending.
    places: Vec<usize>,
    /// Launches of the phase that were verified.
    done: u32,
    /// Wall time that they took.
    spent: Duration,
    /// What it was when the batch began.
    spent_before: Duration,
}

impl Assigned {
    /// Another batch begins; `places` are ascending.
    pub(super) fn begin(&mut self, phase: Phase, before: usize, mut places: Vec<usize>) {
        if phase != self.phase {
            *self = Self { phase, ..Self::default() };
        }
        places.reverse();
        (self.before, self.places, self.spent_before) = (before, places, self.spent);
    }

    /// Whether the launch at this place is one of them.
    pub(super) fn takes(&mut self, index: usize) -> bool {
        self.places.pop_if(|place| *place == index).is_some()
    }

    /// Whether there is time to verify another one: at least one of a phase is.
    pub(super) fn has_time(&self, kind: DeviceKind) -> bool {
        let whole = match kind {
            DeviceKind::Cuda => AUDIT_TIME,
            DeviceKind::Emulator => EMULATED_AUDIT_TIME,
        };
        let limit = match self.phase {
            Phase::WarmUp => whole / HISTORY_SHARE,
            Phase::Timed => whole,
        };
        self.done == 0 || self.spent < limit
    }

    /// One was verified.
    pub(super) fn took(&mut self, time: Duration) {
        self.spent += time;
        self.done += 1;
    }

    /// Wall time spent on the batch.
    pub(super) fn spent_on_batch(&self) -> Duration {
        self.spent - self.spent_before
    }

    /// Place among the launches of the phase of the one at this place in the batch.
    pub(super) fn trial(&self, index: usize) -> usize {
        self.before + index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_once_and_time_counts_for_its_phase() {
        let mut assigned = Assigned::default();
        assigned.begin(Phase::WarmUp, 0, vec![0, 2]);
        let taken = (0..4).filter(|&index| assigned.takes(index)).collect::<Vec<_>>();
        assert_eq!(taken, [0, 2]);
        // One of a phase is verified however long it takes, and then no other.
        assert!(assigned.has_time(DeviceKind::Cuda));
        assigned.took(AUDIT_TIME);
        assert_eq!(assigned.spent_on_batch(), AUDIT_TIME);
        assigned.begin(Phase::WarmUp, 4, vec![1]);
        assert_eq!((assigned.spent_on_batch(), assigned.trial(1)), (Duration::ZERO, 5));
        assert!(!assigned.has_time(DeviceKind::Cuda));
        assigned.begin(Phase::Timed, 0, Vec::new());
        assert!(assigned.has_time(DeviceKind::Cuda) && !assigned.takes(0));
    }
}
