//! A program that is ready to be launched on a job's buffers.

use super::buffers::JobBuffer;
use super::executor::Executor;
use super::globals::Variables;
use super::job::{Failed, JobResult};
use super::scrub::Residue;
use super::trials::Inputs;
use crate::protocol::{Argument, Blame, KernelLaunch, Launches};
use warpgauge_device::support::Support;
use warpgauge_device::{
    DeviceError, LaunchShape, Module, Params, PreparedLaunch, Stream, VariableSnapshot,
};
use warpgauge_model::{FailureCode, FunctionFacts, Image};

/// A program whose modules are loaded: its launches with their arguments, and what the modules'
/// variables held at first.
pub(super) struct LoadedProgram {
    launches: Vec<BoundLaunch>,
    /// What the driver says of the kernel launched first.
    pub facts: Option<FunctionFacts>,
    /// One of each module; `None`: what a module keeps cannot be put back.
    variables: Option<Vec<VariableSnapshot>>,
}

/// What of a module is put back before a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Restored {
    /// Its variables.
    Variables,
    /// What it declares as constant too, for who looks for anything that could be kept.
    ConstantsToo,
}

impl Restored {
    /// Where inputs stay, what a launch left could serve the next one.
    pub(super) fn of(inputs: &Inputs, buffers: &[JobBuffer<'_>]) -> Self {
        if inputs.are_all_moving(buffers) { Self::Variables } else { Self::ConstantsToo }
    }
}

struct BoundLaunch {
    launch: PreparedLaunch,
    /// Arguments that are addresses: their place, and the buffer.
    pointers: Vec<(usize, usize)>,
}

impl LoadedProgram {
    /// Loads the modules of all launches, each once, and binds the kernels to the buffers. The
    /// residue remembers what must be scrubbed.
    pub(super) fn load(
        executor: &Executor,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
        (blame, restored): (Blame, Restored),
    ) -> JobResult<Self> {
        let mut variables = Some(Vec::new());
        let loaded =
            Self::load_with(executor, launches, buffers, residue, blame, |module, known| {
                variables = match (variables.take(), known) {
                    (Some(mut all), Some(known)) => {
                        let names = match restored {
                            Restored::Variables => known.names,
                            Restored::ConstantsToo => known.all().cloned().collect(),
                        };
                        let Executor { context, stream, .. } = executor;
                        let support = executor.tools()?.support;
                        let taken =
                            VariableSnapshot::take(context, support, module, &names, stream);
                        taken.map_err(|error| Failed::device(error, blame))?.map(|snapshot| {
                            all.push(snapshot);
                            all
                        })
                    }
                    _ => None,
                };
                Ok(())
            })?;
        Ok(Self { variables, ..loaded })
    }

    /// As [`Self::load`], for what is launched once: the variables of its modules are not looked at.
    pub(super) fn load_once(
        executor: &Executor,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
    ) -> JobResult<Self> {
        Self::load_with(executor, launches, buffers, residue, Blame::Candidate, |_, _| Ok(()))
    }

    /// `on_module` gets each module, and its variables if they are all there is to it.
    fn load_with(
        executor: &Executor,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
        blame: Blame,
        mut on_module: impl FnMut(&Module, Option<Variables>) -> JobResult<()>,
    ) -> JobResult<Self> {
        let mut modules: Vec<(&Image, Module)> = Vec::new();
        let mut bound = Self { launches: Vec::new(), facts: None, variables: None };
        for launch in launches.iter() {
            let known = modules.iter().find(|(image, _)| **image == launch.image);
            let module = match known {
                Some((_, module)) => module.clone(),
                None => {
                    let module = Module::load(&executor.context, &launch.image);
                    let module = module.map_err(|error| Failed::device(error, blame))?;
                    let names = residue.note_module(module.clone(), &launch.image);
                    on_module(&module, names)?;
                    modules.push((&launch.image, module.clone()));
                    module
                }
            };
            let (launch, facts) = BoundLaunch::new(&module, launch, buffers, residue, blame)?;
            if bound.launches.is_empty() {
                bound.facts = facts;
            }
            bound.launches.push(launch);
        }
        Ok(bound)
    }

    /// A kernel that does nothing.
    pub(super) fn empty(support: &Support) -> Result<Self, DeviceError> {
        let launch = BoundLaunch { launch: support.empty_launch()?, pointers: Vec::new() };
        Ok(Self { launches: vec![launch], facts: None, variables: None })
    }

    /// Queues all launches, on what the buffers show now.
    pub(super) fn launch(
        &mut self,
        buffers: &[JobBuffer<'_>],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.launches.iter_mut().try_for_each(|launch| launch.queue(buffers, stream))
    }

    /// Queues putting the variables of all modules back to what they were after loading.
    /// `Ok(false)`: they are not known.
    pub(super) fn forget(&mut self, stream: &Stream) -> Result<bool, DeviceError> {
        let Some(variables) = &mut self.variables else { return Ok(false) };
        variables.iter_mut().try_for_each(|module| module.restore(stream))?;
        Ok(true)
    }

    /// Whether what the modules keep can be put back.
    pub(super) fn is_forgetful(&self) -> bool {
        self.variables.is_some()
    }

    /// Whether there is anything in the modules to be put back.
    pub(super) fn restores_variables(&self) -> bool {
        self.variables.iter().flatten().any(|variables| !variables.is_empty())
    }

    /// Leaves its memory to be scrubbed.
    pub(super) fn retire(self, residue: &mut Residue) {
        let variables = self.variables.into_iter().flatten();
        let memory = variables.flat_map(VariableSnapshot::into_memory);
        memory.for_each(|memory| residue.take_memory(memory));
    }
}

impl BoundLaunch {
    fn new(
        module: &Module,
        launch: &KernelLaunch,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
        blame: Blame,
    ) -> JobResult<(Self, Option<FunctionFacts>)> {
        let blamed = |error| Failed::device(error, blame);
        let function = module.function(&launch.symbol).map_err(blamed)?;
        let shape = shape_of(launch);
        let facts = function.facts(shape.block_threads(), shape.shared_bytes).ok();
        residue.note_local_bytes(facts.map_or(0, |facts| facts.local_bytes));
        let (mut params, mut pointers) = (Params::new(), Vec::new());
        for (index, argument) in launch.arguments.iter().enumerate() {
            match argument {
                Argument::Scalar(bytes) => params.push(bytes),
                Argument::Buffer(buffer) => match buffers.get(*buffer) {
                    Some(content) => {
                        pointers.push((index, *buffer));
                        params.push_address(content.address())
                    }
                    None => {
                        let text =
                            format!("argument {index} is buffer {buffer}, which does not exist");
                        let operation = format!("launch {}", launch.symbol);
                        return Err(blamed(DeviceError::local(
                            operation,
                            FailureCode::InvalidValue,
                            text,
                        )));
                    }
                },
            };
        }
        let launch = PreparedLaunch::new(function, shape, params).map_err(blamed)?;
        Ok((Self { launch, pointers }, facts))
    }

    fn queue(&mut self, buffers: &[JobBuffer<'_>], stream: &Stream) -> Result<(), DeviceError> {
        for &(argument, buffer) in &self.pointers {
            self.launch.set_address(argument, buffers[buffer].address());
        }
        self.launch.launch(stream)
    }
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
