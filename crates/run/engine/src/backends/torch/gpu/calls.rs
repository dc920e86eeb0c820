//! The order of the calls of one evaluation on a device: one with the contract's own inputs, a batch to warm
//! up, batches that events are round, and batches that the judge's clock is round. Every call is verified.

use std::time::{Duration, Instant};

use super::Gpu;
use super::arena::Whose;
use super::shelf::NotShelved;
use super::stage::{Outside, Side, Stage, Turn, not_shelved};
use crate::backends::torch::inputs::Inputs;
use crate::backends::torch::judge::{Clocks, Judge, Judged, Plan, Stop};
use crate::backends::torch::player::Player;
use crate::backends::torch::values::Named;
use warpgauge_report::InputsShown;
use warpgauge_statistics::StopReason;
use warpgauge_torch::{Batch, Fault, MAX_FRAME_BYTES};
use warpgauge_validate::Reason;

/// Calls of a batch that events are round.
const EVENTS: u32 = 32;

/// How long a batch is to be that the judge's clock is round: what is not known of handing over is less
/// than a hundredth of it. In longer ones a GPU that is at its limit lowers its clock.
pub(super) const LONG: Duration = Duration::from_millis(10);

/// Such batches, and the calls of the first, which says how many the others need.
const BATCHES: usize = 3;
const PILOT: u32 = 8;

/// Fewest calls of them, where there is memory for their inputs: how long a call takes is the submission's
/// to say in the first.
pub(super) const FEWEST: u32 = 16;

/// Most calls where results do not lie side by side: they go through the host.
const STRIDED: u32 = 16;

/// Bytes of a frame that a tensor of an answer may take.
const TOLD_BYTES: usize = 384;

/// What a batch is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The contract's own inputs.
    First,
    Plain,
    Events,
    Outside,
}

/// What a batch of the candidate's calls came to.
pub(super) struct Made {
    pub(super) turn: Turn,
    /// What each call returned, by place.
    pub(super) values: Vec<Named>,
}

/// Where the inputs of a call come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seeds {
    Fresh,
    Same(Option<u64>),
}

impl Judge {
    /// Calls on the device, and verifies each call. `idle`: what handing over takes, measured before the
    /// submission was there.
    pub(in crate::backends::torch) fn run_on(
        mut self,
        gpu: &Gpu,
        idle: Duration,
    ) -> (Judged, Player) {
        let ended = self.calls_on(gpu, idle);
        self.ended(ended)
    }

    fn calls_on(&mut self, gpu: &Gpu, idle: Duration) -> Result<(), Stop> {
        self.share_parameters()?;
        let before = self.candidate.parameters().map_err(Stop::Candidate)?;
        self.candidate.move_to_device().map_err(Stop::Candidate)?;
        for (reference, _) in &mut self.expectations.references {
            reference.move_to_device().map_err(Stop::Reference)?;
        }
        self.begin_backward()?;
        let varies = self.plan.is_some_and(|plan| plan.fresh)
            && self.inputs.can_vary()
            && self.expectations.data.is_empty();
        self.judged.shown = Some(if varies { InputsShown::Fresh } else { InputsShown::Same });
        let mut stage = self.stage(gpu, idle)?;
        let own = matches!(self.inputs, Inputs::Made).then(|| self.seed());
        self.batch(&mut stage, vec![own], Kind::First)?;
        if let Some(plan) = self.plan {
            let seeds = if varies { Seeds::Fresh } else { Seeds::Same(own) };
            self.timed(&mut stage, plan, seeds)?;
        }
        self.check_parameters_on(&mut stage, &before)?;
        // Nothing counts that is read of the candidate after this.
        self.still_stopped()?;
        if self.trace {
            let seeds = if varies { Seeds::Fresh } else { Seeds::Same(own) };
            self.trace(&mut stage, seeds)?;
        }
        if self.count {
            self.count(&mut stage, own)?;
        }
        self.conclude(stage)
    }

    /// The calls that are timed, after some that are not.
    fn timed(&mut self, stage: &mut Stage<'_>, plan: Plan, seeds: Seeds) -> Result<(), Stop> {
        let began = Instant::now();
        let count = self.calls_at_once(stage);
        self.judged.clocks = Some(Clocks {
            hand_over_ms: stage.idle.as_secs_f64() * 1e3,
            flushed: stage.gpu.flush_bytes(),
            warmup: 2 * count.min(PILOT),
            ..Clocks::default()
        });
        let next = |judge: &mut Self, stage: &mut Stage<'_>, calls: u32, kind: Kind| {
            let seeds = judge.seeds_of(seeds, calls);
            judge.batch(stage, seeds, kind)
        };
        next(self, stage, count.min(PILOT), Kind::Plain)?;
        next(self, stage, count.min(PILOT), Kind::Outside)?;
        let calls = stage.long_enough(count);
        stage.outside.clear();
        for done in 0..BATCHES {
            if done > 0 && began.elapsed() > plan.max_time / 2 {
                break;
            }
            next(self, stage, calls, Kind::Outside)?;
        }
        loop {
            let done =
                self.judged.clocks.as_ref().map_or(0, |clocks| clocks.inside_ms.len()) as u32;
            let all = done >= plan.trials;
            if all || done > 0 && began.elapsed() > plan.max_time {
                let why = if all { StopReason::TrialsDone } else { StopReason::TimeBudget };
                self.judged.stopped = Some(why);
                break;
            }
            next(self, stage, (plan.trials - done).min(EVENTS).min(count), Kind::Events)?;
        }
        self.side_by_side(stage, seeds, count)
    }

    /// Seeds of the inputs of so many calls.
    pub(super) fn seeds_of(&mut self, seeds: Seeds, calls: u32) -> Vec<Option<u64>> {
        let mut seed = || match seeds {
            Seeds::Fresh => Some(self.seed()),
            Seeds::Same(seed) => seed,
        };
        (0..calls).map(|_| seed()).collect()
    }

    /// Most calls of a batch: as there is memory for their inputs and their results, and room to tell of
    /// them.
    pub(super) fn calls_at_once(&self, stage: &Stage<'_>) -> u32 {
        let leaves = self.judged.outputs.len().max(1);
        let told = MAX_FRAME_BYTES * 7 / 8 / (leaves * TOLD_BYTES);
        let returned: u64 = self.judged.outputs.iter().map(|(_, value)| value.bytes()).sum();
        let sides = 1 + stage.references.len() as u64;
        let kept = (16 << 30) / (returned.max(1) * sides);
        // What a submission makes takes its time on the host.
        let made = if matches!(self.inputs, Inputs::Made) { 32 } else { u32::MAX };
        let most = u32::try_from(kept.min(told as u64)).unwrap_or(u32::MAX);
        let most = if stage.strided { most.min(STRIDED) } else { most };
        stage.arena.sets.min(most).min(made).max(1)
    }

    /// One batch of all sides, verified.
    fn batch(
        &mut self,
        stage: &mut Stage<'_>,
        seeds: Vec<Option<u64>>,
        kind: Kind,
    ) -> Result<(), Stop> {
        let generator = self.drawn(stage, &seeds)?;
        let flush = if kind == Kind::Events { stage.gpu.flush_bytes() } else { 0 };
        let Made { turn, values } = self.candidate_on(stage, (&seeds, generator), flush)?;
        let expected = self.expected_on(stage, (&seeds, generator))?.values;
        self.verify_batch(stage, (&values, &expected), &seeds, kind == Kind::First)?;
        match kind {
            Kind::Events => self.take_times(turn.calls)?,
            Kind::Outside => stage.outside.push(Outside { turn, seeds }),
            Kind::First | Kind::Plain => {}
        }
        Ok(())
    }

    /// Has the inputs of a batch made, where a submission makes them; the seed of random numbers in it.
    pub(super) fn drawn(
        &mut self,
        stage: &mut Stage<'_>,
        seeds: &[Option<u64>],
    ) -> Result<u64, Stop> {
        if matches!(self.inputs, Inputs::Made) {
            let began = Instant::now();
            self.draw(stage, seeds)?;
            self.judged.presenting += began.elapsed();
        }
        Ok(self.seed_of_call(seeds.first().copied().flatten()))
    }

    /// Has the candidate ready to make a batch of calls, and its inputs there; how long writing these took.
    pub(super) fn candidate_ready(
        &mut self,
        stage: &mut Stage<'_>,
        (seeds, generator): (&[Option<u64>], u64),
        flush: u64,
    ) -> Result<Duration, Stop> {
        let batch = Batch {
            arguments: &stage.arena.tree,
            stride: stage.arena.stride,
            count: seeds.len() as u32,
            seed: generator,
            flush,
        };
        stage.candidate.blocks.tidy();
        let ready = self.candidate.session.prepare(&batch);
        ready.map_err(|fault| Stop::Candidate(self.candidate.failed(fault)))?;
        let presenting = stage.arena.present(stage.gpu, Whose::Candidate, seeds);
        let presenting = presenting.map_err(|error| self.not_shelved(error))?;
        self.judged.presenting += presenting;
        Ok(presenting)
    }

    /// One batch of the candidate's calls, and copies of what they returned.
    pub(super) fn candidate_on(
        &mut self,
        stage: &mut Stage<'_>,
        with: (&[Option<u64>], u64),
        flush: u64,
    ) -> Result<Made, Stop> {
        let count = with.0.len() as u32;
        let presenting = self.candidate_ready(stage, with, flush)?;
        let ran = self.candidate.session.run();
        let ran = ran.map_err(|fault| Stop::Candidate(self.candidate.failed(fault)))?;
        self.judged.executing += ran.took;
        if ran.returned.len() != count as usize {
            let what = format!(
                "it tells of {} calls, of {count} that were to be made",
                ran.returned.len()
            );
            return Err(Stop::Candidate(self.candidate.failed(Fault::Forged(what))));
        }
        let root = self.root();
        let also = stage.arena.also(Whose::Candidate, &stage.changing, count);
        let Side { blocks, shelf } = &mut stage.candidate;
        let shelved = shelf.fill(stage.gpu, blocks, &self.candidate, (&ran.returned, root), &also);
        let shelved = shelved.map_err(|error| self.not_shelved(error))?;
        stage.strided |= shelved.strided;
        let turn = Turn::new(count, presenting, ran.took, &shelved);
        Ok(Made { turn, values: shelved.values })
    }

    /// Whether inputs are what they were, and results what is expected.
    pub(super) fn verify_batch(
        &mut self,
        stage: &mut Stage<'_>,
        (returned, expected): (&[Named], &[Named]),
        seeds: &[Option<u64>],
        first: bool,
    ) -> Result<(), Stop> {
        let began = Instant::now();
        self.judged.verified += seeds.len() as u32;
        let changed = stage.arena.changed(stage.gpu, seeds, &stage.changing);
        if let Some(place) = changed.map_err(|error| self.not_shelved(error))? {
            let name = self.name_of(&place);
            return Err(self.wrong(Reason::input_modified(&name, None)));
        }
        let values = match self.named_all(returned)? {
            Ok(values) => values,
            Err(reason) => return Err(self.wrong(reason)),
        };
        self.compared(stage, &values, expected, first)?;
        if first {
            self.judged.arguments = Some(stage.arena.tree.map(&mut |placed| told(placed)));
        }
        self.judged.verifying += began.elapsed();
        Ok(())
    }

    pub(super) fn root(&self) -> &'static str {
        if self.inputs.outputs().is_empty() { "output" } else { "returned" }
    }

    /// What events say; values that cannot be are no times.
    fn take_times(&mut self, count: u32) -> Result<(), Stop> {
        let times = self.candidate.session.times();
        let times = times.map_err(|fault| Stop::Candidate(self.candidate.failed(fault)))?;
        let usable = times.iter().all(|ms| ms.is_finite() && *ms > 0.0 && *ms < 1e7);
        if !usable || times.len() != count as usize {
            let fault = Fault::Forged(format!("it tells of times that cannot be: {times:?}"));
            return Err(Stop::Candidate(self.candidate.failed(fault)));
        }
        if let Some(clocks) = &mut self.judged.clocks {
            clocks.inside_ms.extend(times.iter().map(|ms| *ms as f32));
        }
        Ok(())
    }

    pub(super) fn not_shelved(&self, error: NotShelved) -> Stop {
        not_shelved(&self.candidate, false, error)
    }
}

/// An argument, for the report.
fn told(placed: &warpgauge_torch::Placed) -> warpgauge_torch::TensorAt {
    warpgauge_torch::TensorAt {
        address: placed.offset,
        block: None,
        dtype: placed.dtype,
        shape: placed.shape.clone(),
        strides: Vec::new(),
    }
}
