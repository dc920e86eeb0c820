//! The launch of one kernel, bound to the memory of its arguments.

use super::library_call::AddressOf;
use super::step_memory::StepMemory;
use super::structures::BoundStructure;
use super::tensor_maps::BoundMap;
use super::textures::BoundTexture;
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::residue::Residue;
use crate::protocol::{Argument, Blame, KernelLaunch};
use warpgauge_device::{
    DeviceBuffer, DeviceError, LaunchShape, Module, Params, PreparedLaunch, Stream,
};
use warpgauge_model::{FailureCode, FunctionFacts};

/// A launch whose module is loaded, with its arguments.
pub(super) struct BoundLaunch {
    launch: PreparedLaunch,
    /// For each argument that is an address: its index, its buffer, and the offset in the buffer in
    /// bytes.
    pointers: Vec<(usize, usize, u64)>,
    /// Arguments that are structures with pointers.
    structures: Vec<BoundStructure>,
    /// Arguments that are tensor maps.
    maps: Vec<BoundMap>,
    /// Arguments that are texture objects.
    textures: Vec<BoundTexture>,
    /// Scratch memory of the launch.
    scratch: Vec<DeviceBuffer>,
}

impl BoundLaunch {
    /// Returns a launch without arguments.
    pub(super) fn bare(launch: PreparedLaunch) -> Self {
        let (pointers, structures) = (Vec::new(), Vec::new());
        let (maps, textures, scratch) = (Vec::new(), Vec::new(), Vec::new());
        Self { launch, pointers, structures, maps, textures, scratch }
    }

    /// Binds a kernel to the buffers and the scratch memory that it uses. With `wants_facts`, also
    /// queries the driver for properties of the kernel.
    pub(super) fn new(
        executor: &Executor,
        module: &Module,
        launch: &KernelLaunch,
        (address, shared): (AddressOf<'_>, &StepMemory),
        residue: &mut Residue,
        (blame, wants_facts): (Blame, bool),
    ) -> JobResult<(Self, Option<FunctionFacts>)> {
        let blamed = |error| Failed::device(error, blame);
        let function = module.function(&launch.symbol).map_err(blamed)?;
        let shape = shape_of(launch);
        let facts = wants_facts.then(|| function.facts(shape.block_threads(), shape.shared_bytes));
        let facts = facts.and_then(Result::ok);
        residue.note_local_bytes(facts.map_or(0, |facts| facts.local_bytes));
        let (mut params, mut pointers) = (Params::new(), Vec::new());
        let (mut maps, mut scratch, mut structures) = (Vec::new(), Vec::new(), Vec::new());
        let mut textures = Vec::new();
        let place = |index: usize, buffer: usize| {
            address(buffer).ok_or_else(|| blamed(no_buffer(&launch.symbol, index, buffer)))
        };
        let of_steps = |index: usize, address: Option<u64>, memory: usize| {
            address.ok_or_else(|| blamed(no_buffer(&launch.symbol, index, memory)))
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
                Argument::Buffer(buffer) | Argument::Inside(buffer, _) => {
                    let offset =
                        if let Argument::Inside(_, offset) = argument { *offset } else { 0 };
                    let address = place(index, *buffer)?;
                    pointers.push((index, *buffer, offset));
                    params.push_address(address + offset)
                }
                Argument::Workspace(workspace, offset) => {
                    let address = shared.workspace(*workspace);
                    params.push_address(of_steps(index, address, *workspace)? + offset)
                }
                Argument::PointerArray(array) => {
                    let address = shared.pointer_array(*array);
                    params.push_address(of_steps(index, address, *array)?)
                }
                Argument::Structure(bytes, fields) => {
                    let bound = BoundStructure::new(index, bytes, fields, address, shared);
                    let bound = bound
                        .map_err(|missing| blamed(no_buffer(&launch.symbol, index, missing)))?;
                    params.push(&bound.bytes);
                    structures.push(bound);
                    &mut params
                }
                Argument::Texture(buffer, layout) => {
                    let bound = (index, *buffer, place(index, *buffer)?);
                    let (bound, bytes) =
                        BoundTexture::new(executor, bound, layout).map_err(blamed)?;
                    textures.push(bound);
                    params.push(&bytes)
                }
                Argument::Object(object) => {
                    let bytes = shared.object(*object);
                    let missing = || blamed(no_buffer(&launch.symbol, index, *object));
                    params.push(&bytes.ok_or_else(missing)?)
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
        Ok((Self { launch, pointers, structures, maps, textures, scratch }, facts))
    }

    /// Queues the launch.
    pub(super) fn queue(
        &mut self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        // Each buffer existed when the launch was bound.
        for &(argument, buffer, offset) in &self.pointers {
            if let Some(address) = address(buffer) {
                self.launch.set_address(argument, address + offset);
            }
        }
        for structure in &mut self.structures {
            if structure.follow(address) {
                self.launch.set_argument(structure.argument, &structure.bytes);
            }
        }
        for map in &mut self.maps {
            if let Some(address) = address(map.buffer) {
                map.follow(address, &mut self.launch)?;
            }
        }
        for texture in &mut self.textures {
            if let Some(address) = address(texture.buffer) {
                texture.follow(address, &mut self.launch)?;
            }
        }
        self.launch.launch(stream)
    }

    /// Returns the launch's scratch memory, which may hold state.
    pub(super) fn scratch(&self) -> &[DeviceBuffer] {
        &self.scratch
    }

    pub(super) fn into_scratch(self) -> Vec<DeviceBuffer> {
        self.scratch
    }
}

pub(super) fn no_buffer(symbol: &str, argument: usize, buffer: usize) -> DeviceError {
    let text = format!("argument {argument} is buffer {buffer}, which does not exist");
    DeviceError::local(format!("launch {symbol}"), FailureCode::InvalidValue, text)
}

/// Returns the shape of a launch.
fn shape_of(launch: &KernelLaunch) -> LaunchShape {
    LaunchShape {
        grid: launch.grid,
        block: launch.block,
        shared_bytes: launch.shared_bytes,
        cluster: launch.cluster,
        cooperative: launch.cooperative,
    }
}
