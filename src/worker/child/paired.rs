//! Two kernels timed side by side, block by block.
//!
//! Every block allocates its buffers elsewhere and loads both modules anew, so that where things
//! lie is noise that averages out, not an advantage of one side. Within a block the two take turns
//! (ABBA or BAAB), so that what drifts hits both alike.

use std::time::Instant;

use super::arm::Arm;
use super::audit;
use super::buffers::{JobBuffer, Use, WINDOW_STEP, allocate_all};
use super::executor::Executor;
use super::intact;
use super::job::{Failed, JobResult, environment, timed};
use super::link::Link;
use super::scrub::Residue;
use super::secret::Secret;
use super::trials::{Audit, Inputs, Rig, present};
use super::verify;
use crate::measure::paired::{
    Arm as PairedArm, BlockOrder, LookOutcome, MAX_BLOCKS, PairedBlock, decide_at_look,
};
use crate::validate::{self, Filling, Reason, ReasonCode};
use crate::worker::protocol::{Blame, FromWorker, Job, PairedPlan, RunOutcome};

/// Farthest that the content of a buffer is moved from block to block, bytes.
const MAX_SHIFT: usize = 2 << 20;

/// Launches of each kernel before a block's timed ones: the first after loading is slow.
const UNTIMED: usize = 3;

/// A kernel faster than this gets [`SHORT_FACTOR`] times the launches per slot, milliseconds.
const SHORT_MS: f32 = 0.025;
const SHORT_FACTOR: usize = 4;

/// Blocks at the beginning each of which is audited, and how many later blocks share one audit.
const AUDITED_BLOCKS: usize = 4;
const BLOCKS_PER_AUDIT: usize = 8;

/// Measures blocks until the policy has a verdict, or the time is up.
pub(super) fn run(
    executor: &mut Executor,
    job: &Job,
    plan: &PairedPlan,
    link: &mut Link,
    residue: &mut Residue,
    outcome: &mut RunOutcome,
) -> JobResult<()> {
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
        let block = Block { executor, job, plan, secret: &mut secret, index };
        let measured = block.measure(residue, outcome)?;
        outcome.paired_blocks.push(measured);
        link.progress(outcome.paired_blocks.len(), &[]);
        if let Some((look, _)) = looks.next_if(|(_, count)| **count as usize == index + 1)
            && let LookOutcome::Done(_) = decide_at_look(&outcome.paired_blocks, look, &plan.policy)
        {
            break;
        }
    }
    let _ = link.send(&FromWorker::Executed);
    Ok(())
}

struct Block<'a> {
    executor: &'a mut Executor,
    job: &'a Job,
    plan: &'a PairedPlan,
    secret: &'a mut Secret,
    index: usize,
}

impl Block<'_> {
    fn measure(
        mut self,
        residue: &mut Residue,
        outcome: &mut RunOutcome,
    ) -> JobResult<PairedBlock> {
        let mut buffers = Vec::new();
        let measured = self.measure_on(&mut buffers, residue, outcome);
        // Freed, not kept: the next block is to get other memory. Freeing zeroes it.
        buffers.into_iter().flat_map(JobBuffer::into_memory).for_each(drop);
        self.executor.unload(residue).map_err(environment)?;
        measured
    }

    fn measure_on<'job>(
        &mut self,
        buffers: &mut Vec<JobBuffer<'job>>,
        residue: &mut Residue,
        outcome: &mut RunOutcome,
    ) -> JobResult<PairedBlock>
    where
        Self: 'job,
    {
        let throttled = self.executor.throttle_reasons().unwrap_or(0);
        timed(&mut outcome.timings.h2d_ms, || self.allocate(buffers))?;
        let began = Instant::now();
        // Whose code is loaded first is left to chance too.
        let reference_first = self.secret.below(2) == 0;
        let (plan, job) = (self.plan, self.job);
        let executor = &mut *self.executor;
        let mut load = |launch, blame| Arm::load(executor, launch, buffers, residue, blame);
        let (mut a, mut b);
        if reference_first {
            a = load(&job.launch, Blame::Reference)?;
            b = load(&plan.rival, Blame::Candidate)?;
        } else {
            b = load(&plan.rival, Blame::Candidate)?;
            a = load(&job.launch, Blame::Reference)?;
        }
        outcome.timings.load_ms += began.elapsed().as_secs_f64() * 1e3;
        let inputs = Inputs::new(buffers, plan.fresh_inputs);
        let mut rig = Rig { executor: &mut *self.executor, buffers, inputs, cache: plan.cache };
        let began = Instant::now();
        let taken = slots(&mut rig, &mut a, &mut b, plan, self.index, self.secret);
        outcome.timings.execute_ms += began.elapsed().as_secs_f64() * 1e3;
        let Slots { mut block, audit, busy_ms } = taken?;
        outcome.timings.device_busy_ms += busy_ms;
        if let Some(audit) = audit {
            timed(&mut outcome.timings.verify_ms, || check(&mut rig, job, &mut a, &audit))?;
            outcome.audits.done += 1;
            audit::release(audit, residue);
        }
        intact::guards_intact(rig.executor, rig.buffers)?;
        for arm in [a, b] {
            arm.retire(residue);
        }
        block.throttle_reasons = throttled | self.executor.throttle_reasons().unwrap_or(0);
        Ok(block)
    }

    fn allocate<'job>(&mut self, buffers: &mut Vec<JobBuffer<'job>>) -> JobResult<()>
    where
        Self: 'job,
    {
        let guard = Some(self.executor.guard_byte());
        let (plan, secret) = (self.plan, &mut *self.secret);
        let usage = || {
            let shift = secret.below(MAX_SHIFT / WINDOW_STEP) * WINDOW_STEP;
            Use { repeated: true, windows: plan.fresh_inputs, guard, shift, poisoned: true }
        };
        allocate_all(&self.job.buffers, usage, self.executor.tools()?, buffers)
    }
}

struct Slots {
    block: PairedBlock,
    audit: Option<Audit>,
    busy_ms: f64,
}

/// The four slots of a block.
fn slots(
    rig: &mut Rig<'_, '_>,
    a: &mut Arm,
    b: &mut Arm,
    plan: &PairedPlan,
    index: usize,
    secret: &mut Secret,
) -> JobResult<Slots> {
    let mut fastest = f32::INFINITY;
    for arm in [&mut *a, &mut *b] {
        // Loads what the driver loads at the first launch, outside the gate.
        rig.launch_once(arm, Filling::FIXED)?;
        let samples = rig.run(arm, UNTIMED, &[])?.samples_ms;
        fastest = samples.into_iter().fold(fastest, f32::min);
    }
    let factor = if fastest < SHORT_MS { SHORT_FACTOR } else { 1 };
    let trials = (plan.trials_per_slot as usize * factor).min(rig.largest_batch());
    let order = BlockOrder::of_block(index);
    let mut slots = Slots {
        block: PairedBlock {
            order,
            a: Default::default(),
            b: Default::default(),
            clock_hz: [None; 4],
            throttle_reasons: 0,
        },
        audit: None,
        busy_ms: 0.0,
    };
    let audited = index < AUDITED_BLOCKS || index.is_multiple_of(BLOCKS_PER_AUDIT);
    let audited_slot = secret.below(2);
    let mut taken = [0; 2];
    for (place, arm) in order.arms().into_iter().enumerate() {
        let (kernel, samples, nth) = match arm {
            PairedArm::A => (&mut *a, &mut slots.block.a, &mut taken[0]),
            PairedArm::B => (&mut *b, &mut slots.block.b, &mut taken[1]),
        };
        let audit = arm == PairedArm::B && audited && *nth == audited_slot;
        let chosen = secret.choose(usize::from(audit), trials);
        let batch = rig.run(kernel, trials, &chosen)?;
        samples[*nth] = batch.samples_ms;
        *nth += 1;
        slots.block.clock_hz[place] = batch.clock.map(|clock| clock.median_hz);
        slots.busy_ms += batch.busy_ms;
        slots.audit = slots.audit.or(batch.audits.into_iter().next());
    }
    Ok(slots)
}

/// A timed launch of the candidate left what the reference leaves for the same inputs.
fn check(rig: &mut Rig<'_, '_>, job: &Job, reference: &mut Arm, audit: &Audit) -> JobResult<()> {
    present(&audit.shown, rig.buffers, rig.executor.tools()?)?;
    audit::launch_reference(rig.executor, reference, rig.buffers)?;
    let expected = verify::copy_outputs(rig)?;
    for (buffer, actual) in &audit::on_host(rig.executor, &audit.outputs)? {
        let Some(tolerance) = job.tolerance(*buffer) else { continue };
        let Some((_, expected)) = expected.iter().find(|(index, _)| index == buffer) else {
            continue;
        };
        let spec = &job.buffers[*buffer];
        let (actual, expected) = (actual.bytes(), expected.bytes());
        let filling = rig.buffers[*buffer].is_poisoned().then_some(audit.filling);
        let (comparison, trace) =
            validate::compare_traced(spec.dtype, &spec.shape, actual, expected, filling, tolerance);
        if trace.is_proof() {
            return Err(verify::unwritten(&spec.name, &trace, &comparison, "side by side"));
        }
        if let Some(text) = validate::validation_error(&spec.name, &comparison) {
            let text = format!("right when it was not timed, but side by side {text}");
            let code = ReasonCode::OutputVariesBetweenTrials;
            return Err(Failed::reason(Reason::new(code, text)));
        }
    }
    Ok(())
}
