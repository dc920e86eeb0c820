//! Launches in batches. Each launch is prepared, timed and perhaps verified before the next.

use super::inputs::{Inputs, Shown};
use super::judge::{Audit, Judge};
use super::load::{Ground, Load};
use super::sealed_turns::Turns;
use super::stage::Stage;
use crate::child::device::executor::BATCH;
use crate::child::device::executor::{Executor, TimingAids};
use crate::child::failure::{JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, addresses_of};
use crate::child::memory::tools::Tools;
use crate::protocol::{LineTimes, TimedLaunch};
use warpgauge_device::{
    ClockReading, DeviceError, EmulatorControl, Event, Staging, Stamp, clock_between,
};
use warpgauge_model::{CacheState, LaunchCounts};
use warpgauge_validate::Filling;

/// Device, buffers, inputs and conditions of launches.
pub(in crate::child) struct Rig<'a, 'job> {
    pub executor: &'a mut Executor,
    pub buffers: &'a mut [JobBuffer<'job>],
    pub inputs: Inputs,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// The launches that another process judges, if any.
    pub turns: Option<Turns>,
    /// The load before each timed launch, if any.
    pub load: Option<Load>,
    /// Whether the last launch was verified. Its inputs were checked then, and verification may have replaced
    /// them since.
    pub looked_at: bool,
}

/// Whether a kernel's variables keep their content from launch to launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::child) enum Memory {
    /// They keep it, as in production use: the kernel must be right all the same.
    Kept,
    /// They are reset, so that no launch can count launches, replay results or skip work.
    Wiped,
}

/// A judge that verifies no launch.
pub(in crate::child) struct NoJudge;

impl Judge for NoJudge {
    fn takes(&mut self, _: usize) -> bool {
        false
    }

    fn verify(&mut self, _: &Executor, _: &mut [JobBuffer<'_>], _: Audit) -> JobResult<bool> {
        Ok(false)
    }
}

/// Result of a batch.
pub(in crate::child) struct Batch {
    /// Time of each launch, milliseconds.
    pub samples_ms: Vec<f32>,
    pub busy_ms: f64,
    pub clock: Option<ClockReading>,
}

impl Rig<'_, '_> {
    /// Makes one untimed launch on outputs that hold `filling`, and waits for it.
    pub(in crate::child) fn launch_once(
        &mut self,
        arm: &mut LoadedProgram,
        filling: Filling,
    ) -> JobResult<Shown> {
        let tools = self.executor.tools()?;
        let shown = self.inputs.prepare(self.buffers, filling, tools)?;
        arm.launch(self.buffers, tools.stream).map_err(candidate)?;
        tools.stream.synchronize().map_err(candidate)?;
        Ok(shown)
    }

    /// Makes one launch and returns the emulator's counts, on outputs that hold `filling`.
    pub(in crate::child) fn count_launch(
        &mut self,
        arm: &mut LoadedProgram,
        emulator: EmulatorControl,
        filling: Filling,
    ) -> JobResult<Option<LaunchCounts>> {
        let tools = self.executor.tools()?;
        self.inputs.prepare(self.buffers, filling, tools)?;
        let counted = match arm.remote() {
            Some(remote) => remote.count(tools.stream),
            None => emulator.count(arm.has_steps, || {
                arm.launch(self.buffers, tools.stream)?;
                tools.stream.synchronize()
            }),
        };
        counted.map_err(candidate)
    }

    /// Runs `count` launches, each on restored buffers and with the kernel's variables reset to their state
    /// after loading. Each launch has ended, and was verified if the judge selects it, before anything is
    /// written for the next.
    pub(in crate::child) fn run(
        &mut self,
        arm: &mut LoadedProgram,
        count: usize,
        judge: &mut dyn Judge,
    ) -> JobResult<Batch> {
        self.run_with(arm, count, judge, Memory::Wiped)
    }

    /// Does the same as [`Self::run`]; `memory` selects whether the kernel's variables keep their content.
    pub(in crate::child) fn run_with(
        &mut self,
        arm: &mut LoadedProgram,
        count: usize,
        judge: &mut dyn Judge,
        memory: Memory,
    ) -> JobResult<Batch> {
        let count = count.clamp(1, BATCH);
        let stamps = [0, 1].map(|_| self.executor.stamp_staging());
        // The aids leave the executor during the batch, since the rest of it is borrowed beside them.
        let mut aids = self.executor.timing.take();
        let mut turns = self.turns.take();
        let mut load = self.load.take();
        let judges = (judge, turns.as_mut());
        let beside = (aids.as_mut(), load.as_mut().filter(|_| memory == Memory::Wiped));
        let taken = self.launch_all(arm, count, (judges, memory), stamps, beside);
        (self.turns, self.load) = (turns, load);
        if let Some(aids) = &aids {
            aids.blocking_kernel.release();
        }
        self.executor.timing = aids;
        self.collect(taken?)
    }

    fn launch_all(
        &mut self,
        arm: &mut LoadedProgram,
        count: usize,
        ((judge, mut turns), memory): ((&mut dyn Judge, Option<&mut Turns>), Memory),
        stamps: [Option<Staging>; 2],
        (mut aids, mut load): (Option<&mut TimingAids>, Option<&mut Load>),
    ) -> JobResult<Taken> {
        let executor = &*self.executor;
        let tools = executor.tools()?;
        let (stream, support) = (tools.stream, tools.support);
        let (first, last, pairs) = split(executor.events.events());
        first.record(stream).map_err(candidate)?;
        let [before, after] = stamps;
        let stamp = |aids: &Option<&mut TimingAids>, staging: Option<Staging>| {
            let taken = match (aids, staging) {
                (Some(aids), Some(staging)) => aids.stamps.take(support, staging, stream).map(Some),
                _ => Ok(None),
            };
            taken.map_err(candidate)
        };
        let before = stamp(&aids, before)?;
        let mut samples_ms = Vec::with_capacity(count);
        for (index, events) in pairs.iter().take(count).enumerate() {
            if let Some(load) = &mut load {
                let (buffers, inputs, cache) = (&mut *self.buffers, &mut self.inputs, self.cache);
                let aids = aids.as_deref_mut();
                let mut ground = Ground { executor, buffers, inputs, cache, events, aids };
                load.before(&mut ground, arm, judge, index)?;
            }
            if let Some(turns) = turns.as_mut().filter(|_| memory == Memory::Wiped)
                && turns.takes(index)
            {
                // The sealed judge verifies this launch; this judge must skip it.
                let _ = judge.takes(index);
                let aids = aids.as_deref_mut();
                let ms = turns.launch(executor, arm, self.buffers, events, aids)?;
                load.iter_mut().for_each(|load| load.timed(ms));
                samples_ms.push(ms);
                self.looked_at = true;
                continue;
            }
            let filling = self.inputs.filling();
            let shown = self.inputs.prepare(self.buffers, filling, tools)?;
            let wiped = memory == Memory::Wiped;
            let ms = self.time(arm, tools, wiped, events, aids.as_deref_mut());
            let ms = ms.map_err(candidate)?;
            load.iter_mut().for_each(|load| load.timed(ms));
            samples_ms.push(ms);
            self.looked_at = judge.takes(index) && {
                let audit = Audit { trial: index, shown, filling, under_load: false };
                judge.verify(executor, self.buffers, audit)?
            };
        }
        let after = stamp(&aids, after)?;
        last.record(stream).map_err(candidate)?;
        Ok(Taken { samples_ms, stamps: before.zip(after).map(<[Stamp; 2]>::from) })
    }

    /// Does all steps of a program, each timed on its own, on inputs that no launch saw before.
    pub(in crate::child) fn time_steps(
        &mut self,
        arm: &mut LoadedProgram,
    ) -> JobResult<Vec<LineTimes>> {
        let filling = self.inputs.filling();
        self.inputs.prepare(self.buffers, filling, self.executor.tools()?)?;
        let mut aids = self.executor.timing.take();
        let times = arm.time_steps(self.executor, self.buffers, aids.as_mut());
        self.executor.timing = aids;
        self.looked_at = false;
        times.map_err(candidate)
    }

    /// Loads the device as in continuous use, for at least `least_s` seconds.
    pub(in crate::child) fn settle(
        &mut self,
        arm: &mut LoadedProgram,
        least_s: f64,
    ) -> JobResult<()> {
        let mut aids = self.executor.timing.take();
        let mut load = Load::new();
        let (_, _, pairs) = split(self.executor.events.events());
        let mut ground = Ground {
            executor: self.executor,
            buffers: self.buffers,
            inputs: &mut self.inputs,
            cache: self.cache,
            events: &pairs[0],
            aids: aids.as_mut(),
        };
        let settled = load.settle(&mut ground, arm, least_s);
        self.executor.timing = aids;
        self.load = Some(load);
        settled
    }

    /// Makes one timed launch in a runner, on inputs that no launch saw before. Returns these, the filling,
    /// and the time in milliseconds.
    pub(in crate::child) fn time_elsewhere(
        &mut self,
        arm: &mut LoadedProgram,
    ) -> JobResult<(Shown, Filling, f32)> {
        let tools = self.executor.tools()?;
        let filling = self.inputs.filling();
        let shown = self.inputs.prepare(self.buffers, filling, tools)?;
        let (_, _, pairs) = split(self.executor.events.events());
        let ms = self.time(arm, tools, true, &pairs[0], None);
        Ok((shown, filling, ms.map_err(candidate)?))
    }

    /// Makes one timed launch on prepared buffers, waits for it, and returns its time in milliseconds.
    fn time(
        &self,
        arm: &mut LoadedProgram,
        tools: Tools<'_>,
        wiped: bool,
        [start, end]: &[Event; 2],
        aids: Option<&mut TimingAids>,
    ) -> Result<f32, DeviceError> {
        // If all inputs change, old content of shared memory is useless to the kernel.
        let wipe_shared = wiped && !self.inputs.are_all_moving(self.buffers);
        let how = TimedLaunch { cache: self.cache, wipe_shared };
        if let Some(remote) = arm.remote() {
            if wiped {
                remote.forget();
            }
            return remote.time(how, tools.stream);
        }
        let flush = self.executor.flush.as_ref();
        let mut stage = Stage { stream: tools.stream, support: tools.support, flush, aids };
        let address = addresses_of(self.buffers);
        stage.queue(arm, &address, (wiped, how), [start, end])?;
        end.synchronize()?;
        end.elapsed_ms_since(start)
    }

    fn collect(&self, Taken { samples_ms, stamps }: Taken) -> JobResult<Batch> {
        let (first, last, _) = split(self.executor.events.events());
        last.synchronize().map_err(candidate)?;
        let busy_ms = f64::from(last.elapsed_ms_since(first).map_err(candidate)?);
        let clock = match stamps {
            Some([before, after]) => {
                let before = before.finish().map_err(environment)?;
                let after = after.finish().map_err(environment)?;
                clock_between(&before, &after)
            }
            None => None,
        };
        Ok(Batch { samples_ms, busy_ms, clock })
    }
}

/// Samples of a batch whose launches are all queued.
struct Taken {
    samples_ms: Vec<f32>,
    stamps: Option<[Stamp; 2]>,
}

/// Returns the first event, the last, and the pairs in between.
fn split(events: &[Event]) -> (&Event, &Event, &[[Event; 2]]) {
    let ([first, last], pairs) = events.split_first_chunk::<2>().expect("2 * BATCH + 2 events");
    (first, last, pairs.as_chunks().0)
}
