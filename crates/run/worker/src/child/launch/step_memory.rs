//! Memory that the steps of a list share, in addition to the buffers: scratch memory, arrays of
//! pointers, and CUDA arrays. The main type is [`StepMemory`].

use super::arrays::Arrays;
use super::kernel::no_buffer;
use super::library_call::AddressOf;
use crate::protocol::{Memory, Pointee, StepProgram};
use warpgauge_device::{Context, DeviceBuffer, DeviceError, Stream};

/// Content of scratch memory before a run, if no setup defines it: NaN as floats, -1 as
/// integers.
const POISON: u8 = 0xff;

/// Size of a pointer, bytes.
const POINTER: usize = 8;

/// Memory that the steps of a list share.
#[derive(Default)]
pub(super) struct StepMemory {
    workspaces: Vec<DeviceBuffer>,
    /// Content of the scratch memory after the setup, if the program has a setup.
    prepared: Vec<DeviceBuffer>,
    arrays: Vec<PointerArray>,
    texels: Arrays,
}

/// An array of pointers. A kernel may overwrite it, so a copy is written to it before each run.
struct PointerArray {
    entries: Vec<Option<Pointee>>,
    /// Array whose address the kernels receive.
    memory: DeviceBuffer,
    /// Array with the current addresses of the entries.
    copy: DeviceBuffer,
    /// The content of `copy`.
    addresses: Vec<u8>,
}

impl StepMemory {
    /// Allocates the memory of a program.
    pub(super) fn new(context: &Context, program: &StepProgram) -> Result<Self, DeviceError> {
        let allocate = |bytes: &u64| DeviceBuffer::new(context, *bytes, "scratch memory");
        let workspaces = program.workspaces.iter().map(allocate).collect::<Result<_, _>>()?;
        let arrays =
            program.pointer_arrays.iter().map(|entries| PointerArray::new(context, entries));
        let arrays = arrays.collect::<Result<_, _>>()?;
        let texels = Arrays::new(context, program)?;
        Ok(Self { workspaces, prepared: Vec::new(), arrays, texels })
    }

    /// Returns the address of scratch memory `index`; `None` if it does not exist.
    pub(super) fn workspace(&self, index: usize) -> Option<u64> {
        self.workspaces.get(index).map(DeviceBuffer::address)
    }

    /// Returns the address of the array of pointers `index`; `None` if it does not exist.
    pub(super) fn pointer_array(&self, index: usize) -> Option<u64> {
        self.arrays.get(index).map(|array| array.memory.address())
    }

    /// Returns the handle of the texture or surface object `index` as a kernel argument; `None` if
    /// it does not exist.
    pub(super) fn object(&self, index: usize) -> Option<[u8; 8]> {
        self.texels.object(index)
    }

    /// Returns the address of memory that steps use. `what` names its user in errors.
    pub(super) fn place(
        &self,
        memory: Memory,
        address: AddressOf<'_>,
        what: &str,
    ) -> Result<u64, DeviceError> {
        let (found, index) = match memory {
            Memory::Buffer(index) => (address(index), index),
            Memory::Workspace(index) => (self.workspace(index), index),
        };
        found.ok_or_else(|| no_buffer(what, 0, index))
    }

    /// Saves the current content of scratch memory. Each run then starts with it.
    pub(super) fn keep(&mut self, context: &Context, stream: &Stream) -> Result<(), DeviceError> {
        let copied = |memory: &DeviceBuffer| {
            let copy = DeviceBuffer::new(context, memory.len() as u64, "scratch memory")?;
            copy.copy_range_from_device(0, memory, 0, memory.len(), stream)?;
            Ok(copy)
        };
        self.prepared = self.workspaces.iter().map(copied).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Queues the work that restores scratch memory to its content before a run, and that writes
    /// the current addresses of buffers into arrays of pointers. Waits if these addresses have
    /// changed.
    pub(super) fn renew(
        &mut self,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        for (index, memory) in self.workspaces.iter().enumerate() {
            match self.prepared.get(index) {
                Some(prepared) => {
                    memory.copy_range_from_device(0, prepared, 0, memory.len(), stream)?
                }
                None => memory.fill(POISON, stream)?,
            }
        }
        for index in 0..self.arrays.len() {
            let addresses = self.addresses(&self.arrays[index].entries, address)?;
            self.arrays[index].write(addresses, stream)?;
        }
        let place = |memory: Memory| self.place(memory, address, "a CUDA array");
        self.texels.fill(&place, stream)
    }

    /// Queues copies of CUDA arrays back to their buffers or scratch memory. With `outputs`, copies
    /// the arrays that kernels write; otherwise, those that hold scratch memory. Returns whether
    /// there are any.
    pub(super) fn collect(
        &self,
        outputs: bool,
        address: AddressOf<'_>,
        stream: &Stream,
    ) -> Result<bool, DeviceError> {
        let place = |memory: Memory| self.place(memory, address, "a CUDA array");
        self.texels.collect(outputs, &place, stream)
    }

    /// Returns the current content of an array of pointers, as bytes.
    fn addresses(
        &self,
        entries: &[Option<Pointee>],
        address: AddressOf<'_>,
    ) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = Vec::with_capacity(entries.len() * POINTER);
        for entry in entries {
            let pointer = match entry {
                Some(Pointee { memory, offset }) => {
                    self.place(*memory, address, "an array of pointers")? + offset
                }
                None => 0,
            };
            bytes.extend(pointer.to_ne_bytes());
        }
        Ok(bytes)
    }

    pub(super) fn into_memory(self) -> impl Iterator<Item = DeviceBuffer> {
        let arrays = self.arrays.into_iter().flat_map(|array| [array.memory, array.copy]);
        self.workspaces.into_iter().chain(self.prepared).chain(arrays)
    }
}

impl PointerArray {
    fn new(context: &Context, entries: &[Option<Pointee>]) -> Result<Self, DeviceError> {
        let bytes = (entries.len() * POINTER) as u64;
        let allocate = || DeviceBuffer::new(context, bytes, "an array of pointers");
        let (memory, copy) = (allocate()?, allocate()?);
        Ok(Self { entries: entries.to_vec(), memory, copy, addresses: Vec::new() })
    }

    fn write(&mut self, addresses: Vec<u8>, stream: &Stream) -> Result<(), DeviceError> {
        if self.addresses != addresses {
            self.copy.copy_from_host(0, &addresses, stream)?;
            self.addresses = addresses;
        }
        self.memory.copy_range_from_device(0, &self.copy, 0, self.addresses.len(), stream)
    }
}
