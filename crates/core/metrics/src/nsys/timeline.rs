//! Busy and idle time of the GPU, computed from a trace. The main type is [`Timeline`].

use serde::Serialize;

use super::rows::NsysEvent;

/// Busy and idle time of a GPU from its first activity to its last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Time from the start of the first activity to the end of the last, seconds.
    pub span: f64,
    /// Time with at least one activity, seconds.
    pub busy: f64,
    /// Time with at least one kernel, seconds.
    pub kernels: f64,
    /// Number of gaps without any activity.
    pub gaps: usize,
    /// The longest gap, seconds.
    pub longest_gap: f64,
}

impl Timeline {
    /// Computes the timeline of activities. Each has a start and a duration in seconds, and whether
    /// it is a kernel. Returns `None` without activities.
    pub fn of(activities: impl Iterator<Item = (f64, f64, bool)>) -> Option<Self> {
        let mut all: Vec<(f64, f64, bool)> = activities
            .map(|(start, duration, kernel)| (start, start + duration.max(0.0), kernel))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, _, _) = *all.first()?;
        let kernels = merged(all.iter().filter(|event| event.2));
        let busy = merged(all.iter());
        let last = busy.last().map_or(first, |(_, end)| *end);
        let gaps: Vec<f64> = busy.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
        let length = |intervals: &[(f64, f64)]| intervals.iter().map(|(from, to)| to - from).sum();
        Some(Self {
            span: last - first,
            busy: length(&busy),
            kernels: length(&kernels),
            gaps: gaps.len(),
            longest_gap: gaps.iter().copied().fold(0.0, f64::max),
        })
    }

    /// Returns busy time as a percentage of the span; `None` for a span of 0.
    pub fn utilisation_pct(&self) -> Option<f64> {
        (self.span > 0.0).then(|| 100.0 * self.busy / self.span)
    }

    /// Returns idle time, seconds.
    pub fn idle(&self) -> f64 {
        (self.span - self.busy).max(0.0)
    }
}

/// Computes the timeline of one device's events. Returns `None` without events.
pub fn timeline<'a>(events: impl Iterator<Item = &'a NsysEvent>) -> Option<Timeline> {
    Timeline::of(events.map(|event| (event.start, event.duration, event.grid.is_some())))
}

/// Merges intervals that touch. They must be sorted by their start.
fn merged<'a>(intervals: impl Iterator<Item = &'a (f64, f64, bool)>) -> Vec<(f64, f64)> {
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for &(from, to, _) in intervals {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(start: f64, duration: f64, kernel: bool) -> NsysEvent {
        NsysEvent {
            name: String::new(),
            start,
            duration,
            correlation: None,
            grid: kernel.then_some([1; 3]),
            block: None,
            registers: None,
            bytes: None,
            throughput: None,
            device: String::new(),
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
