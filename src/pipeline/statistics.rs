//! What this process has done so far, for those who watch it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::prepare::CompileOutcome;
use crate::report::{
    CompilationStatistics, DeviceStatistics, DeviceUse, JobState, ProfilingStatistics,
    ServiceStatistics, ThroughputStatistics,
};
use crate::worker::Lease;
use crate::worker::protocol::RunOutcome;

/// Time that counts as recent, seconds.
const RECENT_S: u64 = 300;

/// Counters of this process. They start from nothing with it.
pub(super) struct Statistics {
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    compilation: CompilationStatistics,
    profiling: ProfilingStatistics,
    devices: DeviceStatistics,
    held_s: BTreeMap<u32, f64>,
    throughput: ThroughputStatistics,
    ended: BTreeMap<JobState, u64>,
    /// Jobs that ended, by second since the start; no more than the recent ones.
    recent: VecDeque<(u64, u64)>,
}

impl Statistics {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, inner: Mutex::default() }
    }

    pub(super) fn compiled(&self, outcome: &CompileOutcome, took: Duration) {
        let compilation = &mut self.lock().compilation;
        compilation.time.add(took.as_secs_f64());
        match outcome {
            CompileOutcome::Compiled(compiled) => {
                compilation.successful += 1;
                compilation.cache_hits += u64::from(compiled.candidate.cache_hit);
                compilation.cache_misses += u64::from(!compiled.candidate.cache_hit);
            }
            CompileOutcome::Failed(_) => {
                compilation.failed += 1;
                compilation.cache_misses += 1;
            }
        }
    }

    pub(super) fn ran(&self, outcome: &RunOutcome, took: Duration) {
        let profiling = &mut self.lock().profiling;
        profiling.time.add(took.as_secs_f64());
        if outcome.failure.is_some() {
            profiling.failed += 1;
            return;
        }
        profiling.successful += 1;
        if !outcome.checks.is_empty() {
            let right = outcome.checks.iter().all(|check| check.comparison.passed);
            profiling.correct += u64::from(right);
            profiling.wrong += u64::from(!right);
        }
    }

    /// Counts a lease until it is dropped.
    pub(super) fn leased(&self, lease: Lease) -> Leased<'_> {
        let devices = &mut self.lock().devices;
        devices.acquisitions += 1;
        devices.wait.add(lease.queue_wait().as_secs_f64());
        Leased { lease, since: Instant::now(), statistics: self }
    }

    pub(super) fn began(&self) {
        self.lock().throughput.total += 1;
    }

    pub(super) fn ended(&self, state: JobState, took_s: f64) {
        let second = self.started.elapsed().as_secs();
        let mut inner = self.lock();
        match state {
            JobState::Completed => inner.throughput.completed += 1,
            _ => inner.throughput.failed += 1,
        }
        inner.throughput.end_to_end.add(took_s);
        *inner.ended.entry(state).or_insert(0) += 1;
        match inner.recent.back_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => inner.recent.push_back((second, 1)),
        }
        inner.forget_before(second);
    }

    /// Jobs that ended in this process, by state.
    pub(super) fn ended_by_state(&self) -> BTreeMap<JobState, u64> {
        self.lock().ended.clone()
    }

    /// All of it but the jobs that are kept.
    pub(super) fn so_far(&self) -> ServiceStatistics {
        let uptime_s = self.started.elapsed().as_secs_f64();
        let mut inner = self.lock();
        inner.forget_before(uptime_s as u64);
        let recent = inner.recent.iter().map(|(_, count)| count).sum();
        let devices = inner.held_s.iter().map(|(&device, &held_s)| DeviceUse {
            device,
            held_s,
            utilization: (held_s / uptime_s.max(1e-9)).min(1.0),
        });
        ServiceStatistics {
            compilation: inner.compilation,
            profiling: inner.profiling,
            devices: DeviceStatistics { devices: devices.collect(), ..inner.devices.clone() },
            throughput: ThroughputStatistics { uptime_s, recent, ..inner.throughput },
            ..ServiceStatistics::default()
        }
    }

    /// Additions only: a panic inside leaves the counters usable.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget_before(&mut self, second: u64) {
        while self.recent.front().is_some_and(|(at, _)| at + RECENT_S < second) {
            self.recent.pop_front();
        }
    }
}

/// A lease that is counted.
pub(super) struct Leased<'a> {
    lease: Lease,
    since: Instant,
    statistics: &'a Statistics,
}

impl Deref for Leased<'_> {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl DerefMut for Leased<'_> {
    fn deref_mut(&mut self) -> &mut Lease {
        &mut self.lease
    }
}

impl Drop for Leased<'_> {
    fn drop(&mut self) {
        let held_s = self.since.elapsed().as_secs_f64();
        let mut inner = self.statistics.lock();
        inner.devices.releases += 1;
        inner.devices.held.add(held_s);
        *inner.held_s.entry(self.lease.device().ordinal).or_insert(0.0) += held_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recent_is_bounded() {
        let statistics = Statistics::new(Instant::now());
        for _ in 0..1000 {
            statistics.ended(JobState::Completed, 0.5);
        }
        statistics.ended(JobState::Cancelled, 2.0);
        assert!(statistics.lock().recent.len() <= 2);
        let told = statistics.so_far().throughput;
        assert_eq!((told.completed, told.failed, told.recent), (1000, 1, 1001));
        assert_eq!((told.end_to_end.min_s, told.end_to_end.max_s), (0.5, 2.0));
        assert_eq!(statistics.ended_by_state()[&JobState::Completed], 1000);
        statistics.lock().forget_before(RECENT_S + 10);
        assert!(statistics.lock().recent.is_empty());
    }
}
