//! Binds programs of several launches to the memory that they use, and runs them step by step.

use super::kernel::{BoundLaunch, no_buffer};
use super::library_call::AddressOf;
use super::step_memory::StepMemory;
use crate::child::device::executor::{Executor, TimingAids};
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::residue::Residue;
use crate::protocol::{Blame, GlobalVariable, KernelLaunch, LineTimes, Piece, Step, StepProgram};
use warpgauge_device::{DeviceBuffer, DeviceError, Module, Stream};
use warpgauge_model::{FailureCode, FunctionFacts};
use warpgauge_statistics::Sorted;

/// Maximum number of steps that are queued while a kernel holds the device back. The driver's queue
/// holds about a thousand.
const MAX_HELD_BACK: usize = 256;

/// Maximum number of steps of one run that are timed separately.
const MAX_TIMED: usize = 4096;

/// Action that queues a step.
type Queue<'a> = &'a mut dyn FnMut() -> Result<(), DeviceError>;

/// Called for each step, with its line and the action that queues it.
type OnStep<'a> = dyn FnMut(usize, Queue<'_>) -> Result<(), DeviceError> + 'a;

/// A list of steps that is bound to the memory that it uses.
pub(super) struct BoundSteps {
    steps: Vec<BoundStep>,
    lines: usize,
    memory: StepMemory,
    globals: Vec<BoundGlobal>,
}

/// A variable of the module that holds a buffer during a run.
struct BoundGlobal {
    address: u64,
    bytes: u64,
    buffer: usize,
    is_written: bool,
}

impl BoundGlobal {
    fn new(module: &Module, global: &GlobalVariable) -> Result<Self, DeviceError> {
        let GlobalVariable { symbol, buffer, bytes, is_written } = global;
        let found = module.variable(symbol)?.filter(|range| range.bytes == *bytes);
        let range = found.ok_or_else(|| {
            let text = format!("the module has no variable `{symbol}` of {bytes} bytes");
            DeviceError::local("find a variable", FailureCode::InvalidValue, text)
        })?;
        let (buffer, is_written) = (*buffer, *is_written);
        Ok(Self { address: range.address, bytes: *bytes, buffer, is_written })
    }
}

enum BoundStep {
    Launch { line: usize, launch: Box<BoundLaunch> },
    Fill { line: usize, at: Piece, value: u8 },
    Copy { line: usize, from: Piece, to: Piece },
    Pass { flag: Piece, end: usize, is_last: bool },
}

impl BoundSteps {
    /// Binds the steps to the memory that they use, and runs the steps of the setup. Returns the
    /// properties of the first kernel that the driver reports.
    pub(super) fn new(
        executor: &Executor,
        module: &Module,
        (program, first): (&StepProgram, &KernelLaunch),
        address: AddressOf<'_>,
        residue: &mut Residue,
        blame: Blame,
    ) -> JobResult<(Self, Option<FunctionFacts>)> {
        let blamed = |error| Failed::device(error, blame);
        let memory = StepMemory::new(&executor.context, program);
        let globals = program.globals.iter().map(|global| BoundGlobal::new(module, global));
        let globals = globals.collect::<Result<Vec<_>, _>>();
        let mut bound = Self {
            steps: Vec::new(),
            lines: program.lines,
            memory: memory.map_err(blamed)?,
            globals: globals.map_err(blamed)?,
        };
        let mut facts = None;
        let mut known = vec![false; program.symbols.len()];
        let mut bind = |bound: &Self, steps: &[Step]| -> JobResult<Vec<BoundStep>> {
            let mut all = Vec::with_capacity(steps.len());
            for step in steps {
                all.push(match step {
                    Step::Launch(launch) => {
                        let Some(symbol) = program.symbols.get(launch.kernel) else {
                            return Err(blamed(unknown_kernel(launch.kernel)));
                        };
                        let whole = launch.whole(first.image.clone(), symbol);
                        // The driver takes microseconds to return the facts of a kernel.
                        let asks = !std::mem::replace(&mut known[launch.kernel], true);
                        let place = (address, &bound.memory);
                        let (launch_bound, found) = BoundLaunch::new(
                            executor,
                            module,
                            &whole,
                            place,
                            residue,
                            (blame, asks),
                        )?;
                        facts = facts.or(found.filter(|_| launch.kernel == 0));
                        BoundStep::Launch { line: launch.line, launch: Box::new(launch_bound) }
                    }
                    &Step::Fill { line, at, value } => BoundStep::Fill { line, at, value },
                    &Step::Copy { line, from, to } => BoundStep::Copy { line, from, to },
                    &Step::Pass { flag, end, is_last } => BoundStep::Pass { flag, end, is_last },
                });
            }
            Ok(all)
        };
        let setup = bind(&bound, &program.setup)?;
        bound.steps = bind(&bound, &program.steps)?;
        if !setup.is_empty() {
            let stream = &executor.stream;
            bound.memory.renew(address, stream).map_err(blamed)?;
            let steps = std::mem::replace(&mut bound.steps, setup);
            let done = bound.queue(address, stream);
            let done = done.and_then(|()| bound.memory.collect(false, address, stream).map(drop));
            let done = done.and_then(|()| stream.synchronize());
            bound.steps = steps;
            done.map_err(blamed)?;
            bound.memory.keep(&executor.context, stream).map_err(blamed)?;
        }
        Ok((bound, facts))
    }

    /// Queues the work that restores scratch memory and variables to their content before a run.
    pub(super) fn renew(
        &mut self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.memory.renew(address, stream)?;
        self.globals.iter().try_for_each(|global| {
            stream.copy_at(buffer_of(global, address)?, global.address, global.bytes)
        })
    }

    /// Copies the variables and the CUDA arrays that a run wrote to their buffers. Waits for the
    /// copies, because another process may read the buffers next.
    pub(super) fn collect(
        &self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let mut waits = self.memory.collect(true, address, stream)?;
        for global in self.globals.iter().filter(|global| global.is_written) {
            stream.copy_at(global.address, buffer_of(global, address)?, global.bytes)?;
            waits = true;
        }
        if waits { stream.synchronize() } else { Ok(()) }
    }

    /// Queues all steps. If a loop depends on a flag, waits for the steps queued before the flag is
    /// read.
    pub(super) fn queue(
        &mut self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.each(address, stream, &mut |_, queue| queue())
    }

    /// Runs all steps. Calls `step` with the line and the action of each, except for the ends of
    /// passes.
    fn each(
        &mut self,
        address: AddressOf<'_>,
        stream: &Stream,
        step: &mut OnStep<'_>,
    ) -> Result<(), DeviceError> {
        let Self { steps, memory, .. } = self;
        let place = |piece: &Piece| memory.place(piece.memory, address, "a step");
        let mut at = 0;
        while let Some(bound) = steps.get_mut(at) {
            at += 1;
            match bound {
                BoundStep::Launch { line, launch } => {
                    step(*line, &mut || launch.queue(address, stream))?;
                }
                BoundStep::Fill { line, at, value } => {
                    let to = place(at)?;
                    step(*line, &mut || stream.fill_at(to, at.bytes, *value))?;
                }
                BoundStep::Copy { line, from, to } => {
                    let (source, target) = (place(from)?, place(to)?);
                    step(*line, &mut || stream.copy_at(source, target, from.bytes.min(to.bytes)))?;
                }
                BoundStep::Pass { flag, end, is_last } => {
                    let mut element = [0u8; 8];
                    let bytes = element.get_mut(..flag.bytes as usize).unwrap_or_default();
                    stream.read_at(place(flag)?, bytes)?;
                    if element == [0; 8] {
                        at = *end;
                    } else if *is_last {
                        return Err(still_set());
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether all steps can be queued while a blocking kernel holds the device back.
    pub(super) fn can_wait(&self) -> bool {
        self.steps.len() <= MAX_HELD_BACK
            && !self.steps.iter().any(|step| matches!(step, BoundStep::Pass { .. }))
    }

    /// Runs all steps, times each separately, and returns the times by line.
    pub(super) fn time_each(
        &mut self,
        executor: &Executor,
        address: AddressOf<'_>,
        mut aids: Option<&mut TimingAids>,
    ) -> Result<Vec<LineTimes>, DeviceError> {
        let stream = &executor.stream;
        let (Some(support), [start, end, ..]) = (&executor.support, executor.events.events())
        else {
            return Ok(Vec::new());
        };
        let mut samples = vec![(0u32, Vec::new()); self.lines];
        let mut timed = 0;
        self.renew(address, stream)?;
        self.each(address, stream, &mut |line, queue| {
            let Some((count, times)) = samples.get_mut(line) else { return queue() };
            *count += 1;
            timed += 1;
            if timed > MAX_TIMED {
                return queue();
            }
            if let Some(aids) = &mut aids {
                aids.blocking_kernel.launch(support, stream)?;
            }
            start.record(stream)?;
            let queued = queue().and_then(|()| end.record(stream));
            if let Some(aids) = &aids {
                aids.blocking_kernel.release();
            }
            queued?;
            end.synchronize()?;
            times.push(f64::from(end.elapsed_ms_since(start)?));
            Ok(())
        })?;
        stream.synchronize()?;
        Ok(samples.into_iter().map(|(count, times)| line_times(count, &times)).collect())
    }

    pub(super) fn into_memory(self) -> Vec<DeviceBuffer> {
        let launches = self.steps.into_iter().filter_map(|step| match step {
            BoundStep::Launch { launch, .. } => Some(launch),
            _ => None,
        });
        let scratch = launches.flat_map(|launch| launch.into_scratch());
        self.memory.into_memory().chain(scratch).collect()
    }
}

fn buffer_of(global: &BoundGlobal, address: AddressOf<'_>) -> Result<u64, DeviceError> {
    let buffer = global.buffer;
    address(buffer).ok_or_else(|| no_buffer("a variable", 0, buffer))
}

/// Returns the times of a line that ran `count` times in a run, of which some were timed.
fn line_times(count: u32, times: &[f64]) -> LineTimes {
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let median_ms = Sorted::new(times).map_or(0.0, |sorted| sorted.median());
    LineTimes { count, median_ms, total_ms: mean * f64::from(count) }
}

fn unknown_kernel(kernel: usize) -> DeviceError {
    let text = format!("a step launches kernel {kernel}, which does not exist");
    DeviceError::local("launch", FailureCode::InvalidValue, text)
}

fn still_set() -> DeviceError {
    let text = "the flag of a `while` is still set after the maximum number of passes (`most`): the loop does not end, or \
                needs more passes";
    DeviceError::local("run the launches", FailureCode::LoopDidNotEnd, text.to_owned())
}
