//! Times two kernels side by side, block by block.
//!
//! Every block allocates its buffers at other addresses and loads both modules again. Effects of
//! addresses are thus noise that averages out, not an advantage for one side. Within a block the
//! two kernels alternate (ABBA or BAAB), so that drift affects both equally.

use std::time::Instant;

use crate::child::device::executor::BATCH;
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, SHIFT_STEP, Use, allocate_all, rewrite_inputs};
use crate::child::memory::residue::Residue;
use crate::child::run::{Run, timed};
use crate::child::secret::Secret;
use crate::child::timing::batch::{NoJudge, Rig};
use crate::child::timing::inputs::{Inputs, all_move, present};
use crate::child::timing::judge::{Audit, Judge};
use crate::child::timing::trials::Health;
use crate::child::verify::expectations::{Expectations, Expected, elements};
use crate::child::verify::{arranged, comparison, outputs, references, surroundings, ties};
use crate::protocol::{Blame, FromWorker, KernelProgram, PairPlan, PairedRun};
use warpgauge_model::WorkerTimings;
use warpgauge_statistics::paired::{
    Arm as PairedArm, BlockOrder, LookOutcome, MAX_BLOCKS, PairedBlock, decide_at_look,
};
use warpgauge_validate::{Filling, Reason, ReasonCode};

/// Limit of the distance that the content of a buffer moves between blocks, bytes.
const MAX_SHIFT: usize = 2 << 20;

/// Number of launches of each kernel in the batch before a block's timed launches. One launch
/// precedes that batch, because the first launch after loading is slow.
const UNTIMED: usize = 3;

/// Time per launch below which a kernel makes [`SHORT_FACTOR`] times as many launches per slot,
/// milliseconds.
const SHORT_MS: f32 = 0.025;
const SHORT_FACTOR: usize = 4;

/// The first `AUDITED_BLOCKS` blocks are all audited; later, one block in `BLOCKS_PER_AUDIT` is.
const AUDITED_BLOCKS: usize = 4;
const BLOCKS_PER_AUDIT: usize = 8;

/// Measures blocks until the policy decides, the time limit is reached, or the maximum number of
/// blocks is done.
pub(crate) fn run(run: &mut Run<'_, '_>, plan: &PairPlan, told: &mut PairedRun) -> JobResult<()> {
    let Run { executor, job, link, outcome, residue, .. } = run;
    executor.arm_checks(false)?;
    executor.reset_persisting_l2()?;
    let _ = link.send(&FromWorker::Started);
    let began = Instant::now();
    let mut secret = Secret::new();
    let mut looks = plan.policy.looks.iter().enumerate().peekable();
    let most = plan.policy.looks.last().copied().unwrap_or(0).min(MAX_BLOCKS) as usize;
    for index in 0..most {
        if index > 0 && began.elapsed().as_secs_f64() >= plan.max_time_s {
            break;
        }
        let program = &job.program;
        let timings = &mut outcome.timings;
        let block = Block { executor, program, plan, secret: &mut secret, timings, index };
        let (measured, audited) = block.measure(residue)?;
        told.blocks.push(measured);
        told.audits.done += u32::from(audited);
        link.progress(told.blocks.len(), &[]);
        if let Some((look, _)) = looks.next_if(|(_, count)| **count as usize == index + 1)
            && let LookOutcome::Done(_) = decide_at_look(&told.blocks, look, &plan.policy)
        {
            break;
        }
    }
    let _ = link.send(&FromWorker::Executed);
    Ok(())
}

struct Block<'a> {
    executor: &'a mut Executor,
    program: &'a KernelProgram,
    plan: &'a PairPlan,
    secret: &'a mut Secret,
    timings: &'a mut WorkerTimings,
    index: usize,
}

impl Block<'_> {
    /// Measures a block. Returns the block, and whether outputs of one of its launches were
    /// verified.
    fn measure(mut self, residue: &mut Residue) -> JobResult<(PairedBlock, bool)> {
        let mut buffers = Vec::new();
        let measured = self.measure_on(&mut buffers, residue);
        // The buffers are freed so that the next block gets other memory. This zeroes them.
        buffers.into_iter().flat_map(JobBuffer::into_memory).for_each(drop);
        self.executor.unload(residue).map_err(environment)?;
        measured
    }

    fn measure_on<'job>(
        &mut self,
        buffers: &mut Vec<JobBuffer<'job>>,
        residue: &mut Residue,
    ) -> JobResult<(PairedBlock, bool)>
    where
        Self: 'job,
    {
        let throttled = self.executor.throttle_reasons().unwrap_or(0);
        let filled = Instant::now();
        self.allocate(buffers)?;
        self.timings.h2d_ms += filled.elapsed().as_secs_f64() * 1e3;
        let began = Instant::now();
        // The loading order is random too.
        let reference_first = self.secret.below(2) == 0;
        let (plan, program) = (self.plan, self.program);
        let executor = &mut *self.executor;
        let mut inputs = Inputs::new(buffers, plan.fresh_inputs);
        inputs.leave_contract();
        let restored = inputs.restored(buffers);
        let mut load =
            |launches, how| LoadedProgram::load(executor, launches, buffers, residue, how);
        let (mut a, mut b);
        if reference_first {
            a = load(&program.launches, (Blame::Reference, restored))?;
            b = load(&plan.rival, (Blame::Candidate, restored))?;
        } else {
            b = load(&plan.rival, (Blame::Candidate, restored))?;
            a = load(&program.launches, (Blame::Reference, restored))?;
        }
        self.timings.load_ms += began.elapsed().as_secs_f64() * 1e3;
        let executor = &mut *self.executor;
        let mut rig = Rig {
            executor,
            buffers,
            inputs,
            cache: plan.cache,
            turns: None,
            load: None,
            looked_at: false,
            health: Health::default(),
        };
        let began = Instant::now();
        let taken = slots(&mut rig, &mut a, &mut b, plan, self.index, self.secret);
        self.timings.execute_ms += began.elapsed().as_secs_f64() * 1e3;
        let Slots { mut block, audited, verify_ms, busy_ms } = taken?;
        self.timings.device_busy_ms += busy_ms;
        self.timings.verify_ms += verify_ms;
        self.timings.execute_ms -= verify_ms;
        surroundings::guards_intact(rig.executor, rig.buffers)?;
        for arm in [a, b] {
            arm.retire(residue);
        }
        block.throttle_reasons = throttled | self.executor.throttle_reasons().unwrap_or(0);
        Ok((block, audited))
    }

    fn allocate<'job>(&mut self, buffers: &mut Vec<JobBuffer<'job>>) -> JobResult<()>
    where
        Self: 'job,
    {
        let guard = Some(self.executor.guard_byte());
        let secret = &mut *self.secret;
        // A process that opens a buffer must get whole pages of it.
        let whole_pages = self.executor.runners.is_some()
            || !all_move(&self.program.buffers, self.plan.fresh_inputs);
        let usage = || {
            let shift = secret.below(MAX_SHIFT / SHIFT_STEP) * SHIFT_STEP;
            Use { copied: false, guard, shift, whole_pages, poisoned: true }
        };
        allocate_all(&self.program.buffers, usage, self.executor.tools()?, buffers)
    }
}

struct Slots {
    block: PairedBlock,
    /// Whether outputs of one of the block's launches were verified.
    audited: bool,
    verify_ms: f64,
    busy_ms: f64,
}

/// Verifies one launch of the candidate by running the reference on the same inputs.
struct Witness<'a> {
    plan: &'a PairPlan,
    reference: &'a mut LoadedProgram,
    /// Index in the batch of the launch to verify.
    place: usize,
    moving: bool,
    /// Filling of the reference's outputs for the verification.
    filling: Filling,
    verify_ms: f64,
}

impl Judge for Witness<'_> {
    fn takes(&mut self, index: usize) -> bool {
        index == self.place
    }

    fn verify(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<bool> {
        let Self { plan, reference, filling, .. } = self;
        let work = || {
            surroundings::guards_intact(executor, buffers)?;
            check(executor, buffers, plan, (reference, *filling), audit)
        };
        let verified = timed(&mut self.verify_ms, work);
        if !self.moving {
            // No data may remain that a later launch with the same inputs could copy.
            executor.pinned.scrub();
        }
        verified.map(|()| true)
    }
}

/// Whether to check that a turn of the candidate leaves the inputs unchanged.
struct InputsLooked(bool);

impl InputsLooked {
    /// Restores inputs that the reference may have changed. Called before the turns.
    fn begin(rig: &Rig<'_, '_>, is_looked: bool) -> JobResult<Self> {
        if is_looked {
            rewrite_inputs(rig.buffers, false, rig.executor.tools()?).map_err(environment)?;
        }
        Ok(Self(is_looked))
    }

    /// Checks that the inputs are unchanged. Called after the turns.
    fn end(self, rig: &Rig<'_, '_>) -> JobResult<()> {
        if self.0 { surroundings::nothing_else_touched(rig.executor, rig.buffers) } else { Ok(()) }
    }
}

/// Measures the four slots of a block.
fn slots(
    rig: &mut Rig<'_, '_>,
    a: &mut LoadedProgram,
    b: &mut LoadedProgram,
    plan: &PairPlan,
    index: usize,
    secret: &mut Secret,
) -> JobResult<Slots> {
    let moving = rig.inputs.are_all_moving(rig.buffers);
    // Both kernels share inputs that do not vary, so a candidate that changes one could slow the
    // reference down. The turn after which the inputs are checked is random, so that the candidate
    // cannot restore them in time.
    let looked_at = (!moving).then(|| secret.below(3));
    let mut fastest = f32::INFINITY;
    for (turn, arm) in [&mut *a, &mut *b].into_iter().enumerate() {
        let inputs = InputsLooked::begin(rig, turn == 1 && looked_at == Some(0))?;
        // This launch makes the driver load what it loads lazily, before a blocking kernel runs.
        rig.launch_once(arm, Filling::FIXED)?;
        let samples = rig.run(arm, UNTIMED, &mut NoJudge)?.samples_ms;
        fastest = samples.into_iter().fold(fastest, f32::min);
        inputs.end(rig)?;
    }
    let factor = if fastest < SHORT_MS { SHORT_FACTOR } else { 1 };
    let trials = (plan.trials_per_slot as usize * factor).min(BATCH);
    let order = BlockOrder::of_block(index);
    let mut slots = Slots {
        block: PairedBlock {
            order,
            a: Default::default(),
            b: Default::default(),
            clock_hz: [None; 4],
            throttle_reasons: 0,
        },
        audited: false,
        verify_ms: 0.0,
        busy_ms: 0.0,
    };
    let audited = index < AUDITED_BLOCKS || index.is_multiple_of(BLOCKS_PER_AUDIT);
    let audited_slot = secret.below(2);
    let mut taken = [0; 2];
    for (place, arm) in order.arms().into_iter().enumerate() {
        let (samples, nth) = match arm {
            PairedArm::A => (&mut slots.block.a, &mut taken[0]),
            PairedArm::B => (&mut slots.block.b, &mut taken[1]),
        };
        let is_looked = arm == PairedArm::B && looked_at == Some(*nth + 1);
        let inputs = InputsLooked::begin(rig, is_looked)?;
        let batch = match arm {
            PairedArm::A => rig.run(a, trials, &mut NoJudge)?,
            PairedArm::B if audited && *nth == audited_slot => {
                let place = secret.below(trials);
                let mut witness = Witness {
                    plan,
                    reference: a,
                    place,
                    moving,
                    filling: Filling::drawn(secret.bits()),
                    verify_ms: 0.0,
                };
                let batch = rig.run(b, trials, &mut witness)?;
                slots.verify_ms += witness.verify_ms;
                slots.audited = true;
                batch
            }
            PairedArm::B => rig.run(b, trials, &mut NoJudge)?,
        };
        samples[*nth] = batch.samples_ms;
        *nth += 1;
        inputs.end(rig)?;
        slots.block.clock_hz[place] = batch.clock.map(|clock| clock.median_hz);
        slots.busy_ms += batch.busy_ms;
    }
    Ok(slots)
}

/// Checks that a timed launch of the candidate has the same results as the reference for the same
/// inputs.
fn check(
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
    plan: &PairPlan,
    (reference, filling): (&mut LoadedProgram, Filling),
    audit: Audit,
) -> JobResult<()> {
    let left = outputs::copy_outputs(executor, buffers)?;
    present(audit.shown, buffers, executor.tools()?)?;
    references::launch(executor, reference, buffers, filling)?;
    let expected = outputs::copy_outputs(executor, buffers)?;
    let mut expected: Expectations = expected
        .into_iter()
        .map(|(buffer, content)| (buffer, Expected::Computed(content, filling)))
        .collect();
    let (arrangements, shown) = (&plan.arrangements, audit.shown);
    arranged::clear(executor, buffers, arrangements, (shown, &mut expected))?;
    let beside = elements(&expected);
    let in_order = arranged::arranged(executor, buffers, arrangements, shown, (&left, &beside))?;
    let left = in_order.unwrap_or(left);
    let tied = ties::tied(executor, buffers, audit.shown, (&left, &beside))?;
    // The candidate is not at fault for changes that the reference makes to inputs.
    rewrite_inputs(buffers, false, executor.tools()?).map_err(environment)?;
    for (buffer, actual) in &left {
        let Some(tolerance) = plan.tolerances.of(*buffer) else { continue };
        let Some((_, expected)) = expected.iter().find(|(index, _)| index == buffer) else {
            continue;
        };
        let compared = &buffers[*buffer];
        let name = &compared.spec.name;
        let left = (actual.bytes(), audit.filling);
        let (mut comparison, trace) =
            comparison::compare(compared, tolerance, left, (expected.bytes(), None));
        if tied.contains(buffer) {
            comparison.excuse_ties();
        }
        if trace.is_proof() {
            return Err(comparison::unwritten(name, &trace, &comparison, "side by side"));
        }
        if let Some(text) = warpgauge_validate::validation_error(name, &comparison) {
            let text = format!("correct when it was not timed, but side by side {text}");
            let code = ReasonCode::OutputVariesBetweenTrials;
            return Err(Failed::reason(Reason::new(code, text)));
        }
    }
    Ok(())
}
