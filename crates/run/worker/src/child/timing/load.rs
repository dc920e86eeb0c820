//! The load of continuous use, under which launches are timed if the plan requests it.
//!
//! A GPU in continuous use lowers its clock to the value that its power limit allows. So before
//! each timed launch the kernel runs repeatedly, on separate inputs, ten times as long as the
//! device did anything else. The first load lasts until clock and power have settled. The timed
//! launch is prepared after the last load launch has ended, as after any other launch, so its data
//! do not exist before.
//!
//! A kernel that does less work in load launches would be timed at a clock that it never reaches in
//! continuous use. So each load launch gets the same conditions as a timed launch: filled outputs,
//! reset variables, and L2 flushed if requested. Some are verified, at positions that the kernel
//! cannot predict. The last launch of each stretch is timed: a kernel that idles in load launches
//! takes longer in them than in timed launches.

use std::time::Instant;

use super::inputs::{Inputs, Shown};
use super::judge::{Audit, Judge};
use super::stage::Stage;
use crate::child::device::executor::{Executor, TimingAids};
use crate::child::failure::{JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, addresses_of, restore_all};
use crate::child::memory::write_batch::Writes;
use crate::protocol::LoadFacts;
use warpgauge_device::{DeviceError, Event};
use warpgauge_model::{CacheState, DeviceKind};
use warpgauge_statistics::Sorted;
use warpgauge_validate::Filling;

/// Minimum load before the first timed launch, seconds.
const SETTLE_S: f64 = 0.5;

/// Load time divided by the time of all other work. Ten elevenths of the time are thus load.
const LOAD_RATIO: f64 = 10.0;

/// Minimum and maximum load before any other timed launch, seconds. The maximum applies only after
/// a slow verification, of which there are some dozens.
const STRETCH_S: [f64; 2] = [0.002, 0.1];

/// Minimum number of queued load launches.
const LEAST_LAUNCHES: usize = 2;

/// Maximum number of launches that are queued together.
const MOST_QUEUED: usize = 256;

/// Approximate number of load launches that are verified.
pub(super) const LOAD_AUDITS: u32 = 16;

/// The load before timed launches.
pub(in crate::child) struct Load {
    /// Positions in the batch of timed launches before which a load launch is verified, descending.
    verified: Vec<usize>,
    /// Wall time of one load launch including its preparation, seconds.
    each_s: f64,
    /// End of the last load launch.
    ended: Instant,
    /// Duration of timed launches since `ended`, seconds; they count as load as well.
    timed_s: f64,
    /// Deadline of the timed launches.
    until: Option<Instant>,
    /// Time at which the device had settled.
    settled: Instant,
    /// End of the last timed launch. Work after it is not between timed launches.
    told: Instant,
    /// Duration of load since `settled`, seconds, timed launches included.
    loaded_s: f64,
    launches: u64,
    audited: u32,
    /// Time of the last launch of each stretch, milliseconds.
    samples_ms: Vec<f64>,
}

/// Device, buffers and conditions of load launches.
pub(super) struct Ground<'a, 'job> {
    pub executor: &'a Executor,
    pub buffers: &'a mut [JobBuffer<'job>],
    pub inputs: &'a mut Inputs,
    pub cache: CacheState,
    /// Events that the load may use, because the timed launch has not started.
    pub events: &'a [Event; 2],
    pub aids: Option<&'a mut TimingAids>,
}

impl Load {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            verified: Vec::new(),
            each_s: 0.0,
            ended: now,
            timed_s: 0.0,
            until: None,
            settled: now,
            told: now,
            loaded_s: 0.0,
            launches: 0,
            audited: 0,
            samples_ms: Vec::new(),
        }
    }

    /// Loads the device until its clock has settled: for `least_s` seconds, but at least
    /// [`SETTLE_S`].
    pub(super) fn settle(
        &mut self,
        ground: &mut Ground<'_, '_>,
        arm: &mut LoadedProgram,
        least_s: f64,
    ) -> JobResult<()> {
        let wanted_s = match ground.executor.device().kind {
            DeviceKind::Cuda => least_s.max(SETTLE_S),
            DeviceKind::Emulator => 0.0,
        };
        self.stretch(ground, arm, |_| wanted_s)?;
        let now = Instant::now();
        (self.settled, self.told, self.loaded_s) = (now, now, 0.0);
        self.samples_ms.clear();
        Ok(())
    }

    /// Begins a batch. Before each of the timed launches at `places` (ascending), a load launch is
    /// verified. `left_s`: seconds until the deadline of the timed launches.
    pub(super) fn begin(&mut self, mut places: Vec<usize>, left_s: Option<f64>) {
        places.reverse();
        self.verified = places;
        let left = left_s.and_then(|left_s| std::time::Duration::try_from_secs_f64(left_s).ok());
        self.until = left.and_then(|left| Instant::now().checked_add(left));
    }

    /// Returns the minimum load before a timed launch, seconds.
    pub(super) fn least_s(&self) -> f64 {
        STRETCH_S[0].max(LEAST_LAUNCHES as f64 * self.each_s)
    }

    /// Runs the load before the timed launch at this position of the batch, and waits for its end.
    pub(super) fn before(
        &mut self,
        ground: &mut Ground<'_, '_>,
        arm: &mut LoadedProgram,
        judge: &mut dyn Judge,
        index: usize,
    ) -> JobResult<()> {
        if self.verified.pop_if(|place| *place == index).is_some() {
            // The number of launches is random, and the last of them is verified, so that the
            // kernel cannot predict its position.
            let launches = self.launches_in(STRETCH_S[0]);
            let launches = 1 + ground.inputs.secret.below(launches);
            let shown = ground.advance()?;
            let filling = self.queue(ground, arm, launches)?;
            let audit = Audit { trial: index, shown, filling, under_load: true };
            let verified = judge.verify(ground.executor, ground.buffers, audit)?;
            self.audited += u32::from(verified);
        }
        let kind = ground.executor.device().kind;
        self.stretch(ground, arm, |load| load.wanted_s(kind))
    }

    /// Records a timed launch, which counts as load.
    pub(super) fn timed(&mut self, ms: f32) {
        let seconds = f64::from(ms) * 1e-3;
        self.timed_s += seconds;
        self.loaded_s += seconds;
        self.told = Instant::now();
    }

    /// Summarises the load for the report.
    pub(super) fn facts(&self) -> LoadFacts {
        let passed_s = self.told.duration_since(self.settled).as_secs_f64();
        LoadFacts {
            launches: self.launches,
            verified: self.audited,
            share: if passed_s > 0.0 { (self.loaded_s / passed_s).min(1.0) } else { 0.0 },
            median_ms: Sorted::new(&self.samples_ms).map(|sorted| sorted.median()),
        }
    }

    /// Returns the seconds of load before the next timed launch.
    fn wanted_s(&self, kind: DeviceKind) -> f64 {
        // The emulated device has no clock that could settle.
        if kind == DeviceKind::Emulator {
            return 0.0;
        }
        let wanted_s = wanted_after(self.ended.elapsed().as_secs_f64() - self.timed_s);
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(wanted_s, |left| wanted_s.min(left.as_secs_f64()))
    }

    fn launches_in(&self, seconds: f64) -> usize {
        let launches = if self.each_s > 0.0 { (seconds / self.each_s).ceil() as usize } else { 0 };
        launches.clamp(LEAST_LAUNCHES, MOST_QUEUED)
    }

    /// Runs the load on separate inputs. `wanted_s` returns its duration in seconds, and is called
    /// after the inputs are drawn.
    fn stretch(
        &mut self,
        ground: &mut Ground<'_, '_>,
        arm: &mut LoadedProgram,
        wanted_s: impl FnOnce(&Self) -> f64,
    ) -> JobResult<()> {
        ground.advance()?;
        // Drawing inputs is not load. Load compensates for it as for other work.
        ground.executor.stream.synchronize().map_err(candidate)?;
        let (wanted_s, began) = (wanted_s(self), Instant::now());
        loop {
            let left_s = wanted_s - began.elapsed().as_secs_f64();
            let launches = self.launches_in(left_s);
            self.queue(ground, arm, launches)?;
            if began.elapsed().as_secs_f64() >= wanted_s {
                return Ok(());
            }
            // Only the last launch of a stretch is kept as a sample, because the kernel cannot
            // predict which one it is.
            self.samples_ms.pop();
        }
    }

    /// Queues launches, waits for the last one, and returns its filling.
    fn queue(
        &mut self,
        ground: &mut Ground<'_, '_>,
        arm: &mut LoadedProgram,
        launches: usize,
    ) -> JobResult<Filling> {
        let began = Instant::now();
        let (filling, ms) = ground.launch(arm, launches)?;
        let took_s = began.elapsed().as_secs_f64();
        self.each_s = took_s / launches as f64;
        self.launches += launches as u64;
        self.loaded_s += took_s;
        self.samples_ms.push(f64::from(ms));
        (self.ended, self.timed_s) = (Instant::now(), 0.0);
        Ok(filling)
    }
}

impl Ground<'_, '_> {
    /// Draws and writes inputs that no earlier launch had.
    fn advance(&mut self) -> JobResult<Shown> {
        let mut writes = Writes::new(self.executor.tools()?);
        let shown = self.inputs.advance(self.buffers, &mut writes)?;
        writes.send().map_err(environment)?;
        Ok(shown)
    }

    /// Makes launches under the conditions of a timed launch, but without the blocking kernel.
    /// Returns the filling and the time (milliseconds) of the last one.
    fn launch(&mut self, arm: &mut LoadedProgram, launches: usize) -> JobResult<(Filling, f32)> {
        let tools = self.executor.tools()?;
        let how = self.inputs.timed_launch(self.buffers, self.cache, true);
        let [start, end] = self.events;
        let mut filling = Filling::FIXED;
        let mut one = |filling: Filling, is_last: bool| -> Result<(), DeviceError> {
            restore_all(self.buffers, filling, tools)?;
            let flush = self.executor.flush.as_ref();
            let (stream, support) = (tools.stream, tools.support);
            let mut stage = Stage { stream, support, flush, aids: self.aids.as_deref_mut() };
            let address = addresses_of(self.buffers);
            stage.clear(arm, &address, true, how)?;
            if is_last {
                start.record(stream)?;
            }
            arm.launch_renewed(&address, stream)?;
            if is_last {
                end.record(stream)?;
            }
            arm.collect(&address, stream)
        };
        for launch in 1..=launches {
            filling = self.inputs.filling();
            one(filling, launch == launches).map_err(candidate)?;
        }
        end.synchronize().map_err(candidate)?;
        Ok((filling, end.elapsed_ms_since(start).map_err(candidate)?))
    }
}

/// Returns the seconds of load that compensate for `other_s` seconds of other work.
fn wanted_after(other_s: f64) -> f64 {
    (LOAD_RATIO * other_s).clamp(STRETCH_S[0], STRETCH_S[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_makes_up_for_the_time_without_it_within_bounds() {
        // A launch with little preparation; one after a verification; one after a slow
        // verification.
        assert_eq!(wanted_after(0.0001), 0.002);
        assert_eq!(wanted_after(0.005), 0.05);
        assert_eq!(wanted_after(3.0), 0.1);
        // The clock shows less time than the events.
        assert_eq!(wanted_after(-1.0), 0.002);
    }

    #[test]
    fn no_load_goes_on_when_the_time_is_up() {
        let mut load = Load::new();
        load.begin(vec![0, 3], Some(0.0));
        assert_eq!(load.wanted_s(DeviceKind::Cuda), 0.0);
        load.begin(vec![0, 3], Some(600.0));
        assert!(load.wanted_s(DeviceKind::Cuda) >= STRETCH_S[0]);
        load.begin(vec![0, 3], None);
        assert!(load.wanted_s(DeviceKind::Cuda) >= STRETCH_S[0]);
        assert_eq!(load.wanted_s(DeviceKind::Emulator), 0.0);
        assert_eq!(load.verified, [3, 0]);
    }

    #[test]
    fn launches_follow_the_time_that_one_takes() {
        let mut load = Load::new();
        assert_eq!(load.launches_in(10.0), LEAST_LAUNCHES);
        load.each_s = 0.001;
        assert_eq!(load.launches_in(0.0095), 10);
        assert_eq!(load.launches_in(-1.0), LEAST_LAUNCHES);
        assert_eq!(load.launches_in(10.0), MOST_QUEUED);
        load.each_s = 0.01;
        assert!((load.least_s() - 0.02).abs() < 1e-12);
    }

    #[test]
    fn timed_launches_are_load_too() {
        let mut load = Load::new();
        load.timed(1000.0);
        // The share is at most 1, even if no time has passed.
        assert_eq!(load.facts().share, 1.0);
        // Later work, such as returning outputs, does not count as idle time.
        load.told = load.settled + std::time::Duration::from_secs(2);
        assert_eq!(load.facts().share, 0.5);
        assert_eq!((load.facts().launches, load.facts().median_ms), (0, None));
    }
}
