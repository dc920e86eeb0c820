//! Inputs on the device: memory of the judge that runners open, with one set of arguments for each
//! call of a batch. The judge generates tensors with a rule there, from a seed. It copies other
//! tensors from memory that no runner opens.
//!
//! Candidate and references have separate memory. Work that the candidate left running on the
//! device therefore cannot change the references' inputs.

use std::cell::OnceCell;

use base64::Engine as _;

use super::Gpu;
use super::shelf::{NotShelved, broken, room};
use crate::backends::torch::inputs::{Argument, Content};
use warpgauge_device::locked::{ByteRange, Locks};
use warpgauge_device::support::InitParams;
use warpgauge_device::{DeviceBuffer, DeviceError};
use warpgauge_model::gate_page::Digest;
use warpgauge_tensor::{Dtype, TensorInit};
use warpgauge_torch::{LentTensor, TensorAt, Tree, TreeOf};
use warpgauge_validate::Nudge;

/// Alignment of tensors in a set, bytes.
const STEP: u64 = 512;

/// Maximum total size of all sets, in bytes.
const MOST_BYTES: u64 = 8 << 30;

/// Granularity of allocations, bytes. The driver puts smaller buffers into a common block, and
/// runners would then open that whole block.
const BLOCK: u64 = 2 << 20;

/// Number of bytes at either end of a tensor that its digest covers.
const DIGESTED_BYTES: u64 = 4 << 10;

/// Maximum number of sets. No batch has more calls.
const MOST_SETS: u64 = 32;

/// One tensor of a set of arguments.
struct Slot {
    /// Path among the arguments, such as `[0]`.
    place: String,
    name: String,
    dtype: Dtype,
    /// Layout of the elements within the set; the address is an offset.
    lies: TensorAt,
    offset: u64,
    /// Bytes that the tensor occupies in a set, gaps included.
    bytes: u64,
    /// Rule that generates the contents, and whether the rule is random. `None` if the arena stores
    /// a copy of the contents.
    init: Option<(TensorInit, bool)>,
}

/// Selects the runners that open the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Candidate,
    References,
}

/// Memory on the device with sets of inputs, and the contents that the sets must have.
pub(super) struct Arena {
    candidates: DeviceBuffer,
    /// Memory for the references' inputs. It is as large as `candidates` if there are references,
    /// and otherwise has one block.
    of_references: DeviceBuffer,
    /// Memory to which the judge writes a set before it is encrypted. No runner opens this memory.
    own: OnceCell<DeviceBuffer>,
    referenced: bool,
    /// Contents of tensors without a rule: one set from the contract, or all sets from
    /// `get_inputs()`.
    pristine: Option<DeviceBuffer>,
    pristine_stride: u64,
    slots: Vec<Slot>,
    /// Arguments of the first call, as runners receive them.
    pub tree: TreeOf<LentTensor>,
    pub stride: u64,
    pub sets: u32,
}

impl Arena {
    /// Allocates sets for arguments with known contents.
    pub(super) fn of_given(
        gpu: &Gpu,
        arguments: &[Argument],
        referenced: bool,
    ) -> Result<Self, NotShelved> {
        let mut slots = Vec::new();
        let mut offset = 0;
        let mut contents = Vec::new();
        let tree = arguments.iter().enumerate().map(|(index, argument)| {
            let (name, what, content) = match argument {
                Argument::Value { value, .. } => return Ok(TreeOf::Value(value.clone())),
                Argument::Tensor { name, what, content } => (name, what, content),
            };
            let init = match content {
                Content::Init(init) => Some(((**init).clone(), content.is_random())),
                Content::Bytes(bytes) => {
                    contents.push((offset, bytes.clone()));
                    None
                }
            };
            let bytes = warpgauge_tensor::shape::bytes(&what.shape, what.dtype).map_err(broken)?;
            slots.push(Slot {
                place: format!("[{index}]"),
                name: name.clone(),
                dtype: what.dtype,
                lies: in_order(offset, what.dtype, &what.shape),
                offset,
                bytes,
                init,
            });
            let placed = slots[slots.len() - 1].lent();
            offset += bytes.max(1).next_multiple_of(STEP);
            Ok(TreeOf::Tensor(placed))
        });
        let tree = TreeOf::List(tree.collect::<Result<_, NotShelved>>()?);
        let mut arena = Self::allocated(gpu, slots, tree, (offset, referenced))?;
        if !contents.is_empty() {
            let pristine =
                DeviceBuffer::new(&gpu.context, offset.max(1), "inputs").map_err(broken)?;
            for (at, bytes) in contents {
                pristine.copy_from_host(at as usize, &bytes, &gpu.stream).map_err(broken)?;
            }
            arena.pristine = Some(pristine);
        }
        Ok(arena)
    }

    /// Allocates sets for arguments that a submission generates, with the layout of `made`.
    pub(super) fn of_made(gpu: &Gpu, made: &Tree, referenced: bool) -> Result<Self, NotShelved> {
        let mut offset = 0;
        let mut slots = Vec::new();
        for (place, leaf) in made.leaves("") {
            let TreeOf::Tensor(tensor) = leaf else { continue };
            let mut lies = in_order(offset, tensor.dtype, &tensor.shape);
            if let Some(strides) = tensor.kept_strides() {
                lies.strides = strides;
            }
            let bytes = lies.span(u64::MAX).map_err(broken)?;
            slots.push(Slot {
                name: place.clone(),
                place,
                dtype: tensor.dtype,
                lies,
                offset,
                bytes,
                init: None,
            });
            offset += bytes.max(1).next_multiple_of(STEP);
        }
        let mut of_slot = slots.iter();
        let tree = made.map(&mut |tensor: &TensorAt| {
            of_slot.next().map_or_else(|| LentTensor::in_order(0, tensor), Slot::lent)
        });
        let mut arena = Self::allocated(gpu, slots, tree, (offset, referenced))?;
        let bytes = (u64::from(arena.sets) * arena.stride).max(1);
        let pristine = room(gpu, bytes, "inputs")?;
        (arena.pristine, arena.pristine_stride) = (Some(pristine), arena.stride);
        Ok(arena)
    }

    fn allocated(
        gpu: &Gpu,
        slots: Vec<Slot>,
        tree: TreeOf<LentTensor>,
        (set, referenced): (u64, bool),
    ) -> Result<Self, NotShelved> {
        let stride = set.max(STEP);
        let (free, _) = gpu.context.memory_info().map_err(broken)?;
        let sets = (MOST_BYTES.min(free / 8) / stride).clamp(1, MOST_SETS);
        let bytes = (sets * stride).next_multiple_of(BLOCK);
        let candidates = zeroed(gpu, bytes)?;
        let of_references = zeroed(gpu, if referenced { bytes } else { BLOCK })?;
        let (sets, pristine, pristine_stride) = (sets as u32, None, 0);
        Ok(Self {
            candidates,
            of_references,
            own: OnceCell::new(),
            referenced,
            pristine,
            pristine_stride,
            slots,
            tree,
            stride,
            sets,
        })
    }

    /// Replaces a side's memory with other memory of the same size. Returns the old memory, which
    /// the side's runners still have open. `padding` bytes are allocated in the meantime, so that
    /// the new memory is at another location.
    pub(super) fn relocate(
        &mut self,
        gpu: &Gpu,
        whose: Whose,
        padding: u64,
    ) -> Result<DeviceBuffer, NotShelved> {
        let memory = match whose {
            Whose::Candidate => &mut self.candidates,
            Whose::References => &mut self.of_references,
        };
        let _padding = room(gpu, padding, "inputs")?;
        let elsewhere = zeroed(gpu, memory.len() as u64)?;
        Ok(std::mem::replace(memory, elsewhere))
    }

    fn memory(&self, whose: Whose) -> &DeviceBuffer {
        match whose {
            Whose::Candidate => &self.candidates,
            Whose::References => &self.of_references,
        }
    }

    /// Returns the handle with which runners open the memory, in base64, and the size of the memory
    /// in bytes.
    pub(super) fn lent(&self, whose: Whose) -> Result<(String, u64), NotShelved> {
        let memory = self.memory(whose);
        let handle = memory.export().map_err(broken)?;
        let text = base64::engine::general_purpose::STANDARD.encode(handle.bytes());
        Ok((text, memory.len() as u64))
    }

    /// Returns the byte offset and layout of a set's tensor, found by its path among the arguments.
    pub(super) fn slot(&self, set: u32, place: &str) -> Option<(usize, TensorAt)> {
        let slot = self.slots.iter().find(|slot| slot.place == place)?;
        let at = u64::from(set) * self.stride + slot.offset;
        Some((at as usize, TensorAt { address: at, ..slot.lies.clone() }))
    }

    /// Returns the arguments at the given paths for each call, with their memory and layout.
    pub(super) fn also(&self, whose: Whose, places: &[String], count: u32) -> Vec<Vec<Also<'_>>> {
        let of_call = |call: u32| {
            let slots = places.iter().filter_map(|place| {
                let (at, tensor) = self.slot(call, place)?;
                Some((place.clone(), (self.memory(whose), at), tensor))
            });
            slots.collect()
        };
        (0..count).map(of_call).collect()
    }

    /// Stores a tensor that a submission generated for a set. `index` is its position among the
    /// tensors, and `from` its bytes or its location on the device.
    pub(super) fn keep(
        &self,
        gpu: &Gpu,
        set: u32,
        index: usize,
        from: Source<'_>,
    ) -> Result<(), NotShelved> {
        let (Some(slot), Some(pristine)) = (self.slots.get(index), &self.pristine) else {
            return Err(NotShelved::Broken("no memory is reserved for an input".to_owned()));
        };
        let at = (u64::from(set) * self.pristine_stride + slot.offset) as usize;
        match from {
            Source::Host(bytes) => pristine.copy_from_host(at, bytes, &gpu.stream).map_err(broken),
            Source::Device(block, from) => {
                let bytes = slot.bytes as usize;
                pristine.copy_range_from_device(at, block, from, bytes, &gpu.stream).map_err(broken)
            }
        }
    }

    /// Returns the address and size in bytes of the memory of the first set.
    pub(super) fn window(&self, whose: Whose) -> ByteRange {
        (self.memory(whose).address(), self.stride)
    }

    /// Returns the offsets within a set and the sizes in bytes of the arguments at the given paths.
    /// Empty arguments are omitted.
    pub(super) fn places(&self, places: &[String]) -> Vec<ByteRange> {
        let slot = |place: &String| self.slots.iter().find(|slot| slot.place == *place);
        let slots = places.iter().filter_map(slot).filter(|slot| slot.bytes > 0);
        slots.map(|slot| (slot.offset, slot.bytes)).collect()
    }

    /// Writes one set for each entry of `seeds`, and waits until the device has written them.
    pub(super) fn present(
        &self,
        gpu: &Gpu,
        whose: Whose,
        seeds: &[Option<u64>],
    ) -> Result<(), NotShelved> {
        for (set, seed) in (0..).zip(seeds) {
            self.write(gpu, (set, *seed), (self.memory(whose), set * self.stride))?;
        }
        gpu.stream.synchronize().map_err(broken)
    }

    /// Writes one set for each entry of `seeds`, encrypted under its key, and waits until the
    /// device has written them. Unencrypted inputs are never in memory that a runner has open,
    /// since work that a candidate left on the device could read them. Sets that consist only of
    /// stored copies are encrypted while they are copied. Others are first written to memory of the
    /// judge.
    pub(super) fn present_locked(
        &self,
        gpu: &Gpu,
        whose: Whose,
        seeds: &[Option<u64>],
        (locks, keys): (&mut Locks<'_>, &[Digest]),
    ) -> Result<(), NotShelved> {
        locks.take_keys(keys).map_err(broken)?;
        let is_kept = self.slots.iter().all(|slot| slot.init.is_none());
        for (index, seed) in seeds.iter().enumerate() {
            let set = index as u64;
            let from = match self.pristine.as_ref().filter(|_| is_kept) {
                Some(pristine) => pristine.address() + set * self.pristine_stride,
                None => {
                    let own = self.own(gpu)?;
                    self.write(gpu, (set, *seed), (own, 0))?;
                    own.address()
                }
            };
            let to = self.memory(whose).address() + set * self.stride;
            locks.turn(to, (from, self.stride), index).map_err(broken)?;
        }
        gpu.stream.synchronize().map_err(broken)
    }

    /// Returns memory for one set that no runner opens.
    fn own(&self, gpu: &Gpu) -> Result<&DeviceBuffer, NotShelved> {
        if let Some(own) = self.own.get() {
            return Ok(own);
        }
        let own = DeviceBuffer::new(&gpu.context, self.stride, "inputs of a call");
        let own = own.map_err(broken)?;
        Ok(self.own.get_or_init(|| own))
    }

    /// Queues the writes of a set's tensors to `memory`, from byte `begin` on.
    fn write(
        &self,
        gpu: &Gpu,
        (set, seed): (u64, Option<u64>),
        (memory, begin): (&DeviceBuffer, u64),
    ) -> Result<(), NotShelved> {
        for slot in self.slots.iter().filter(|slot| slot.bytes > 0) {
            let at = begin + slot.offset;
            let bytes = slot.bytes as usize;
            if let Some(params) = slot.params(seed)? {
                let content = warpgauge_device::RangeContent::tensor(
                    params,
                    0,
                    (memory.address() + at, bytes),
                );
                gpu.support.write(&[content], &gpu.stream).map_err(broken)?;
            } else if let Some(pristine) = &self.pristine {
                let from = (set * self.pristine_stride + slot.offset) as usize;
                memory
                    .copy_range_from_device(at as usize, pristine, from, bytes, &gpu.stream)
                    .map_err(broken)?;
            }
        }
        Ok(())
    }

    /// Returns the element types of the tensors of a set.
    pub(super) fn types(&self) -> Vec<Dtype> {
        self.slots.iter().map(|slot| slot.dtype).collect()
    }

    /// Returns the tensors of a set: path, element type, shape, and size of the elements in bytes.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (&str, Dtype, &[u64], u64)> {
        let all = self.slots.iter();
        all.map(|slot| {
            (&*slot.place, slot.dtype, &*slot.lies.shape, slot.lies.bytes().unwrap_or(0))
        })
    }

    /// Returns digests of the first sets that a submission generated. They cover both ends of each
    /// tensor.
    pub(super) fn digests(&self, gpu: &Gpu, sets: usize) -> Result<Vec<blake3::Hash>, DeviceError> {
        let Some(pristine) = &self.pristine else { return Ok(Vec::new()) };
        let mut digests = Vec::new();
        for set in 0..sets as u64 {
            let mut hasher = blake3::Hasher::new();
            for slot in self.slots.iter().filter(|slot| slot.bytes > 0) {
                let from = set * self.pristine_stride + slot.offset;
                let length = slot.bytes.min(DIGESTED_BYTES);
                for at in [from, from + slot.bytes - length] {
                    let mut end = vec![0; length as usize];
                    pristine.copy_to_host(at as usize, &mut end, &gpu.stream)?;
                    hasher.update(&end);
                }
            }
            digests.push(hasher.finalize());
        }
        Ok(digests)
    }

    /// Reads a tensor of a set in C order, from memory that the candidate cannot change: the stored
    /// copy or the references' memory. If neither exists, it reads the candidate's memory.
    pub(super) fn content(
        &self,
        gpu: &Gpu,
        (set, place): (u32, &str),
    ) -> Result<Vec<u8>, DeviceError> {
        let slot = self.slots.iter().find(|slot| slot.place == place);
        let Some(slot) = slot else { return Ok(Vec::new()) };
        let mut bytes = vec![0; slot.bytes as usize];
        let (memory, at) = self.held(set, slot);
        memory.copy_to_host(at, &mut bytes, &gpu.stream)?;
        // This cannot fail: a slot is as large as the elements require.
        Ok(slot.lies.in_order(&bytes).unwrap_or_default())
    }

    /// Reads a sample of a contiguous tensor. It reads other tensors in full, as [`Self::content`]
    /// does.
    pub(super) fn sampled(
        &self,
        gpu: &Gpu,
        (set, place): (u32, &str),
    ) -> Result<Vec<u8>, DeviceError> {
        let slot = self.slots.iter().find(|slot| slot.place == place);
        let Some(slot) = slot.filter(|slot| slot.lies.is_contiguous()) else {
            return self.content(gpu, (set, place));
        };
        gpu.sample(self.held(set, slot), (slot.dtype, slot.bytes as usize))
    }

    /// Returns the buffer and offset from which [`Self::content`] reads a tensor.
    fn held(&self, set: u32, slot: &Slot) -> (&DeviceBuffer, usize) {
        let set = u64::from(set);
        let (memory, at) = match (&self.pristine, &slot.init) {
            (Some(pristine), None) => (pristine, set * self.pristine_stride),
            _ if self.referenced => (&self.of_references, set * self.stride),
            _ => (&self.candidates, set * self.stride),
        };
        (memory, (at + slot.offset) as usize)
    }

    /// Moves the elements of the nudge's type in the references' first set by units in the last
    /// place.
    pub(super) fn nudge(&self, gpu: &Gpu, nudge: Nudge) -> Result<(), NotShelved> {
        let is_moved = |slot: &&Slot| slot.dtype.part() == nudge.dtype && slot.bytes > 0;
        let of_type = self.slots.iter().filter(is_moved);
        for (slot, place) in of_type.zip(0u64..) {
            let count = slot.bytes / nudge.dtype.size() as u64;
            let address = self.of_references.address() + slot.offset;
            let by = (nudge.steps, nudge.seed ^ place << 32);
            let moved = gpu.support.nudge(address, (nudge.dtype, count), by, &gpu.stream);
            moved.map_err(broken)?;
        }
        gpu.stream.synchronize().map_err(broken)
    }

    /// Returns the paths of tensors whose contents differ from what the judge wrote, except those
    /// in `changing`.
    pub(super) fn changed(
        &self,
        gpu: &Gpu,
        whose: Whose,
        seeds: &[Option<u64>],
        changing: &[String],
    ) -> Result<Vec<String>, NotShelved> {
        let mut looks = gpu.support.inspect(&gpu.stream).map_err(broken)?;
        let mut found = Vec::new();
        for (set, seed) in seeds.iter().enumerate() {
            let kept = |slot: &&Slot| slot.bytes > 0 && !changing.contains(&slot.place);
            for slot in self.slots.iter().filter(kept) {
                let at = self.memory(whose).address() + set as u64 * self.stride + slot.offset;
                let bytes = slot.bytes as usize;
                let look = if let Some(params) = slot.params(*seed)? {
                    let found = looks.first_others(&[warpgauge_device::RangeContent::tensor(
                        params,
                        0,
                        (at, bytes),
                    )]);
                    found.map(|found| found[0])
                } else if let Some(pristine) = &self.pristine {
                    let from = set as u64 * self.pristine_stride + slot.offset;
                    looks.first_different((at, pristine.address() + from), bytes)
                } else {
                    continue;
                };
                found.push((look.map_err(broken)?, &slot.place));
            }
        }
        let all = looks.read().map_err(broken)?;
        let changed = found.iter().filter(|(look, _)| all.of(*look).is_some());
        let mut places: Vec<String> = changed.map(|(_, place)| (*place).clone()).collect();
        places.sort();
        places.dedup();
        Ok(places)
    }
}

/// Allocates zeroed memory for runners to open. They can read all of it, and without zeroing it
/// might contain inputs that this process wrote earlier.
fn zeroed(gpu: &Gpu, bytes: u64) -> Result<DeviceBuffer, NotShelved> {
    let memory = room(gpu, bytes, "inputs")?;
    memory.fill(0, &gpu.stream).map_err(broken)?;
    Ok(memory)
}

/// An argument tensor: its path, its buffer and offset, and its layout.
pub(super) type Also<'a> = (String, (&'a DeviceBuffer, usize), TensorAt);

/// Source of a tensor's contents.
pub(super) enum Source<'a> {
    Host(&'a [u8]),
    Device(&'a DeviceBuffer, usize),
}

/// Returns the layout of a contiguous tensor in C order.
fn in_order(offset: u64, dtype: Dtype, shape: &[u64]) -> TensorAt {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    TensorAt { address: offset, block: None, dtype, shape: shape.to_vec(), strides }
}

impl Slot {
    /// Returns the tensor of the first set, in the form that a runner expects.
    fn lent(&self) -> LentTensor {
        let strides = self.lies.kept_strides();
        LentTensor { strides, ..LentTensor::in_order(self.offset, &self.lies) }
    }

    fn params(&self, seed: Option<u64>) -> Result<Option<InitParams>, NotShelved> {
        let Some((init, random)) = &self.init else { return Ok(None) };
        let init = match seed.filter(|_| *random) {
            Some(seed) => init.reseeded(seed),
            None => init.clone(),
        };
        InitParams::new(&init, (self.dtype, &self.lies.shape), &self.name).map(Some).map_err(broken)
    }
}
