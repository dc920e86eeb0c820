//! A program that is ready to be launched on a job's buffers.

use super::kernel::BoundLaunch;
use super::library_call::AddressOf;
use super::library_call::BoundCall;
use super::step_memory::StepMemory;
use super::steps::BoundSteps;
use crate::child::device::executor::{Executor, TimingAids};
use crate::child::device::ready::Ready;
use crate::child::device::runners::RemoteProgram;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::buffers::{JobBuffer, addresses_of};
use crate::child::memory::residue::Residue;
use crate::child::memory::variables::Restored;
use crate::child::memory::variables::Variables;
use crate::protocol::{Blame, Launches, LineTimes};
use warpgauge_device::support::Support;
use warpgauge_device::{DeviceBuffer, DeviceError, Module, Stream, VariableSnapshot};
use warpgauge_model::{FunctionFacts, Image, ImageFormat};

/// A program whose modules are loaded. It contains the launches with their arguments, and the
/// initial content of the modules' variables.
pub(crate) struct LoadedProgram {
    place: Place,
    /// Whether the program is a list of steps.
    pub has_steps: bool,
    /// Properties of the first kernel that the driver reports.
    pub facts: Option<FunctionFacts>,
}

/// The process in which a program is loaded.
enum Place {
    /// The program is loaded in this process.
    Here {
        launches: Vec<Bound>,
        /// The variables of each module, or why the state of a module cannot be restored.
        variables: Result<Vec<VariableSnapshot>, String>,
        /// Reason, other than variables, why the program may retain data of inputs that do not
        /// change between launches.
        remembers: Option<String>,
    },
    /// The program is loaded in the process of a runner.
    There(RemoteProgram),
}

/// A launch, call or list of steps, bound to its arguments.
enum Bound {
    /// Launch of a compiled kernel (submitted or built-in).
    Kernel(Box<BoundLaunch>),
    /// Call of a library's function.
    Library(Box<BoundCall>),
    /// A list of steps.
    Steps(Box<BoundSteps>),
}

impl Bound {
    fn queue(&mut self, address: AddressOf<'_>, stream: &Stream) -> Result<(), DeviceError> {
        match self {
            Bound::Kernel(launch) => launch.queue(address, stream),
            Bound::Library(call) => call.queue(address),
            Bound::Steps(steps) => steps.queue(address, stream),
        }
    }

    /// Queues the work that restores the scratch memory and the variables of steps to their content
    /// before a run.
    fn renew(&mut self, address: AddressOf<'_>, stream: &Stream) -> Result<(), DeviceError> {
        match self {
            Bound::Kernel(_) | Bound::Library(_) => Ok(()),
            Bound::Steps(steps) => steps.renew(address, stream),
        }
    }

    /// Copies the variables that the steps wrote to the buffers that receive them.
    fn collect(&self, address: AddressOf<'_>, stream: &Stream) -> Result<(), DeviceError> {
        match self {
            Bound::Kernel(_) | Bound::Library(_) => Ok(()),
            Bound::Steps(steps) => steps.collect(address, stream),
        }
    }

    /// Returns the launch's scratch memory, which may hold state. A library manages its scratch
    /// memory itself.
    fn scratch(&self) -> &[DeviceBuffer] {
        match self {
            Bound::Kernel(launch) => launch.scratch(),
            // Scratch memory of steps is renewed before each run.
            Bound::Library(_) | Bound::Steps(_) => &[],
        }
    }

    fn into_memory(self) -> Vec<DeviceBuffer> {
        match self {
            Bound::Kernel(launch) => launch.into_scratch(),
            Bound::Library(call) => vec![call.into_memory()],
            Bound::Steps(steps) => steps.into_memory(),
        }
    }
}

/// Callback that receives a module and its variables.
type OnModule<'a> = &'a mut dyn FnMut(&Module, Variables) -> JobResult<()>;

/// Reason why a program with a setup may retain data of inputs that do not change between launches.
const SET_UP: &str = "its `setup` runs while inputs exist, and may keep values that depend on them in scratch memory";

/// Reason why the variables of a program that is launched once are not restored.
const LAUNCHED_ONCE: &str = "the kernel is launched once";

impl LoadedProgram {
    /// Loads the modules of all launches, each once, and binds the kernels to the buffers. This
    /// happens in this process, or in the runner that makes the launches. `residue` collects the
    /// data that must be scrubbed.
    pub(crate) fn load(
        executor: &Executor,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
        (blame, restored): (Blame, Restored),
    ) -> JobResult<Self> {
        let has_steps = launches.program.is_some();
        if let Some(runners) = &executor.runners {
            let runner = runners.of(blame)?;
            let how = (blame, restored, executor.guard_byte());
            let (program, facts) = RemoteProgram::load(runner, launches, buffers, how)?;
            return Ok(Self { place: Place::There(program), has_steps, facts });
        }
        let address = addresses_of(buffers);
        Self::load_here(executor, launches, &address, residue, (blame, restored))
    }

    /// Like [`Self::load`], but for buffers of which only the addresses are known.
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
        let has_setup = launches.program.as_ref().is_some_and(|program| !program.setup.is_empty());
        let has_steps = launches.program.is_some();
        let remembers = has_setup.then(|| SET_UP.to_owned());
        let (launches, facts) = bind(executor, launches, address, residue, (blame, &mut note))?;
        Ok(Self { place: Place::Here { launches, variables, remembers }, has_steps, facts })
    }

    /// Like [`Self::load`], for a program that is launched once: ignores the variables of its
    /// modules.
    pub(crate) fn load_once(
        executor: &Executor,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        residue: &mut Residue,
    ) -> JobResult<Self> {
        let address = addresses_of(buffers);
        let has_steps = launches.program.is_some();
        let (launches, facts) =
            bind(executor, launches, &address, residue, (Blame::Candidate, &mut |_, _| Ok(())))?;
        let variables = Err(LAUNCHED_ONCE.to_owned());
        Ok(Self { place: Place::Here { launches, variables, remembers: None }, has_steps, facts })
    }

    /// Wraps a program that another process has loaded.
    pub(crate) fn elsewhere(program: RemoteProgram) -> Self {
        Self { place: Place::There(program), has_steps: false, facts: None }
    }

    /// Returns a program that launches one empty kernel.
    pub(crate) fn empty(support: &Support) -> Result<Self, DeviceError> {
        let launch = BoundLaunch::bare(support.empty_launch()?);
        let launches = vec![Bound::Kernel(Box::new(launch))];
        let variables = Ok(Vec::new());
        Ok(Self {
            place: Place::Here { launches, variables, remembers: None },
            has_steps: false,
            facts: None,
        })
    }

    /// Queues all launches, on the current content of the buffers.
    pub(crate) fn launch(
        &mut self,
        buffers: &[JobBuffer<'_>],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.launch_whole(&addresses_of(buffers), stream)
    }

    /// Like [`Self::launch`], but for buffers of which only the addresses are known.
    pub(crate) fn launch_at(
        &mut self,
        addresses: &[u64],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.launch_whole(&|index: usize| addresses.get(index).copied(), stream)
    }

    fn launch_whole(&mut self, address: AddressOf<'_>, stream: &Stream) -> Result<(), DeviceError> {
        self.renew(address, stream)?;
        self.launch_renewed(address, stream)?;
        self.collect(address, stream)
    }

    /// Queues the work that restores the program's scratch memory and variables to their content
    /// before a run.
    pub(crate) fn renew(
        &mut self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        match &mut self.place {
            Place::Here { launches, .. } => {
                launches.iter_mut().try_for_each(|launch| launch.renew(address, stream))
            }
            // The runner renews them.
            Place::There(_) => Ok(()),
        }
    }

    /// Copies the variables that a run wrote to the buffers that receive them.
    pub(crate) fn collect(
        &self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        match &self.place {
            Place::Here { launches, .. } => {
                launches.iter().try_for_each(|launch| launch.collect(address, stream))
            }
            Place::There(_) => Ok(()),
        }
    }

    /// Returns whether all launches can be queued while a blocking kernel holds the device back.
    pub(crate) fn can_wait(&self) -> bool {
        match &self.place {
            Place::Here { launches, .. } => launches.iter().all(|launch| match launch {
                Bound::Kernel(_) | Bound::Library(_) => true,
                Bound::Steps(steps) => steps.can_wait(),
            }),
            Place::There(_) => true,
        }
    }

    /// Returns whether a run has no work outside the stream that it is queued on. A library may use
    /// other streams.
    pub(crate) fn keeps_to_its_stream(&self) -> bool {
        match &self.place {
            Place::Here { launches, .. } => {
                launches.iter().all(|launch| !matches!(launch, Bound::Library(_)))
            }
            Place::There(_) => false,
        }
    }

    /// Like [`Self::launch`], but does not restore scratch memory and variables. The caller calls
    /// [`Self::renew`] before and [`Self::collect`] after it.
    pub(crate) fn launch_renewed(
        &mut self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        match &mut self.place {
            Place::Here { launches, .. } => {
                launches.iter_mut().try_for_each(|launch| launch.queue(address, stream))
            }
            Place::There(program) => program.launch(stream),
        }
    }

    /// Runs all steps of a list, and times each separately. Returns the times by line; empty if the
    /// program is not a list of steps.
    pub(crate) fn time_steps(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        aids: Option<&mut TimingAids>,
    ) -> Result<Vec<LineTimes>, DeviceError> {
        let address = addresses_of(buffers);
        self.time_steps_on(executor, &address, aids)
    }

    /// Like [`Self::time_steps`], but for buffers of which only the addresses are known.
    pub(crate) fn time_steps_at(
        &mut self,
        executor: &Executor,
        addresses: &[u64],
        aids: Option<&mut TimingAids>,
    ) -> Result<Vec<LineTimes>, DeviceError> {
        self.time_steps_on(executor, &|index: usize| addresses.get(index).copied(), aids)
    }

    fn time_steps_on(
        &mut self,
        executor: &Executor,
        address: AddressOf<'_>,
        aids: Option<&mut TimingAids>,
    ) -> Result<Vec<LineTimes>, DeviceError> {
        match &mut self.place {
            Place::Here { launches, .. } => match launches.as_mut_slice() {
                [Bound::Steps(steps)] => steps.time_each(executor, address, aids),
                _ => Ok(Vec::new()),
            },
            Place::There(program) => program.time_steps(&executor.stream),
        }
    }

    /// Returns the program if another process has loaded it.
    pub(crate) fn remote(&mut self) -> Option<&mut RemoteProgram> {
        match &mut self.place {
            Place::Here { .. } => None,
            Place::There(program) => Some(program),
        }
    }

    /// Queues the work that restores the variables of all modules to their content after loading,
    /// and that zeroes scratch memory. Returns `Ok(false)` if some variables are not known.
    pub(crate) fn forget(&mut self, stream: &Stream) -> Result<bool, DeviceError> {
        match &mut self.place {
            Place::Here { variables: Ok(variables), launches, .. } => {
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
            Place::Here { variables, remembers, .. } => {
                variables.as_ref().err().or(remembers.as_ref())
            }
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

    /// Hands the program's memory over for scrubbing. A runner unloads its own part.
    pub(crate) fn retire(self, residue: &mut Residue) {
        if let Place::Here { variables, launches, .. } = self.place {
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
    let (mut bound, mut first, alone) = (Vec::new(), None, StepMemory::default());
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
        if let Some(program) = &launches.program {
            let of = (&**program, launch);
            let (steps, facts) = BoundSteps::new(executor, &module, of, address, residue, blame)?;
            return Ok((vec![Bound::Steps(Box::new(steps))], facts));
        }
        let (launch, facts) =
            BoundLaunch::new(executor, &module, launch, (address, &alone), residue, (blame, true))?;
        if bound.is_empty() {
            first = facts;
        }
        bound.push(Bound::Kernel(Box::new(launch)));
    }
    Ok((bound, first))
}
