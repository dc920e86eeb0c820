//! A kernel that is ready to be launched on a job's buffers.

use super::buffers::JobBuffer;
use super::executor::Executor;
use super::job::{Failed, JobResult};
use super::scrub::Residue;
use crate::device::support::Support;
use crate::device::{
    DeviceError, LaunchShape, Module, Params, PreparedLaunch, Stream, VariableSnapshot,
};
use crate::worker::protocol::{Argument, Blame, FunctionFacts, KernelLaunch};

/// A loaded kernel, its arguments, and what its module's variables held at first.
pub(super) struct Arm {
    launch: PreparedLaunch,
    /// Arguments that are addresses: their place, and the buffer.
    pointers: Vec<(usize, usize)>,
    /// What the driver says of the kernel.
    pub facts: Option<FunctionFacts>,
    /// `None`: what the module keeps cannot be put back.
    variables: Option<VariableSnapshot>,
}

impl Arm {
    /// Loads the kernel's module and binds the kernel to the buffers. The residue remembers what
    /// must be scrubbed.
    pub(super) fn load(
        executor: &Executor,
        launch: &KernelLaunch,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
        blame: Blame,
    ) -> JobResult<Self> {
        let blamed = |error| Failed::device(error, blame);
        let module = Module::load(&executor.context, &launch.image).map_err(blamed)?;
        let variables = match residue.note_module(module.clone(), &launch.image) {
            Some(names) => {
                let Executor { context, stream, .. } = executor;
                let support = executor.tools()?.support;
                VariableSnapshot::take(context, support, &module, &names, stream).map_err(blamed)?
            }
            None => None,
        };
        let arm = Self::bind(&module, launch, buffers, residue, blame)?;
        Ok(Self { variables, ..arm })
    }

    /// As [`Self::load`], for a kernel that is launched once: its module's variables are not looked
    /// at.
    pub(super) fn load_once(
        executor: &Executor,
        launch: &KernelLaunch,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
    ) -> JobResult<Self> {
        let blame = Blame::Candidate;
        let module = Module::load(&executor.context, &launch.image);
        let module = module.map_err(|error| Failed::device(error, blame))?;
        residue.note_module(module.clone(), &launch.image);
        Self::bind(&module, launch, buffers, residue, blame)
    }

    fn bind(
        module: &Module,
        launch: &KernelLaunch,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
        blame: Blame,
    ) -> JobResult<Self> {
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
                        return Err(blamed(DeviceError::local(operation, "invalid_value", text)));
                    }
                },
            };
        }
        let launch = PreparedLaunch::new(function, shape, params).map_err(blamed)?;
        Ok(Self { launch, pointers, facts, variables: None })
    }

    /// A kernel that does nothing.
    pub(super) fn empty(support: &Support) -> Result<Self, DeviceError> {
        let launch = support.empty_launch()?;
        Ok(Self { launch, pointers: Vec::new(), facts: None, variables: None })
    }

    /// Queues one launch on what the buffers show now.
    pub(super) fn launch(
        &mut self,
        buffers: &[JobBuffer<'_>],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        for &(argument, buffer) in &self.pointers {
            self.launch.set_address(argument, buffers[buffer].address());
        }
        self.launch.launch(stream)
    }

    /// Queues putting the module's variables back to what they were after loading. `Ok(false)`:
    /// they are not known.
    pub(super) fn forget(&mut self, stream: &Stream) -> Result<bool, DeviceError> {
        match &mut self.variables {
            Some(variables) => variables.restore(stream).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether what the module keeps can be put back.
    pub(super) fn is_forgetful(&self) -> bool {
        self.variables.is_some()
    }

    /// Whether there is anything in the module to be put back.
    pub(super) fn restores_variables(&self) -> bool {
        self.variables.as_ref().is_some_and(|variables| !variables.is_empty())
    }

    /// Leaves its memory to be scrubbed.
    pub(super) fn retire(self, residue: &mut Residue) {
        let memory = self.variables.into_iter().flat_map(VariableSnapshot::into_memory);
        memory.for_each(|memory| residue.take_memory(memory));
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
