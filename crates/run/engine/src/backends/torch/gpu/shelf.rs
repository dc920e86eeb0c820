//! Copies of the runners' results, in the judge's device memory.

use super::Gpu;
use super::arena::Also;
use super::blocks::{Blocks, OnDevice};
use crate::backends::torch::values::{Copied, Named, Value, of_scalar};
use crate::backends::torch::{MOST_BYTES, player::Player};
use warpgauge_device::DeviceBuffer;
use warpgauge_device::locked::ByteRange;
use warpgauge_torch::{RunnerFault, Scalar, TensorAt, Tree, TreeOf};

/// Alignment of the copies, bytes.
const STEP: usize = 512;

/// Copies of the results of the candidate or of a reference.
pub(super) struct Shelf {
    /// Index among the judge's shelves; 0 is the candidate's.
    number: usize,
    memory: Option<DeviceBuffer>,
}

/// A copy on the device, from a block of the runner's memory to the judge's memory.
struct Move<'a> {
    tensor: &'a TensorAt,
    /// Offset at which the elements are in C order after the copy.
    to: usize,
    /// Offset of a preceding copy in the original layout. `None` if the tensor is contiguous.
    as_is: Option<usize>,
}

/// Copies of the results of one batch.
pub(super) struct Shelved {
    /// Results of each call, with the paths of the values.
    pub values: Vec<Named>,
    /// Address ranges of the copies of each call's device results, in the original layout of the
    /// results.
    pub hashed: Vec<Vec<ByteRange>>,
    /// Whether the host had to rearrange some results into C order.
    pub strided: bool,
    /// Whether some results are in host memory.
    pub elsewhere: bool,
}

/// Reasons why results could not be copied.
pub(super) enum NotShelved {
    /// The runner's report is invalid.
    Fault(RunnerFault),
    /// The judge's memory or device failed. The message describes the failure.
    Broken(String),
    /// The device has too little memory. The message contains the required size.
    NoRoom(String),
}

impl Shelf {
    pub(super) fn new(number: usize) -> Self {
        Self { number, memory: None }
    }

    pub(super) fn memory(&self) -> Option<&DeviceBuffer> {
        self.memory.as_ref()
    }

    fn with_room(&mut self, gpu: &Gpu, bytes: usize) -> Result<&DeviceBuffer, NotShelved> {
        if self.memory.as_ref().is_none_or(|memory| memory.len() < bytes) {
            self.memory = None;
            let bytes = (bytes as u64).next_multiple_of(2 << 20);
            self.memory = Some(room(gpu, bytes, "copies of results")?);
        }
        self.memory.as_ref().ok_or_else(|| NotShelved::Broken("there is no memory".to_owned()))
    }

    /// Copies the results of each call of a batch, and the arguments in `also` that the call was to
    /// change. Results are named `[n]` below `root`.
    pub(super) fn fill(
        &mut self,
        gpu: &Gpu,
        blocks: &mut Blocks,
        player: &Player,
        (returned, root): (&[Tree], &str),
        also: &[Vec<Also<'_>>],
    ) -> Result<Shelved, NotShelved> {
        let leaves: Vec<Leaves<'_>> = returned.iter().map(|tree| tree.leaves(root)).collect();
        open_all(gpu, blocks, &leaves)?;
        let session = &player.session;
        let fault = |error: &_| NotShelved::Fault(session.fault_of(error));
        let Plan { mut values, moves, elsewhere, own, bytes, mut hashed, on_host } =
            self.plan(blocks, player, &leaves, also)?;
        let memory = self.with_room(gpu, bytes.max(1))?;
        for Move { tensor, to, as_is } in &moves {
            let Some((block, at, span)) = blocks.range(tensor).map_err(|e| fault(&e))? else {
                continue;
            };
            let to = as_is.unwrap_or(*to);
            memory.copy_range_from_device(to, block, at, span, &gpu.stream).map_err(broken)?;
        }
        for (from, at, to, bytes) in &own {
            memory.copy_range_from_device(*to, from, *at, *bytes, &gpu.stream).map_err(broken)?;
        }
        gpu.stream.synchronize().map_err(broken)?;
        // The device rearranges tensors with gaps into C order. The host does so for those with too
        // many axes.
        let mut by_host = 0;
        for (Move { tensor, to, .. }, as_is) in
            moves.iter().filter_map(|one| Some((one, one.as_is?)))
        {
            let places = [as_is, *to].map(|at| memory.address() + at as u64);
            let lies = (&tensor.shape[..], &tensor.strides[..]);
            let size = tensor.dtype.size() as u32;
            let gathered = gpu.support.gather((places[0], places[1]), lies, size, &gpu.stream);
            if gathered.map_err(broken)? {
                continue;
            }
            by_host += 1;
            let copy = TensorAt { address: as_is as u64, ..(*tensor).clone() };
            let bytes = copy.read(&OnDevice(memory, &gpu.stream), MOST_BYTES);
            let bytes = bytes.map_err(|e| fault(&e))?;
            memory.copy_from_host(*to, &bytes, &gpu.stream).map_err(broken)?;
        }
        gpu.stream.synchronize().map_err(broken)?;
        hashed.iter_mut().flatten().for_each(|(at, _)| *at += memory.address());
        let off_device = on_host || !elsewhere.is_empty();
        for (call, index, tensor) in elsewhere {
            let bytes = tensor.read(session.memory(), MOST_BYTES).map_err(|e| fault(&e))?;
            let value = Value::Tensor { dtype: tensor.dtype, shape: tensor.shape.clone(), bytes };
            if let Some((_, place)) = values.get_mut(call).and_then(|named| named.get_mut(index)) {
                *place = value;
            }
        }
        Ok(Shelved { values, hashed, strided: by_host > 0, elsewhere: off_device })
    }

    /// Assigns an offset to each copy before any copy is queued.
    fn plan<'a>(
        &self,
        blocks: &Blocks,
        player: &Player,
        leaves: &[Leaves<'a>],
        also: &[Vec<Also<'a>>],
    ) -> Result<Plan<'a>, NotShelved> {
        let fault = |error: &_| NotShelved::Fault(player.session.fault_of(error));
        let mut plan = Plan::default();
        let mut on_host = 0;
        for (call, leaves) in leaves.iter().enumerate() {
            let mut named = Named::new();
            let mut hashed = Vec::new();
            for (name, leaf) in leaves {
                let value = match leaf {
                    TreeOf::Tensor(tensor) => {
                        let bytes = tensor.bytes().map_err(|e| fault(&e))?;
                        // On the device, the size of results is limited only by the memory for
                        // their copies.
                        if tensor.block.is_none() {
                            on_host += bytes;
                            if on_host > MOST_BYTES {
                                return Err(too_much());
                            }
                        }
                        if tensor.block.is_some() {
                            // Checks that the tensor is within its block.
                            let range = blocks.range(tensor).map_err(|e| fault(&e))?;
                            let span = range.map_or(0, |(_, _, span)| span);
                            let copy = plan.place(self.number, bytes as usize);
                            let as_is =
                                (!tensor.is_contiguous()).then(|| plan.place(self.number, span).at);
                            if span > 0 {
                                hashed.push((as_is.unwrap_or(copy.at) as u64, span as u64));
                            }
                            plan.moves.push(Move { tensor, to: copy.at, as_is });
                            let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
                            Value::OnDevice { dtype, shape, copy }
                        } else {
                            plan.elsewhere.push((call, named.len(), tensor));
                            Value::Nothing
                        }
                    }
                    TreeOf::Value(scalar) => {
                        plan.on_host |= *scalar != Scalar::None;
                        of_scalar(scalar).map_err(NotShelved::Fault)?
                    }
                    TreeOf::List(_) | TreeOf::Dict(_) | TreeOf::Record(..) => Value::Nothing,
                };
                named.push((name.clone(), value));
            }
            for (name, (from, at), tensor) in also.get(call).into_iter().flatten() {
                let bytes = tensor.bytes().map_err(|e| fault(&e))? as usize;
                let copy = plan.place(self.number, bytes);
                plan.own.push((*from, *at, copy.at, bytes));
                if bytes > 0 {
                    hashed.push((copy.at as u64, bytes as u64));
                }
                let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
                named.push((name.clone(), Value::OnDevice { dtype, shape, copy }));
            }
            plan.values.push(named);
            plan.hashed.push(hashed);
        }
        Ok(plan)
    }
}

/// Results of one call, with the paths of the values.
type Leaves<'a> = Vec<(String, &'a Tree)>;

/// Copies to make for the results of one batch.
#[derive(Default)]
struct Plan<'a> {
    /// Results of each call, with the paths of the values.
    values: Vec<Named>,
    /// Copies from the runner's blocks of memory.
    moves: Vec<Move<'a>>,
    /// Tensors on the host, each with its call and its index in `values`.
    elsewhere: Vec<(usize, usize, &'a TensorAt)>,
    /// Copies from the judge's memory: source buffer and offset, target offset, and size in bytes.
    own: Vec<(&'a DeviceBuffer, usize, usize, usize)>,
    bytes: usize,
    /// Offsets and sizes in bytes of the copies of each call's device results, in the original
    /// layout of the results.
    hashed: Vec<Vec<ByteRange>>,
    /// Whether a call returned a number or a text.
    on_host: bool,
}

impl Plan<'_> {
    fn place(&mut self, shelf: usize, bytes: usize) -> Copied {
        let at = self.bytes;
        // The sum saturates far above the memory of any device, so that the allocation then fails.
        self.bytes = self.bytes.saturating_add(bytes.min(usize::MAX / 2).next_multiple_of(STEP));
        Copied { shelf, at, bytes }
    }
}

fn open_all(gpu: &Gpu, blocks: &mut Blocks, leaves: &[Leaves<'_>]) -> Result<(), NotShelved> {
    for (_, leaf) in leaves.iter().flatten() {
        let TreeOf::Tensor(tensor) = leaf else { continue };
        blocks.open(gpu, tensor).map_err(|what| {
            let text = format!("its process reports memory that does not exist: {what}");
            NotShelved::Fault(RunnerFault::Forged(text))
        })?;
    }
    Ok(())
}

fn too_much() -> NotShelved {
    NotShelved::Fault(RunnerFault::unusable(format!(
        "the tensors on the host that a call returns have more than {MOST_BYTES} bytes in total, which is the \
         maximum: return fewer, or leave them on the device"
    )))
}

/// Allocates memory on the device. If the device has too little, the error contains the required
/// size.
pub(super) fn room(gpu: &Gpu, bytes: u64, what: &'static str) -> Result<DeviceBuffer, NotShelved> {
    let (free, total) = gpu.context.memory_info().map_err(broken)?;
    if bytes > free {
        return Err(NotShelved::NoRoom(format!(
            "the device has too little memory: {what} need {bytes} bytes, but {free} of its {total} bytes are free; make the \
             tensors smaller, or use a device with more memory"
        )));
    }
    DeviceBuffer::new(&gpu.context, bytes, what).map_err(broken)
}

pub(super) fn broken(error: impl std::fmt::Display) -> NotShelved {
    NotShelved::Broken(error.to_string())
}
