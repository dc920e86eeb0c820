//! Busy and idle time of the GPU, computed from a trace. The main type is [`Timeline`].

use schemars::JsonSchema;
use serde::Serialize;

use super::rows::NsysEvent;

/// Busy and idle time of a GPU from its first activity to its last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Timeline {
    /// Time from the start of the first activity to the end of the last, seconds.
    pub span: f64,
    /// Time with at least one activity, seconds.
    pub busy: f64,
    /// Time with at least one kernel, seconds.
    pub kernels: f64,
    /// Number of gaps in which there was no activity.
    pub gaps: usize,
    /// The longest gap, seconds.
    pub longest_gap: f64,
}

impl Timeline {
    /// Computes the timeline of activities. Each activity is given by its start and its duration in
    /// seconds, and by whether it is a kernel. Returns `None` if there are no activities.
    pub fn of(activities: impl Iterator<Item = (f64, f64, bool)>) -> Option<Self> {
        let mut all: Vec<(f64, f64, bool)> = activities.collect();
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut times = BusyTimes::default();
        all.into_iter().for_each(|(start, duration, kernel)| times.add(start, duration, kernel));
        times.timeline()
    }

    /// Returns busy time as a percentage of the span. Returns `None` for a span of 0.
    pub fn utilisation_pct(&self) -> Option<f64> {
        (self.span > 0.0).then(|| 100.0 * self.busy / self.span)
    }

    /// Returns the time without any activity, seconds.
    pub fn idle(&self) -> f64 {
        (self.span - self.busy).max(0.0)
    }
}

/// Computes the timeline of one device's events. Returns `None` if there are no events.
pub fn timeline<'a>(events: impl Iterator<Item = &'a NsysEvent>) -> Option<Timeline> {
    Timeline::of(events.map(|event| (event.start, event.duration, event.grid.is_some())))
}

/// The timeline of activities in the order of their starts, which are not kept.
#[derive(Debug, Clone, Default)]
pub(super) struct BusyTimes {
    activities: Merged,
    kernels: Merged,
    /// Start of the activity before.
    before: Option<f64>,
    unsorted: bool,
}

/// Intervals of time, of which those that touch are one.
#[derive(Debug, Clone, Default)]
struct Merged {
    /// Start of the first interval, and the last interval.
    first: Option<f64>,
    last: (f64, f64),
    /// Time of the intervals before the last.
    closed: f64,
    gaps: usize,
    longest_gap: f64,
}

impl BusyTimes {
    /// Adds an activity: start and duration in seconds, and whether it is a kernel.
    pub(super) fn add(&mut self, start: f64, duration: f64, kernel: bool) {
        self.unsorted |= self.before.is_some_and(|before| start < before);
        self.before = Some(start);
        let end = start + duration.max(0.0);
        self.activities.add(start, end);
        if kernel {
            self.kernels.add(start, end);
        }
    }

    /// Returns whether an activity was added after one that started later.
    pub(super) fn is_unsorted(&self) -> bool {
        self.unsorted
    }

    /// Returns the timeline; `None` without activities, or if they were unsorted.
    pub(super) fn timeline(&self) -> Option<Timeline> {
        let first = self.activities.first.filter(|_| !self.unsorted)?;
        Some(Timeline {
            span: self.activities.last.1 - first,
            busy: self.activities.length(),
            kernels: self.kernels.length(),
            gaps: self.activities.gaps,
            longest_gap: self.activities.longest_gap,
        })
    }
}

impl Merged {
    fn add(&mut self, from: f64, to: f64) {
        if self.first.is_none() {
            self.first = Some(from);
            self.last = (from, to);
        } else if from <= self.last.1 {
            self.last.1 = self.last.1.max(to);
        } else {
            self.gaps += 1;
            self.longest_gap = self.longest_gap.max(from - self.last.1);
            self.closed += self.last.1 - self.last.0;
            self.last = (from, to);
        }
    }

    fn length(&self) -> f64 {
        self.closed + (self.last.1 - self.last.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nsys::SharedName;

    fn event(start: f64, duration: f64, kernel: bool) -> NsysEvent {
        NsysEvent {
            name: SharedName::default(),
            start,
            duration,
            correlation: None,
            grid: kernel.then_some([1; 3]),
            block: None,
            registers: None,
            bytes: None,
            throughput: None,
            device: SharedName::default(),
            stream: None,
        }
    }

    #[test]
    fn overlaps_count_once_and_gaps_are_found() {
        let events = [
            event(20.0, 5.0, true),
            event(0.0, 4.0, false),
            event(2.0, 4.0, true),
            event(6.0, 1.0, false),
        ];
        let found = timeline(events.iter()).unwrap();
        let expected =
            Timeline { span: 25.0, busy: 12.0, kernels: 9.0, gaps: 1, longest_gap: 13.0 };
        assert_eq!(found, expected);
        assert_eq!(found.utilisation_pct(), Some(48.0));
        assert_eq!(found.idle(), 13.0);
        assert_eq!(timeline([].iter()), None);
        let instant = timeline([event(1.0, 0.0, true)].iter()).unwrap();
        assert_eq!(instant.utilisation_pct(), None);
    }
}
