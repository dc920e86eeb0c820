//! Batches of launches. Each launch is prepared, timed and perhaps verified before the next one.

use super::inputs::{Inputs, Shown, present};
use super::judge::{Audit, Judge, OnDevice, Verification};
use super::load::{Ground, Load};
use super::sealed_turns::Turns;
use super::stage::Stage;
use super::trials::Health;
use crate::child::device::executor::BATCH;
use crate::child::device::executor::{Executor, TimingAids};
use crate::child::failure::{JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, addresses_of, restore_all};
use crate::protocol::{LineTimes, TimedLaunch};
use warpgauge_device::{ClockReading, EmulatorControl, Event, Staging, Stamp, clock_between};
use warpgauge_model::{CacheState, LaunchCounts};
use warpgauge_validate::Filling;

/// Device, buffers, inputs and conditions of a series of launches.
pub(in crate::child) struct Rig<'a, 'job> {
    pub executor: &'a mut Executor,
    pub buffers: &'a mut [JobBuffer<'job>],
    pub inputs: Inputs,
    /// State of the L2 cache at each launch.
    pub cache: CacheState,
    /// Connection for the launches that another process judges, if any.
    pub turns: Option<Turns>,
    /// The load before each timed launch, if any.
    pub load: Option<Load>,
    /// Whether the last launch was verified. The verification checked its inputs, and may have
    /// replaced them since.
    pub looked_at: bool,
    /// Health of the GPU during the timed launches.
    pub health: Health,
}

/// Whether a kernel's variables keep their content from launch to launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::child) enum Memory {
    /// The variables keep their content, as in production use. The kernel must be correct
    /// nevertheless.
    Kept,
    /// The variables are reset, so that no kernel can count launches, replay results or skip work.
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

/// Result of a batch of launches.
pub(in crate::child) struct Batch {
    /// Time of each launch, milliseconds.
    pub samples_ms: Vec<f32>,
    pub busy_ms: f64,
    pub clock: Option<ClockReading>,
}

impl Rig<'_, '_> {
    /// Makes one untimed launch with outputs filled with `filling`, and waits for it. Returns its
    /// inputs.
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

    /// Makes one launch with outputs filled with `filling`, and returns the emulator's counts.
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

    /// Makes `count` launches. Before each, the buffers are restored, and the kernel's variables
    /// are reset to their state after loading. Each launch has ended, and is verified if the judge
    /// selects it, before the content for the next launch is written.
    pub(in crate::child) fn run(
        &mut self,
        arm: &mut LoadedProgram,
        count: usize,
        judge: &mut dyn Judge,
    ) -> JobResult<Batch> {
        self.run_with(arm, count, judge, Memory::Wiped)
    }

    /// Like [`Self::run`]; `memory` selects whether the kernel's variables keep their content.
    pub(in crate::child) fn run_with(
        &mut self,
        arm: &mut LoadedProgram,
        count: usize,
        judge: &mut dyn Judge,
        memory: Memory,
    ) -> JobResult<Batch> {
        let count = count.clamp(1, BATCH);
        let stamps = [0, 1].map(|_| self.executor.stamp_staging());
        // The timing aids are taken out of the executor during the batch, because the rest of it is
        // borrowed at the same time.
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
        let wiped = memory == Memory::Wiped;
        // The device may verify a launch while the next one is prepared.
        let mut queued = false;
        for (index, events) in pairs.iter().take(count).enumerate() {
            if let Some(load) = &mut load {
                if std::mem::take(&mut queued) {
                    judge.settle(executor, self.buffers)?;
                }
                let (buffers, inputs, cache) = (&mut *self.buffers, &mut self.inputs, self.cache);
                let aids = aids.as_deref_mut();
                let mut ground = Ground { executor, buffers, inputs, cache, events, aids };
                load.before(&mut ground, arm, judge, index)?;
            }
            if let Some(turns) = turns.as_mut().filter(|_| wiped)
                && turns.takes(index)
            {
                if std::mem::take(&mut queued) {
                    judge.settle(executor, self.buffers)?;
                }
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
            let is_taken = judge.takes(index);
            // The host queues the verification while the launch runs.
            let early = is_taken && arm.keeps_to_its_stream();
            let verifying = Verifying { judge: &mut *judge, queued, next: early.then_some(index) };
            let how = (wiped, self.inputs.timed_launch(self.buffers, self.cache, wiped));
            let stage = Stage {
                stream,
                support,
                flush: executor.flush.as_ref(),
                aids: aids.as_deref_mut(),
            };
            let mut scene =
                Scene { executor, buffers: self.buffers, inputs: &mut self.inputs, stage };
            let Timed { shown, ms, verification } =
                scene.time(arm, filling, how, events, Some(verifying))?;
            load.iter_mut().for_each(|load| load.timed(ms));
            samples_ms.push(ms);
            let audit = Audit { trial: index, shown, filling, under_load: false };
            let verification = match verification {
                None if is_taken => Some(judge.start(executor, self.buffers, audit)?),
                verification => verification,
            };
            queued = verification == Some(Verification::Queued);
            self.looked_at = verification.is_some_and(|found| found != Verification::Skipped);
        }
        if queued {
            judge.settle(executor, self.buffers)?;
        }
        let after = stamp(&aids, after)?;
        last.record(stream).map_err(candidate)?;
        Ok(Taken { samples_ms, stamps: before.zip(after).map(<[Stamp; 2]>::from) })
    }

    /// Runs all steps of a program, times each separately, and uses inputs that no earlier launch
    /// had.
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

    /// Runs the load of continuous use for at least `least_s` seconds. The load continues in later
    /// batches.
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

    /// Makes one timed launch in a runner, on inputs that no earlier launch had. Returns these
    /// inputs, the filling of the outputs, and the time in milliseconds.
    pub(in crate::child) fn time_elsewhere(
        &mut self,
        arm: &mut LoadedProgram,
    ) -> JobResult<(Shown, Filling, f32)> {
        let tools = self.executor.tools()?;
        let filling = self.inputs.filling();
        let how = (true, self.inputs.timed_launch(self.buffers, self.cache, true));
        let (_, _, pairs) = split(self.executor.events.events());
        let mut scene = Scene {
            executor: self.executor,
            buffers: self.buffers,
            inputs: &mut self.inputs,
            stage: Stage { stream: tools.stream, support: tools.support, flush: None, aids: None },
        };
        let Timed { shown, ms, .. } = scene.time(arm, filling, how, &pairs[0], None)?;
        Ok((shown, filling, ms))
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

/// Judge of a timed launch and of the launch before it.
struct Verifying<'a> {
    judge: &'a mut dyn Judge,
    /// Whether the verification of the launch before is queued.
    queued: bool,
    /// Index of the launch in the batch, if its verification is to be queued while it runs.
    next: Option<usize>,
}

/// A timed launch that has ended.
struct Timed {
    shown: Shown,
    /// Time of the launch, milliseconds.
    ms: f32,
    /// State of the verification, if it was queued.
    verification: Option<Verification>,
}

/// Device, buffers and inputs of a timed launch.
struct Scene<'a, 'job> {
    executor: &'a Executor,
    buffers: &'a mut [JobBuffer<'job>],
    inputs: &'a mut Inputs,
    stage: Stage<'a>,
}

impl Scene<'_, '_> {
    /// Makes one timed launch on new inputs, and waits for it.
    fn time(
        &mut self,
        arm: &mut LoadedProgram,
        filling: Filling,
        (wiped, how): (bool, TimedLaunch),
        [start, end]: &[Event; 2],
        mut verifying: Option<Verifying<'_>>,
    ) -> JobResult<Timed> {
        let tools = self.executor.tools()?;
        if let Some(remote) = arm.remote() {
            let shown = self.inputs.prepare(self.buffers, filling, tools)?;
            if wiped {
                remote.forget();
            }
            let ms = remote.time(how, tools.stream).map_err(candidate)?;
            return Ok(Timed { shown, ms, verification: None });
        }
        let shown = self.inputs.prepare(self.buffers, filling, tools);
        let prepared = shown.and_then(|shown| {
            let address = addresses_of(self.buffers);
            let prepared = self.stage.prepare(arm, &address, (wiped, how));
            prepared.map(|()| shown).map_err(candidate)
        });
        let before = verifying.as_mut().filter(|verifying| verifying.queued);
        let before = before.map(|Verifying { judge, .. }| (judge.findings(self.buffers), judge));
        let shown = match before {
            Some((Ok(OnDevice::Unclear), judge)) => {
                self.stage.release();
                judge.resolve(self.executor, self.buffers)?;
                let shown = prepared?;
                present(shown, self.buffers, tools)?;
                restore_all(self.buffers, filling, tools).map_err(environment)?;
                let address = addresses_of(self.buffers);
                self.stage.prepare(arm, &address, (wiped, how)).map_err(candidate)?;
                shown
            }
            // The previous launch ended without a fault, so an error is due to its verification.
            Some((Err(failed), _)) => return Err(failed),
            Some((Ok(OnDevice::Right), _)) | None => prepared?,
        };
        let address = addresses_of(self.buffers);
        self.stage.launch(arm, &address, [start, end]).map_err(candidate)?;
        let verification = match verifying {
            Some(Verifying { judge, next: Some(trial), .. }) => {
                let audit = Audit { trial, shown, filling, under_load: false };
                judge.queue(self.executor, self.buffers, audit)
            }
            _ => Ok(None),
        };
        // A fault of the launch also makes the queue fail, and is the candidate's.
        end.synchronize().map_err(candidate)?;
        let ms = end.elapsed_ms_since(start).map_err(candidate)?;
        Ok(Timed { shown, ms, verification: verification? })
    }
}

/// Samples of a batch. All its work is queued, but the last event may be pending.
struct Taken {
    samples_ms: Vec<f32>,
    stamps: Option<[Stamp; 2]>,
}

/// Returns the first event, the second event (for the end of a batch), and pairs of the others.
fn split(events: &[Event]) -> (&Event, &Event, &[[Event; 2]]) {
    let ([first, last], pairs) = events.split_first_chunk::<2>().expect("2 * BATCH + 2 events");
    (first, last, pairs.as_chunks().0)
}
