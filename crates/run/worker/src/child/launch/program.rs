//! A program that is ready to be launched on a job's buffers.

use super::library_call::AddressOf;
use super::library_call::BoundCall;
use super::tensor_maps::BoundMap;
use crate::child::device::executor::Executor;
use crate::child::device::ready::Ready;
use crate::child::device::runners::RemoteProgram;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::buffers::JobBuffer;
use crate::child::memory::residue::Residue;
use crate::child::memory::variables::Restored;
use crate::child::memory::variables::Variables;
use crate::protocol::{Argument, Blame, KernelLaunch, Launches};
use warpgauge_device::support::Support;
use warpgauge_device::{
    DeviceBuffer, DeviceError, LaunchShape, Module, Params, PreparedLaunch, Stream,
    VariableSnapshot,
};
use warpgauge_model::{FailureCode, FunctionFacts, Image, ImageFormat};

/// A program whose modules are loaded: its launches with their arguments, and the initial content of the
/// modules' variables.
pub(crate) struct LoadedProgram {
    place: Place,
    /// The driver's facts about the first kernel.
    pub facts: Option<FunctionFacts>,
}

/// Where a program is loaded.
enum Place {
    /// In this process.
    Here {
        launches: Vec<Bound>,
        /// The variables of each module, or why the state of a module cannot be restored.
        variables: Result<Vec<VariableSnapshot>, String>,
    },
    /// In a runner.
    There(RemoteProgram),
}

/// A launch with its arguments.
enum Bound {
    /// Launch of a compiled kernel (submitted or built-in).
    Kernel(Box<BoundLaunch>),
    /// Call of a library's function.
    Library(Box<BoundCall>),
}

impl Bound {
    fn queue(&mut self, address: AddressOf<'_>, stream: &Stream) -> Result<(), DeviceError> {
        match self {
            Bound::Kernel(launch) => launch.queue(address, stream),
            Bound::Library(call) => call.queue(address),
        }
    }

    /// Returns the launch's scratch memory, which may hold state. A library manages its own.
    fn scratch(&self) -> &[DeviceBuffer] {
        match self {
            Bound::Kernel(launch) => &launch.scratch,
            Bound::Library(_) => &[],
        }
    }

    fn into_memory(self) -> Vec<DeviceBuffer> {
        match self {
            Bound::Kernel(launch) => launch.scratch,
            Bound::Library(call) => vec![call.into_memory()],
        }
    }
}

struct BoundLaunch {
    launch: PreparedLaunch,
    /// Index of each argument that is an address, and of its buffer.
    pointers: Vec<(usize, usize)>,
    /// Arguments that are tensor maps.
    maps: Vec<BoundMap>,
    /// Scratch memory of the launch.
    scratch: Vec<DeviceBuffer>,
}

/// A callback for a module and its variables.
type OnModule<'a> = &'a mut dyn FnMut(&Module, Variables) -> JobResult<()>;

/// Why the variables of a program that is launched once are not restored.
const LAUNCHED_ONCE: &str = "the kernel is launched once";

impl LoadedProgram {
    /// Loads the modules of all launches, each once, and binds the kernels to the buffers: in this
    /// process, or in the runner that makes the launches. `residue` collects what must be scrubbed.
    pub(crate) fn load(
        executor: &Executor,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
        (blame, restored): (Blame, Restored),
    ) -> JobResult<Self> {
        if let Some(runners) = &executor.runners {
            let runner = runners.of(blame)?;
            let how = (blame, restored, executor.guard_byte());
            let (program, facts) = RemoteProgram::load(runner, launches, buffers, how)?;
            return Ok(Self { place: Place::There(program), facts });
        }
        let address = |index: usize| buffers.get(index).map(JobBuffer::address);
        Self::load_here(executor, launches, &address, residue, (blame, restored))
    }

    /// Like [`Self::load`], on buffers of which only the addresses are known.
    pub(crate) fn load_at(
        executor: &Executor,
        launches: &Launches,
        addresses: &[u64],
        residue: &mut Residue,
        how: (Blame, Restored),
    ) -> JobResult<Self> {
        let address = |index: usize| addresses.get(index).copied();
        Self::load_here(executor, launches, &address, residue, how)
    }

    fn load_here(
        executor: &Executor,
        launches: &Launches,
        address: AddressOf<'_>,
        residue: &mut Residue,
        (blame, restored): (Blame, Restored),
    ) -> JobResult<Self> {
        let mut variables = Ok(Vec::new());
        let mut note = |module: &Module, known: Variables| {
            let Ok(all) = &mut variables else { return Ok(()) };
            if let Some(reason) = known.unprovable {
                variables = Err(reason);
                return Ok(());
            }
            let Executor { context, stream, .. } = executor;
            let (support, ranges) = (executor.tools()?.support, known.ranges(restored));
            let taken = VariableSnapshot::take(context, support, module, &ranges, stream);
            match taken.map_err(|error| Failed::device(error, blame))? {
                Some(snapshot) => all.push(snapshot),
                None => variables = Err("they are too large to be copied".to_owned()),
            }
            Ok(())
        };
        let (launches, facts) = bind(executor, launches, address, residue, (blame, &mut note))?;
        Ok(Self { place: Place::Here { launches, variables }, facts })
    }

    /// Like [`Self::load`], for a program that is launched once: ignores the variables of its modules.
    pub(crate) fn load_once(
        executor: &Executor,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
    ) -> JobResult<Self> {
        let address = |index: usize| buffers.get(index).map(JobBuffer::address);
        let (launches, facts) =
            bind(executor, launches, &address, residue, (Blame::Candidate, &mut |_, _| Ok(())))?;
        let variables = Err(LAUNCHED_ONCE.to_owned());
        Ok(Self { place: Place::Here { launches, variables }, facts })
    }

    /// Returns a program that another process has loaded.
    pub(crate) fn elsewhere(program: RemoteProgram) -> Self {
        Self { place: Place::There(program), facts: None }
    }

    /// Returns a program of one empty kernel.
    pub(crate) fn empty(support: &Support) -> Result<Self, DeviceError> {
        let launch = BoundLaunch {
            launch: support.empty_launch()?,
            pointers: Vec::new(),
            maps: Vec::new(),
            scratch: Vec::new(),
        };
        let launches = vec![Bound::Kernel(Box::new(launch))];
        let variables = Ok(Vec::new());
        Ok(Self { place: Place::Here { launches, variables }, facts: None })
    }

    /// Queues all launches, on the current content of the buffers.
    pub(crate) fn launch(
        &mut self,
        buffers: &[JobBuffer<'_>],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let address = |index: usize| buffers.get(index).map(JobBuffer::address);
        self.launch_on(&address, stream)
    }

    /// Like [`Self::launch`], on buffers of which only the addresses are known.
    pub(crate) fn launch_at(
        &mut self,
        addresses: &[u64],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.launch_on(&|index: usize| addresses.get(index).copied(), stream)
    }

    fn launch_on(&mut self, address: AddressOf<'_>, stream: &Stream) -> Result<(), DeviceError> {
        match &mut self.place {
            Place::Here { launches, .. } => {
                launches.iter_mut().try_for_each(|launch| launch.queue(address, stream))
            }
            Place::There(program) => program.launch(stream),
        }
    }

    /// Returns the program in another process, if it is there.
    pub(crate) fn remote(&mut self) -> Option<&mut RemoteProgram> {
        match &mut self.place {
            Place::Here { .. } => None,
            Place::There(program) => Some(program),
        }
    }

    /// Queues restoring the variables of all modules to their content after loading. Returns `Ok(false)`
    /// if they are not known.
    pub(crate) fn forget(&mut self, stream: &Stream) -> Result<bool, DeviceError> {
        match &mut self.place {
            Place::Here { variables: Ok(variables), launches } => {
                let mut scratch = launches.iter().flat_map(Bound::scratch);
                scratch.try_for_each(|memory| memory.fill(0, stream))?;
                variables.iter_mut().try_for_each(|module| module.restore(stream))?;
                Ok(true)
            }
            Place::Here { variables: Err(_), .. } => Ok(false),
            Place::There(program) => Ok(program.forget()),
        }
    }

    /// Returns why the state of the modules cannot be restored; `None` if it can.
    pub(crate) fn unlisted(&self) -> Option<&String> {
        match &self.place {
            Place::Here { variables, .. } => variables.as_ref().err(),
            Place::There(program) => program.unlisted(),
        }
    }

    /// Returns whether the modules may keep any state between launches.
    pub(crate) fn keeps_state(&self) -> bool {
        match &self.place {
            Place::Here { .. } => self.unlisted().is_some() || self.restores_variables(),
            Place::There(program) => program.keeps_state(),
        }
    }

    /// Returns whether modules of this process have variables to restore.
    pub(crate) fn restores_variables(&self) -> bool {
        match &self.place {
            Place::Here { variables, .. } => {
                variables.iter().flatten().any(|variables| !variables.is_empty())
            }
            Place::There(_) => false,
        }
    }

    /// Leaves the program's memory for scrubbing. A runner unloads its own part.
    pub(crate) fn retire(self, residue: &mut Residue) {
        if let Place::Here { variables, launches } = self.place {
            let variables = variables.into_iter().flatten();
            let memory = variables.flat_map(VariableSnapshot::into_memory);
            let scratch = launches.into_iter().flat_map(Bound::into_memory);
            memory.chain(scratch).for_each(|memory| residue.take_memory(memory));
        }
    }
}

/// Loads modules and binds kernels. `on_module` receives each module and its variables.
fn bind(
    executor: &Executor,
    launches: &Launches,
    address: AddressOf<'_>,
    residue: &mut Residue,
    (blame, on_module): (Blame, OnModule<'_>),
) -> JobResult<(Vec<Bound>, Option<FunctionFacts>)> {
    let mut modules: Vec<(&Image, Module)> = Vec::new();
    let (mut bound, mut first) = (Vec::new(), None);
    for launch in launches.iter() {
        if launch.image.format == ImageFormat::Library {
            let call = BoundCall::new(executor, launch, address, residue, blame)?;
            bound.push(Bound::Library(Box::new(call)));
            continue;
        }
        let known = modules.iter().find(|(image, _)| **image == launch.image);
        let module = match known {
            Some((_, module)) => module.clone(),
            None => {
                let Ready { module, variables, .. } = match executor.take_ready(launch, blame) {
                    Some(ready) => ready,
                    None => Ready::load(executor, launch, residue, blame)?,
                };
                on_module(&module, variables)?;
                modules.push((&launch.image, module.clone()));
                module
            }
        };
        let (launch, facts) = BoundLaunch::new(executor, &module, launch, address, residue, blame)?;
        if bound.is_empty() {
            first = facts;
        }
        bound.push(Bound::Kernel(Box::new(launch)));
    }
    Ok((bound, first))
}

impl BoundLaunch {
    fn new(
        executor: &Executor,
        module: &Module,
        launch: &KernelLaunch,
        address: AddressOf<'_>,
        residue: &mut Residue,
        blame: Blame,
    ) -> JobResult<(Self, Option<FunctionFacts>)> {
        let blamed = |error| Failed::device(error, blame);
        let function = module.function(&launch.symbol).map_err(blamed)?;
        let shape = shape_of(launch);
        let facts = function.facts(shape.block_threads(), shape.shared_bytes).ok();
        residue.note_local_bytes(facts.map_or(0, |facts| facts.local_bytes));
        let (mut params, mut pointers) = (Params::new(), Vec::new());
        let (mut maps, mut scratch) = (Vec::new(), Vec::new());
        let place = |index: usize, buffer: usize| {
            address(buffer).ok_or_else(|| blamed(no_buffer(&launch.symbol, index, buffer)))
        };
        for (index, argument) in launch.arguments.iter().enumerate() {
            match argument {
                Argument::Scalar(bytes) => params.push(bytes),
                Argument::Scratch(bytes) => {
                    let what = "scratch memory of the kernel";
                    let memory = DeviceBuffer::new(&executor.context, *bytes, what);
                    let memory = memory.map_err(blamed)?;
                    memory.fill(0, &executor.stream).map_err(blamed)?;
                    let address = memory.address();
                    scratch.push(memory);
                    params.push_address(address)
                }
                Argument::Buffer(buffer) => {
                    let address = place(index, *buffer)?;
                    pointers.push((index, *buffer));
                    params.push_address(address)
                }
                Argument::Map(buffer, map) => {
                    let bound = (index, *buffer, place(index, *buffer)?);
                    let (bound, bytes) = BoundMap::new(executor, bound, map).map_err(blamed)?;
                    maps.push(bound);
                    params.push(&bytes)
                }
            };
        }
        let launch = PreparedLaunch::new(function, shape, params).map_err(blamed)?;
        Ok((Self { launch, pointers, maps, scratch }, facts))
    }

    fn queue(&mut self, address: AddressOf<'_>, stream: &Stream) -> Result<(), DeviceError> {
        // Each buffer existed when it was bound.
        for &(argument, buffer) in &self.pointers {
            if let Some(address) = address(buffer) {
                self.launch.set_address(argument, address);
            }
        }
        for map in &mut self.maps {
            if let Some(address) = address(map.buffer) {
                map.follow(address, &mut self.launch)?;
            }
        }
        self.launch.launch(stream)
    }
}

fn no_buffer(symbol: &str, argument: usize, buffer: usize) -> DeviceError {
    let text = format!("argument {argument} is buffer {buffer}, which does not exist");
    DeviceError::local(format!("launch {symbol}"), FailureCode::InvalidValue, text)
}

/// Returns the shape of a launch.
pub(crate) fn shape_of(launch: &KernelLaunch) -> LaunchShape {
    LaunchShape {
        grid: launch.grid,
        block: launch.block,
        shared_bytes: launch.shared_bytes,
        cluster: launch.cluster,
        cooperative: launch.cooperative,
    }
}
