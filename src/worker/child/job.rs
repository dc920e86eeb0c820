//! One job, phase by phase.

use std::any::Any;
use std::rc::Rc;
use std::time::Instant;

use super::buffers::{JobBuffer, Tools};
use super::link::Link;
use super::printed::Printed;
use super::scrub::Residue;
use super::{trials, verify};
use crate::contract::{InitKind, TensorInit};
use crate::device::loader::Loaded;
use crate::device::support::{InitParams, Support};
use crate::device::{
    Context, DeviceBuffer, DeviceError, EmulatorControl, EventPool, Function, LaunchShape, Module,
    Params, PinnedPool, PreparedLaunch, Stream,
};
use crate::tensor::Dtype;
use crate::worker::protocol::{
    Argument, Blame, DeviceInfo, DeviceKind, FromWorker, Image, Job, KernelLaunch, LaunchCounts,
    RunFailure, RunOutcome, WorkerTimings,
};

/// Page-locked memory kept for copies, bytes.
const PINNED_BYTES: usize = 256 << 20;

/// Size of the copies, hashes and fills that a new worker practises.
const WARM_BYTES: usize = 4 << 20;

/// A job's failure.
#[derive(Debug)]
pub(super) struct Failed {
    pub failure: RunFailure,
    /// Whether the context is known to be lost.
    pub sticky: bool,
}

/// Result of a phase.
pub(super) type JobResult<T> = Result<T, Failed>;

impl Failed {
    pub(super) fn new(code: &str, message: String, blame: Blame) -> Self {
        let failure = RunFailure { code: code.to_owned(), message, blame };
        Self { failure, sticky: false }
    }

    pub(super) fn device(error: DeviceError, blame: Blame) -> Self {
        let sticky = error.is_sticky();
        let failure = RunFailure { code: error.code.to_owned(), message: error.to_string(), blame };
        Self { failure, sticky }
    }
}

/// Errors of work that the candidate asked for, or that its faults surface in.
pub(super) fn candidate(error: DeviceError) -> Failed {
    Failed::device(error, Blame::Candidate)
}

/// Errors of our own work.
pub(super) fn environment(error: DeviceError) -> Failed {
    Failed::device(error, Blame::Environment)
}

/// How a job ended, and what it left on the device.
pub(super) struct JobEnd {
    pub outcome: RunOutcome,
    /// Whether the context is unusable.
    pub lost: bool,
    pub residue: Residue,
}

/// A device, and all that outlives a job.
pub(super) struct Executor {
    pub(super) context: Context,
    pub(super) stream: Stream,
    pub(super) device: DeviceInfo,
    pub(super) support: Option<Support>,
    pub(super) pinned: Rc<PinnedPool>,
    pub(super) events: EventPool,
    /// Memory written between launches to push everything else out of L2.
    pub(super) flush: Option<DeviceBuffer>,
    emulator: Option<EmulatorControl>,
    printed: Printed,
}

impl Executor {
    /// Creates the context.
    pub(super) fn open(
        loaded: &Loaded,
        ordinal: u32,
        printed: Printed,
    ) -> Result<Self, DeviceError> {
        let device = loaded.driver.device_info(ordinal)?;
        let context = loaded.driver.open(ordinal)?;
        if let Some(emulator) = loaded.emulator {
            // On at its start, and switched on again for the one launch that is counted.
            emulator.set_counting(false)?;
        }
        Ok(Self {
            stream: Stream::new(&context)?,
            device,
            support: None,
            pinned: PinnedPool::new(&context, PINNED_BYTES),
            events: EventPool::new(&context, 2 * trials::BATCH + 2)?,
            flush: None,
            emulator: loaded.emulator,
            printed,
            context,
        })
    }

    /// The device it holds.
    pub(super) fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// Loads the worker's own kernels.
    pub(super) fn load_support(&mut self, image: &Image) -> Result<(), DeviceError> {
        self.support = Some(Support::load(&self.context, image, &self.device)?);
        if self.device.kind == DeviceKind::Cuda { self.warm_up() } else { Ok(()) }
    }

    /// Does once what is slow the first time, so that the first job of a spare that takes over is
    /// as fast as any: page-locked memory, memory to flush L2, the driver's late loading of
    /// kernels, local memory for scrubbing, and the threads that hash.
    fn warm_up(&mut self) -> Result<(), DeviceError> {
        let bytes = 2 * self.device.l2_bytes;
        if bytes > 0 {
            self.flush = Some(DeviceBuffer::new(&self.context, bytes, "flushing L2")?);
        }
        let staging = [WARM_BYTES, WARM_BYTES].map(|bytes| self.pinned.take(bytes));
        let memory = DeviceBuffer::new(&self.context, WARM_BYTES as u64, "warming up")?;
        if let Some(support) = &self.support {
            let init = TensorInit::of_kind(InitKind::Randn);
            if let Ok(params) = InitParams::new(&init, Dtype::Float32, "warm_up") {
                support.init(&params, Dtype::Float32, 0, WARM_BYTES, &memory, &self.stream)?;
            }
            support.first_difference(memory.address(), &memory, WARM_BYTES, &self.stream)?;
        }
        for staging in staging {
            blake3::Hasher::new().update_rayon(staging.bytes());
        }
        let mut residue = Residue::default();
        residue.take_memory(memory);
        self.scrub(residue);
        Ok(())
    }

    /// What filling and comparing buffers need.
    pub(super) fn tools(&self) -> JobResult<Tools<'_>> {
        let Some(support) = &self.support else {
            let text = "the server sent a job before the worker's own kernels".to_owned();
            return Err(Failed::new("internal_error", text, Blame::Environment));
        };
        Ok(Tools {
            context: &self.context,
            stream: &self.stream,
            support,
            pinned: &self.pinned,
            kind: self.device.kind,
            // Scrubbed with everything else.
            scratch: self.flush.as_ref(),
        })
    }

    /// Sets the emulator's checks and forgets what it has seen so far.
    fn arm_checks(&self, on: bool) -> JobResult<()> {
        if let Some(emulator) = self.emulator {
            emulator.set_sanitize(on).map_err(environment)?;
            let _ = emulator.take_report();
        }
        Ok(())
    }

    fn reserve_flush(&mut self) -> JobResult<()> {
        // The emulated device has no cache to flush.
        if self.flush.is_none() && self.device.kind == DeviceKind::Cuda && self.device.l2_bytes > 0
        {
            let bytes = 2 * self.device.l2_bytes;
            let flush = DeviceBuffer::new(&self.context, bytes, "flushing L2");
            self.flush = Some(flush.map_err(environment)?);
        }
        Ok(())
    }
}

/// Runs a job.
pub(super) fn run(executor: &mut Executor, job: &Job, link: &mut Link) -> JobEnd {
    let mut outcome = empty_outcome();
    let mut residue = Residue::default();
    let mut buffers = Vec::new();
    let result = phases(executor, job, link, &mut outcome, &mut residue, &mut buffers);
    let mut lost = executor.context.synchronize().is_err();
    if let Err(failed) = result {
        lost |= failed.sticky;
        outcome.failure = Some(failed.failure);
    }
    outcome.printed = executor.printed.take();
    residue.take_buffers(buffers);
    JobEnd { outcome, lost, residue }
}

/// The end of a job in which this program panicked. Nothing of its state can be trusted.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> JobEnd {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let mut outcome = empty_outcome();
    let message = format!("the worker failed: {text}; this is a defect of warpgauge");
    let code = "internal_error".to_owned();
    outcome.failure = Some(RunFailure { code, message, blame: Blame::Environment });
    JobEnd { outcome, lost: true, residue: Residue::default() }
}

fn phases<'job>(
    executor: &mut Executor,
    job: &'job Job,
    link: &mut Link,
    outcome: &mut RunOutcome,
    residue: &mut Residue,
    buffers: &mut Vec<JobBuffer<'job>>,
) -> JobResult<()> {
    executor.arm_checks(job.sanitize)?;
    let function = timed(&mut outcome.timings.load_ms, || {
        load(executor, &job.launch, residue, Blame::Candidate)
    })?;
    if job.trials.is_some() {
        executor.reserve_flush()?;
    }
    timed(&mut outcome.timings.h2d_ms, || allocate_and_fill(executor, job, buffers))?;
    let shape = shape_of(&job.launch);
    outcome.function = function.facts(shape.block_threads(), shape.shared_bytes).ok();
    residue.note_local_bytes(outcome.function.map_or(0, |facts| facts.local_bytes));
    let mut launch = prepare(function, &job.launch, buffers).map_err(candidate)?;
    // A server that is gone is noticed by the watchdog.
    let _ = link.send(&FromWorker::Started);
    let executed = timed(&mut outcome.timings.execute_ms, || {
        let mut progress = |trials| link.progress(trials);
        trials::execute(executor, job.trials, &mut launch, buffers, &mut progress)
    });
    outcome.emulator_report = executor.emulator.and_then(|emulator| emulator.take_report());
    // Reference kernels are not under suspicion.
    executor.arm_checks(false)?;
    let executed = executed?;
    outcome.samples_ms = executed.samples_ms;
    outcome.warmup_launches = executed.warmup_launches;
    outcome.timings.device_busy_ms = executed.device_busy_ms;
    if job.profile {
        outcome.counts = timed(&mut outcome.timings.execute_ms, || {
            count_launch(executor, &mut launch, buffers)
        })?;
    }
    let _ = link.send(&FromWorker::Executed);
    drop(launch);
    verify::run(executor, job, buffers, residue, outcome)
}

/// Launches once more, on the emulator, and counts what that launch alone does. The buffers hold
/// after it what any launch leaves.
fn count_launch(
    executor: &Executor,
    launch: &mut PreparedLaunch,
    buffers: &[JobBuffer<'_>],
) -> JobResult<Option<LaunchCounts>> {
    let Some(emulator) = executor.emulator else { return Ok(None) };
    let stream = &executor.stream;
    for buffer in buffers {
        buffer.restore(stream).map_err(environment)?;
    }
    stream.synchronize().map_err(environment)?;
    let _ = emulator.take_report();
    emulator.set_counting(true).map_err(environment)?;
    let launched = launch.launch(stream).and_then(|()| stream.synchronize());
    emulator.set_counting(false).map_err(environment)?;
    launched.map_err(candidate)?;
    Ok(emulator.take_launch())
}

/// Adds the wall time that `work` takes to `total_ms`.
pub(super) fn timed<T>(total_ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *total_ms += start.elapsed().as_secs_f64() * 1e3;
    result
}

/// Loads a kernel's module and finds the kernel; the residue remembers the module.
pub(super) fn load(
    executor: &Executor,
    launch: &KernelLaunch,
    residue: &mut Residue,
    blame: Blame,
) -> JobResult<Function> {
    let blamed = |error| Failed::device(error, blame);
    let module = Module::load(&executor.context, &launch.image).map_err(blamed)?;
    residue.note_module(module.clone(), &launch.image);
    module.function(&launch.symbol).map_err(blamed)
}

fn allocate_and_fill<'job>(
    executor: &Executor,
    job: &'job Job,
    buffers: &mut Vec<JobBuffer<'job>>,
) -> JobResult<()> {
    let tools = executor.tools()?;
    for spec in &job.buffers {
        buffers.push(JobBuffer::allocate(spec, job.trials.is_some(), tools)?);
    }
    for buffer in &*buffers {
        buffer.fill(tools).map_err(environment)?;
    }
    executor.stream.synchronize().map_err(environment)
}

/// The launch's shape.
pub(super) fn shape_of(launch: &KernelLaunch) -> LaunchShape {
    LaunchShape {
        grid: launch.grid,
        block: launch.block,
        shared_bytes: launch.shared_bytes,
        cluster: launch.cluster,
        cooperative: launch.cooperative,
    }
}

/// Binds a kernel to its arguments.
pub(super) fn prepare(
    function: Function,
    launch: &KernelLaunch,
    buffers: &[JobBuffer<'_>],
) -> Result<PreparedLaunch, DeviceError> {
    let mut params = Params::new();
    for (index, argument) in launch.arguments.iter().enumerate() {
        match argument {
            Argument::Scalar(bytes) => params.push(bytes),
            Argument::Buffer(buffer) => match buffers.get(*buffer) {
                Some(buffer) => params.push_address(buffer.live.address()),
                None => {
                    let text = format!("argument {index} is buffer {buffer}, which does not exist");
                    let operation = format!("launch {}", launch.symbol);
                    return Err(DeviceError::local(operation, "invalid_value", text));
                }
            },
        };
    }
    PreparedLaunch::new(function, shape_of(launch), params)
}

fn empty_outcome() -> RunOutcome {
    RunOutcome {
        failure: None,
        samples_ms: Vec::new(),
        warmup_launches: 0,
        checks: Vec::new(),
        outputs: Vec::new(),
        timings: WorkerTimings::default(),
        printed: String::new(),
        emulator_report: None,
        counts: None,
        function: None,
    }
}
