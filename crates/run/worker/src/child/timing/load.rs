//! The load of continuous use, under which launches are timed where that is asked for.
//!
//! A GPU that is used without a pause lowers its clock to what its power allows. So before each timed
//! launch the kernel runs again and again, on inputs of its own, ten times as long as the device had
//! anything else to do; at first until clock and power have settled. The timed launch is prepared once
//! the last of these launches has ended, as after any other: nothing of it exists before.
//!
//! A kernel that spares itself in these launches would be timed at a clock that it never has in
//! continuous use. So each of them finds what a timed one finds: filled outputs, variables put back, L2
//! flushed if that is asked for. Some are verified, at places that nobody can foresee, and one of each
//! stretch is timed: a kernel that rests in them takes longer than when it is timed.

use std::time::Instant;

use super::inputs::{Inputs, Shown};
use super::judge::{Audit, Judge};
use super::stage::Stage;
use crate::child::device::executor::{Executor, TimingAids};
use crate::child::failure::{JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, restore_all};
use crate::child::memory::write_batch::Writes;
use crate::protocol::{LoadFacts, TimedLaunch};
use warpgauge_device::{DeviceError, Event};
use warpgauge_model::{CacheState, DeviceKind};
use warpgauge_statistics::Sorted;
use warpgauge_validate::Filling;

/// Shortest load before the first timed launch, seconds.
const SETTLE_S: f64 = 0.5;

/// Load for each second of anything else: ten elevenths of the time are load.
const LOAD_RATIO: f64 = 10.0;

/// Shortest and longest load before any other timed launch, seconds. The longest bears on launches
/// after a slow verification, of which there are some dozens.
const STRETCH_S: [f64; 2] = [0.002, 0.1];

/// Fewest launches of one stretch.
const LEAST_LAUNCHES: usize = 2;

/// Most launches that are queued together.
const MOST_QUEUED: usize = 256;

/// Launches of the load that are verified, about.
pub(super) const LOAD_AUDITS: u32 = 16;

/// The load before timed launches.
pub(in crate::child) struct Load {
    /// Places in the batch before which a launch of the load is verified, descending.
    verified: Vec<usize>,
    /// Seconds that one of its launches takes, with what comes before it.
    each_s: f64,
    /// When the last one ended.
    ended: Instant,
    /// Seconds that timed launches took since then: they are load as well.
    timed_s: f64,
    /// When the time of the timed launches is up.
    until: Option<Instant>,
    /// When the device had settled.
    settled: Instant,
    /// When the last timed launch had ended: what comes after it lies between no two of them.
    told: Instant,
    /// Seconds of load since then.
    loaded_s: f64,
    launches: u64,
    audited: u32,
    /// Time of the last launch of each stretch, milliseconds.
    samples_ms: Vec<f64>,
}

/// What launches of the load run on, and how.
pub(super) struct Ground<'a, 'job> {
    pub executor: &'a Executor,
    pub buffers: &'a mut [JobBuffer<'job>],
    pub inputs: &'a mut Inputs,
    pub cache: CacheState,
    /// Free until the timed launch.
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

    /// Loads the device for so many seconds, or as long as its clock needs to settle.
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

    /// A batch begins. Before the timed launches at `places`, which ascend, a launch of the load is
    /// verified; in so many seconds the time is up.
    pub(super) fn begin(&mut self, mut places: Vec<usize>, left_s: Option<f64>) {
        places.reverse();
        self.verified = places;
        let left = left_s.and_then(|left_s| std::time::Duration::try_from_secs_f64(left_s).ok());
        self.until = left.and_then(|left| Instant::now().checked_add(left));
    }

    /// Seconds that the load before a timed launch takes at least.
    pub(super) fn least_s(&self) -> f64 {
        STRETCH_S[0].max(LEAST_LAUNCHES as f64 * self.each_s)
    }

    /// The load before the timed launch at this place of the batch; it has ended when this returns.
    pub(super) fn before(
        &mut self,
        ground: &mut Ground<'_, '_>,
        arm: &mut LoadedProgram,
        judge: &mut dyn Judge,
        index: usize,
    ) -> JobResult<()> {
        if self.verified.pop_if(|place| *place == index).is_some() {
            // Any of the launches of a stretch, which ends with it.
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

    /// A timed launch has ended.
    pub(super) fn timed(&mut self, ms: f32) {
        let seconds = f64::from(ms) * 1e-3;
        self.timed_s += seconds;
        self.loaded_s += seconds;
        self.told = Instant::now();
    }

    /// What there was of it.
    pub(super) fn facts(&self) -> LoadFacts {
        let passed_s = self.told.duration_since(self.settled).as_secs_f64();
        LoadFacts {
            launches: self.launches,
            verified: self.audited,
            share: if passed_s > 0.0 { (self.loaded_s / passed_s).min(1.0) } else { 0.0 },
            median_ms: Sorted::new(&self.samples_ms).map(|sorted| sorted.median()),
        }
    }

    /// Seconds of load before the next timed launch.
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

    /// Launches on inputs of their own, for as many seconds as are wanted once these are drawn.
    fn stretch(
        &mut self,
        ground: &mut Ground<'_, '_>,
        arm: &mut LoadedProgram,
        wanted_s: impl FnOnce(&Self) -> f64,
    ) -> JobResult<()> {
        ground.advance()?;
        // Drawing them is not load, and is made up for like all that is not.
        ground.executor.stream.synchronize().map_err(candidate)?;
        let (wanted_s, began) = (wanted_s(self), Instant::now());
        loop {
            let left_s = wanted_s - began.elapsed().as_secs_f64();
            let launches = self.launches_in(left_s);
            self.queue(ground, arm, launches)?;
            if began.elapsed().as_secs_f64() >= wanted_s {
                return Ok(());
            }
            // One of each stretch: the last, which nobody knows before it has ended.
            self.samples_ms.pop();
        }
    }

    /// So many launches one behind the other; waits for the last, and returns its filling.
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
    /// Writes inputs that no launch found before.
    fn advance(&mut self) -> JobResult<Shown> {
        let mut writes = Writes::new(self.executor.tools()?);
        let shown = self.inputs.advance(self.buffers, &mut writes)?;
        writes.send().map_err(environment)?;
        Ok(shown)
    }

    /// Launches as when it is timed, but for the gate; the filling of the last, and what it took,
    /// milliseconds.
    fn launch(&mut self, arm: &mut LoadedProgram, launches: usize) -> JobResult<(Filling, f32)> {
        let tools = self.executor.tools()?;
        let wipe_shared = !self.inputs.are_all_moving(self.buffers);
        let how = TimedLaunch { cache: self.cache, wipe_shared };
        let [start, end] = self.events;
        let mut filling = Filling::FIXED;
        let mut one = |filling: Filling, is_last: bool| -> Result<(), DeviceError> {
            restore_all(self.buffers, filling, tools)?;
            let flush = self.executor.flush.as_ref();
            let (stream, support) = (tools.stream, tools.support);
            let mut stage = Stage { stream, support, flush, aids: self.aids.as_deref_mut() };
            stage.clear(arm, true, how)?;
            if is_last {
                start.record(stream)?;
            }
            arm.launch(self.buffers, stream)?;
            if is_last { end.record(stream) } else { Ok(()) }
        };
        for launch in 1..=launches {
            filling = self.inputs.filling();
            one(filling, launch == launches).map_err(candidate)?;
        }
        end.synchronize().map_err(candidate)?;
        Ok((filling, end.elapsed_ms_since(start).map_err(candidate)?))
    }
}

/// Seconds of load that make up for so many of anything else.
fn wanted_after(other_s: f64) -> f64 {
    (LOAD_RATIO * other_s).clamp(STRETCH_S[0], STRETCH_S[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_makes_up_for_the_time_without_it_within_bounds() {
        // A launch that takes little to prepare; one after a verification; one after a slow one.
        assert_eq!(wanted_after(0.0001), 0.002);
        assert_eq!(wanted_after(0.005), 0.05);
        assert_eq!(wanted_after(3.0), 0.1);
        // A clock that says less than the events do.
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
        // A second of load in no time is not more than all of it.
        assert_eq!(load.facts().share, 1.0);
        // What comes after the last of them, as handing over outputs, is nobody's rest.
        load.told = load.settled + std::time::Duration::from_secs(2);
        assert_eq!(load.facts().share, 0.5);
        assert_eq!((load.facts().launches, load.facts().median_ms), (0, None));
    }
}
