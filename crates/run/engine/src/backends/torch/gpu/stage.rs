//! State on the device during an evaluation: inputs, the memory of candidate and references, and
//! copies of their results.

use std::time::{Duration, Instant};

use super::arena::{Arena, Source, Whose};
use super::blocks::Blocks;
use super::compared::counted;
use super::shelf::{NotShelved, Shelf, Shelved, broken};
use super::turn::{Overhead, Turn};
use super::{Gpu, near};
use crate::backends::torch::fault::{Failed, Stop};
use crate::backends::torch::inputs::Inputs;
use crate::backends::torch::player::Player;
use crate::backends::torch::players::Players;
use crate::backends::torch::values::{Named, Value};
use warpgauge_device::locked::{ByteRange, Locks};
use warpgauge_device::support::Support;
use warpgauge_device::{DeviceBuffer, DeviceError};
use warpgauge_model::gate_page::{Digest, MOST_RANGES};
use warpgauge_tensor::{Dtype, shape_of_parts};
use warpgauge_torch::{
    CallBatch, CompletedBatch, LockedCall, LockedOrder, ModuleParameter, RunnerFault, RunnerGate,
    RunnerSession, Secret, TensorAt, TensorLayout, Tree, TreeOf,
};
use warpgauge_validate::{
    Comparison, JoinedComparison, Nudge, Reason, ReasonCode, ResolvedTolerance, placed,
};

/// Message for results that change after their call has ended.
const UNSETTLED: &str = "the results of a call were not complete when the current stream reached the end of the \
                         call, or were changed afterwards: make the current stream wait for other streams, and \
                         return memory that no later call writes to";

/// Number of bytes of a large value that the host compares in one step.
const PART_BYTES: usize = 64 << 20;

/// Number of bytes that are searched for examples of mismatches, from the first mismatch on.
const EXAMPLE_BYTES: usize = 64 << 10;

/// Size in bytes above which a value is sampled if a sample suffices.
const MOST_WHOLE_BYTES: u64 = 16 << 20;

/// Maximum total size of inputs that a runner generates before the judge copies them, in bytes. The
/// inputs of a single call may be larger.
const DRAWN_BYTES: u64 = 256 << 20;

/// Number of measurements of the overhead, and number of measurements before them that are
/// discarded.
const MEASURED: usize = 41;
const UNCOUNTED: usize = 5;

/// Time after which no more measurements are discarded, and time after which the minimum number of
/// measurements suffices. Measurements of large calls take long, and vary little.
const DISCARDING: Duration = Duration::from_millis(15);
const MEASURING: Duration = Duration::from_millis(40);

/// Minimum numbers of measurements: for a reported time, and for a decision on when to stop.
pub(super) const FEWEST_COUNTED: usize = 7;
pub(super) const FEWEST_ROUGH: usize = 3;

/// Device state of one side: its runner's memory, copies of its results, and the gate at which the
/// runner waits for keys.
pub(super) struct Side {
    pub(super) blocks: Blocks,
    pub(super) shelf: Shelf,
    pub(super) gate: RunnerGate,
}

/// Mode in which the calls of a batch are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallOrder {
    /// All inputs are in place before the first call. `flush` is the number of bytes to write
    /// before each call; then events time the calls. If it is 0, there are neither writes nor
    /// events.
    Together { flush: u64 },
    /// The inputs of a call stay encrypted until the results of the previous call are hashed.
    Locked,
}

impl CallOrder {
    /// The mode in which all calls are made without flushes or events.
    pub(super) const TOGETHER: Self = Self::Together { flush: 0 };

    /// Makes a runner execute its prepared calls. `keys` contains the keys of locked calls.
    pub(super) fn run(
        self,
        session: &mut RunnerSession,
        gate: &mut RunnerGate,
        keys: &[Digest],
    ) -> Result<(CompletedBatch, Vec<LockedCall>), RunnerFault> {
        match self {
            Self::Together { .. } => {
                let ran = session.run()?;
                gate.expect_calls_of(ran.took / ran.returned.len().max(1) as u32);
                Ok((ran, Vec::new()))
            }
            Self::Locked => session.run_locked(gate, keys),
        }
    }
}

impl Side {
    fn new(number: usize, gate: RunnerGate) -> Self {
        Self { blocks: Blocks::default(), shelf: Shelf::new(number), gate }
    }

    /// Moves the elements of a reference's trained parameters by units in the last place, if they
    /// have the nudge's type.
    pub(super) fn nudge_parameters(
        &mut self,
        gpu: &Gpu,
        player: &mut Player,
        nudge: Nudge,
    ) -> Result<(), Stop> {
        let held = player.session.parameters();
        let held = held.map_err(|fault| player.stopped(true, fault))?;
        let moved = held.iter().filter(|one| one.trained && one.tensor.dtype.part() == nudge.dtype);
        for (parameter, place) in moved.zip(0u64..) {
            let mut bytes = self.held(gpu, player, (parameter, true))?;
            let seed = nudge.seed ^ place << 32;
            warpgauge_tensor::nudge(nudge.dtype, &mut bytes, nudge.steps, seed);
            let written = self.blocks.overwrite(gpu, &parameter.tensor, &bytes);
            written.map_err(|error| player.stopped(true, player.session.fault_of(&error)))?;
        }
        Ok(())
    }

    /// Reads the elements of one of the submission's parameters or buffers, in C order.
    pub(super) fn held(
        &mut self,
        gpu: &Gpu,
        player: &Player,
        (parameter, of_reference): (&ModuleParameter, bool),
    ) -> Result<Vec<u8>, Stop> {
        let stopped = |fault| player.stopped(of_reference, fault);
        let opened = self.blocks.open(gpu, &parameter.tensor);
        opened.map_err(|what| stopped(RunnerFault::Forged(what)))?;
        let bytes = self.blocks.read(gpu, &player.session, &parameter.tensor);
        bytes.map_err(|error| stopped(player.session.fault_of(&error)))
    }
}

/// State of the device during one evaluation.
pub(super) struct Stage<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) arena: Arena,
    pub(super) candidate: Side,
    pub(super) references: Vec<Side>,
    /// Paths of the arguments that calls may change.
    pub(super) changing: Vec<String>,
    /// Whether the host must rearrange results into C order, because the device cannot.
    pub(super) strided: bool,
    pub(super) locks: Locks<'a>,
    secret: Secret,
}

impl<'a> Stage<'a> {
    /// Allocates memory for inputs, and gives the runners access to it.
    pub(super) fn open(gpu: &'a Gpu, players: &mut Players) -> Result<Self, Stop> {
        let referenced = !players.expectations.references.is_empty();
        let arena = match &players.inputs {
            Inputs::Given { arguments, .. } => Arena::of_given(gpu, arguments, referenced),
            Inputs::Made => {
                let (maker, of_reference) = players.maker();
                let made = maker.session.make_inputs(0);
                let made = made.map_err(|fault| maker.stopped(of_reference, fault))?;
                Arena::of_made(gpu, &made, referenced)
            }
        };
        let Players { candidate, expectations, inputs, .. } = players;
        let arena = arena.map_err(|error| not_shelved(candidate, false, error))?;
        let lent = |whose| arena.lent(whose).map_err(|error| not_shelved(candidate, false, error));
        let (handle, bytes) = lent(Whose::Candidate)?;
        let (of_references, as_many) = lent(Whose::References)?;
        let opened = candidate.session.open(&handle, bytes);
        let gate = opened.and_then(|()| candidate.session.gate(&gpu.kernels));
        let gate = gate.map_err(|fault| candidate.stopped(false, fault))?;
        let mut references = Vec::new();
        for (index, reference) in expectations.references.iter_mut().enumerate() {
            let opened = reference.player.session.open(&of_references, as_many);
            let gate = opened.and_then(|()| reference.player.session.gate(&gpu.kernels));
            let gate = gate.map_err(|fault| reference.player.stopped(true, fault))?;
            references.push(Side::new(index + 1, gate));
        }
        let changing = inputs.changing();
        let candidate = Side::new(0, gate);
        let locks = Locks::new(&gpu.context, &gpu.support, &gpu.stream);
        let locks = locks.map_err(|error| Stop::Broken(error.to_string()))?;
        let (strided, secret) = (false, Secret::default());
        Ok(Self { gpu, arena, candidate, references, changing, strided, locks, secret })
    }

    /// Writes the inputs of a batch for one side. If the batch is locked, encrypts them and returns
    /// their keys.
    pub(super) fn present(
        &mut self,
        whose: Whose,
        seeds: &[Option<u64>],
        order: CallOrder,
    ) -> Result<Vec<Digest>, NotShelved> {
        if order != CallOrder::Locked {
            return self.arena.present(self.gpu, whose, seeds).map(|()| Vec::new());
        }
        let keys: Vec<Digest> = seeds.iter().map(|_| self.secret.key()).collect();
        self.arena.present_locked(self.gpu, whose, seeds, (&mut self.locks, &keys))?;
        Ok(keys)
    }

    /// Returns the times of locked calls if the copies of their results have the hashes that were
    /// taken when each call ended. Returns `None` for calls that are not locked, or if some results
    /// are not on the device. With `trusts`, the hashes are not compared.
    pub(super) fn settled(
        &mut self,
        shelved: &Shelved,
        calls: Vec<LockedCall>,
        trusts: bool,
    ) -> Result<Result<Option<Turn>, Reason>, NotShelved> {
        let unsettled = || Reason::new(ReasonCode::OutputMismatch, UNSETTLED.to_owned());
        for (ranges, call) in shelved.hashed.iter().zip(&calls).filter(|_| !trusts) {
            // A call has hashes of at most this number of ranges, whatever the runner reports.
            if ranges.len() > MOST_RANGES {
                return Ok(Err(unsettled()));
            }
            let digests = self.locks.digests(ranges).map_err(broken)?;
            if call.digests.get(..digests.len()) != Some(&digests[..]) {
                return Ok(Err(unsettled()));
            }
        }
        let Some(first) = shelved.hashed.first().filter(|_| !calls.is_empty()) else {
            return Ok(Ok(None));
        };
        let results = first.iter().map(|(_, bytes)| *bytes).collect();
        let turn = Turn { calls: calls.into_iter().map(|call| call.took).collect(), results };
        Ok(Ok(Some(turn).filter(|_| !shelved.elsewhere)))
    }

    /// Measures the time to decrypt a call's inputs and to hash results of these sizes, without a
    /// call. `fewest`: number of measurements that suffices if they take long.
    pub(super) fn overhead(&mut self, results: &[u64], fewest: usize) -> Result<Overhead, Stop> {
        let broken = |error: warpgauge_device::DeviceError| Stop::Broken(error.to_string());
        let step = |bytes: &u64| bytes.next_multiple_of(256);
        let all = results.iter().map(step).sum::<u64>().max(1);
        let memory =
            DeviceBuffer::new(&self.gpu.context, all, "results of no call").map_err(broken)?;
        memory.fill(0, &self.gpu.stream).map_err(broken)?;
        let mut at = memory.address();
        let mut range = |bytes: &u64| {
            let range = (at, *bytes);
            at += step(bytes);
            range
        };
        let ranges: Vec<ByteRange> = results.iter().map(&mut range).collect();
        let window = self.arena.window(Whose::Candidate);
        let began = Instant::now();
        for _ in 0..UNCOUNTED {
            self.locks.time(window, &ranges).map_err(broken)?;
            if began.elapsed() > DISCARDING {
                break;
            }
        }
        let mut measured = Vec::new();
        while measured.len() < MEASURED {
            measured.push(self.locks.time(window, &ranges).map_err(broken)?);
            if measured.len() >= fewest && began.elapsed() > MEASURING {
                break;
            }
        }
        Ok(Overhead::of(measured))
    }

    /// Generates the inputs of each set with `get_inputs()`, and stores them in the arena.
    pub(super) fn draw(
        &mut self,
        players: &mut Players,
        seeds: &[Option<u64>],
    ) -> Result<(), Stop> {
        let (maker, of_reference) = players.maker();
        let side = if of_reference { &mut self.references[0] } else { &mut self.candidate };
        let at_once = (DRAWN_BYTES / self.arena.stride.max(1)).max(1) as usize;
        let seeds: Vec<u64> = seeds.iter().map(|seed| seed.unwrap_or_default()).collect();
        let mut set = 0;
        while let Some(rest) = seeds.get(set..).filter(|rest| !rest.is_empty()) {
            let drawn = maker.session.draw_inputs(&rest[..rest.len().min(at_once)]);
            let drawn = drawn.map_err(|fault| maker.stopped(of_reference, fault))?;
            for made in &drawn {
                let kept = keep(self.gpu, &self.arena, side, (&maker.session, set as u32), made);
                kept.map_err(|error| not_shelved(maker, of_reference, error))?;
                set += 1;
            }
            let synchronized = self.gpu.stream.synchronize();
            synchronized.map_err(|error| Stop::Broken(error.to_string()))?;
        }
        Ok(())
    }

    /// Returns a batch in the form that a runner expects. `generator` is the seed of its random
    /// numbers. At `gate` the runner waits for keys of locked calls.
    pub(super) fn batch(
        &self,
        count: usize,
        generator: u64,
        (order, gate): (CallOrder, &RunnerGate),
    ) -> CallBatch<'_> {
        let (flush, locked) = match order {
            CallOrder::Together { flush } => (flush, None),
            CallOrder::Locked => {
                let changing = self.arena.places(&self.changing);
                (0, Some(LockedOrder { first: gate.next(), changing }))
            }
        };
        CallBatch {
            arguments: &self.arena.tree,
            stride: self.arena.stride,
            count: count as u32,
            seed: generator,
            flush,
            locked,
        }
    }

    /// Returns the arguments of a call, for the report.
    pub(super) fn arguments(&self) -> Tree {
        self.arena.tree.map(&mut |placed| TensorAt {
            address: placed.offset,
            block: None,
            dtype: placed.dtype,
            shape: placed.shape.clone(),
            strides: Vec::new(),
        })
    }

    /// Returns the memory with the copies of a side's results; side 0 is the candidate.
    pub(super) fn shelf(&self, number: usize) -> Option<&warpgauge_device::DeviceBuffer> {
        match number {
            0 => self.candidate.shelf.memory(),
            _ => self.references.get(number - 1)?.shelf.memory(),
        }
    }

    /// Copies a value to the host in full.
    pub(super) fn fetched(&self, value: Value) -> Result<Value, Stop> {
        let Value::OnDevice { dtype, shape, copy } = value else { return Ok(value) };
        let Some(memory) = self.shelf(copy.shelf) else {
            return Err(Stop::Broken("a copy no longer exists".to_owned()));
        };
        let mut bytes = vec![0; copy.bytes];
        let copied = memory.copy_to_host(copy.at, &mut bytes, &self.gpu.stream);
        copied.map_err(|error| Stop::Broken(error.to_string()))?;
        Ok(Value::Tensor { dtype, shape, bytes })
    }

    /// Copies a sample of a device value to the host.
    pub(super) fn sampled(&self, value: &Value) -> Result<Value, Stop> {
        let Value::OnDevice { dtype, shape, copy } = value else { return Ok(value.clone()) };
        let Some(memory) = self.shelf(copy.shelf) else {
            return Err(Stop::Broken("a copy no longer exists".to_owned()));
        };
        let bytes = self.gpu.sample((memory, copy.at), (*dtype, copy.bytes));
        let bytes = bytes.map_err(|error| Stop::Broken(error.to_string()))?;
        Ok(Value::Tensor { dtype: *dtype, shape: shape.clone(), bytes })
    }

    /// Copies a small value to the host in full, and a sample of a large one.
    pub(super) fn glimpsed(&self, value: &Value) -> Result<Value, Stop> {
        if value.bytes() <= MOST_WHOLE_BYTES {
            self.fetched(value.clone())
        } else {
            self.sampled(value)
        }
    }

    /// Compares two large copies: on the device if it supports their type, otherwise on the host,
    /// part by part. Returns `None` if their types or shapes differ, or if one of them is not on
    /// the device.
    pub(super) fn compared_in_parts(
        &self,
        (value, wanted): (&Value, &Value),
        tolerance: &ResolvedTolerance,
    ) -> Result<Option<Comparison>, Stop> {
        let (
            Value::OnDevice { dtype, shape, copy },
            Value::OnDevice { dtype: other, shape: extents, copy: theirs },
        ) = (value, wanted)
        else {
            return Ok(None);
        };
        let memories = self.shelf(copy.shelf).zip(self.shelf(theirs.shelf));
        let Some((own, their_memory)) = memories else {
            return Err(Stop::Broken("a copy no longer exists".to_owned()));
        };
        if (dtype, shape) != (other, extents) {
            return Ok(None);
        }
        let (dtype, shape) = (dtype.part(), &shape_of_parts(*dtype, shape)[..]);
        let read = |memory: &DeviceBuffer, at: usize, bytes: usize| {
            let mut part = vec![0; bytes];
            let copied = memory.copy_to_host(at, &mut part, &self.gpu.stream);
            copied.map(|()| part).map_err(|error| Stop::Broken(error.to_string()))
        };
        if Support::compares(dtype) {
            let places =
                (own.address() + copy.at as u64, their_memory.address() + theirs.at as u64);
            let count = (copy.bytes / dtype.size()) as u64;
            let near = near(tolerance);
            let further = tolerance.outliers.map_or(tolerance.atol, |outliers| outliers.atol);
            let Gpu { context, stream, support, .. } = self.gpu;
            let found = support.measure(context, places, (dtype, count), (near, further), stream);
            let found = found.map_err(|error| Stop::Broken(error.to_string()))?;
            let compared = |examples| counted(found, count).compared(tolerance, examples);
            let Some(first) = found.first else { return Ok(Some(compared(Vec::new()))) };
            // The device decides and counts. The host finds where the mismatches lie: in all of the
            // output, or in the part after the first mismatch.
            let is_whole = copy.bytes <= PART_BYTES;
            let at = if is_whole { 0 } else { first as usize * dtype.size() };
            let bytes = if is_whole { copy.bytes } else { EXAMPLE_BYTES.min(copy.bytes - at) };
            let (actual, expected) =
                (read(own, copy.at + at, bytes)?, read(their_memory, theirs.at + at, bytes)?);
            if is_whole {
                let host =
                    warpgauge_validate::compare(dtype, shape, &actual, &expected, None, tolerance);
                let mut comparison = compared(host.first_mismatches);
                (comparison.pattern, comparison.mismatch_map) = (host.pattern, host.mismatch_map);
                return Ok(Some(comparison));
            }
            let count = [(bytes / dtype.size()) as u64];
            let part =
                warpgauge_validate::compare(dtype, &count, &actual, &expected, None, tolerance);
            return Ok(Some(compared(placed(&part.first_mismatches, first, shape))));
        }
        let mut parts = JoinedComparison::new(shape);
        for at in (0..copy.bytes).step_by(PART_BYTES) {
            let bytes = PART_BYTES.min(copy.bytes - at);
            let (actual, expected) =
                (read(own, copy.at + at, bytes)?, read(their_memory, theirs.at + at, bytes)?);
            let count = [(bytes / dtype.size()) as u64];
            parts.add(warpgauge_validate::compare(
                dtype, &count, &actual, &expected, None, tolerance,
            ));
        }
        Ok(parts.joined())
    }

    /// Reads the inputs of one call of a batch, with their paths. `wanted` selects them by type and
    /// size in bytes.
    pub(super) fn inputs_of_call(
        &self,
        call: u32,
        wanted: &dyn Fn(Dtype, u64) -> bool,
    ) -> Result<Named, Stop> {
        self.inputs_read(wanted, &|place| self.arena.content(self.gpu, (call, place)))
    }

    /// Like [`Self::inputs_of_call`] for the first call, but with only a sample of each large
    /// input.
    pub(super) fn inputs_glimpsed(
        &self,
        wanted: &dyn Fn(Dtype, u64) -> bool,
    ) -> Result<Named, Stop> {
        let is_small = |_: Dtype, bytes: u64| bytes <= MOST_WHOLE_BYTES;
        let small = |dtype, bytes| wanted(dtype, bytes) && is_small(dtype, bytes);
        let large = |dtype, bytes| wanted(dtype, bytes) && !is_small(dtype, bytes);
        let mut found = self.inputs_of_call(0, &small)?;
        found.extend(self.inputs_read(&large, &|place| self.arena.sampled(self.gpu, (0, place)))?);
        Ok(found)
    }

    fn inputs_read(
        &self,
        wanted: &dyn Fn(Dtype, u64) -> bool,
        read: &dyn Fn(&str) -> Result<Vec<u8>, DeviceError>,
    ) -> Result<Named, Stop> {
        let mut found = Named::new();
        for (place, dtype, shape, bytes) in self.arena.tensors() {
            if wanted(dtype, bytes) {
                let content = read(place);
                let bytes = content.map_err(|error| Stop::Broken(error.to_string()))?;
                let shape = shape.to_vec();
                found.push((place.to_owned(), Value::Tensor { dtype, shape, bytes }));
            }
        }
        Ok(found)
    }
}

/// Copies the inputs that were generated for one set into the arena, where no runner can change
/// them.
fn keep(
    gpu: &Gpu,
    arena: &Arena,
    side: &mut Side,
    (session, set): (&RunnerSession, u32),
    made: &Tree,
) -> Result<(), NotShelved> {
    let forged = |what: String| NotShelved::Fault(RunnerFault::Forged(what));
    let fault = |error: &_| NotShelved::Fault(session.fault_of(error));
    let leaves = made.leaves("");
    let tensors = leaves.iter().filter_map(|(place, leaf)| match leaf {
        TreeOf::Tensor(tensor) => Some((place, tensor)),
        _ => None,
    });
    for (index, (place, tensor)) in tensors.enumerate() {
        let slot = arena.slot(set, place).map(|(_, slot)| TensorLayout::of_copy(&slot));
        if slot != Some(TensorLayout::of_copy(tensor)) {
            let text = format!("`get_inputs` changes the layout of `inputs{place}` with the seed");
            return Err(forged(text));
        }
        side.blocks.open(gpu, tensor).map_err(forged)?;
        // A tensor without gaps is copied on the device in its layout. Others are copied through
        // the host.
        let stored = tensor.stored(u64::MAX).map_err(|error| fault(&error))?;
        match side.blocks.range(&stored).map_err(|error| fault(&error))? {
            Some((block, at, _)) if stored.is_contiguous() => {
                arena.keep(gpu, set, index, Source::Device(block, at))?;
            }
            _ => {
                let bytes =
                    side.blocks.read(gpu, session, &stored).map_err(|error| fault(&error))?;
                arena.keep(gpu, set, index, Source::Host(&bytes))?;
            }
        }
    }
    Ok(())
}

/// Converts a failure to copy results to a reason that ends the evaluation.
pub(super) fn not_shelved(player: &Player, of_reference: bool, error: NotShelved) -> Stop {
    match error {
        NotShelved::Fault(fault) => player.stopped(of_reference, fault),
        NotShelved::Broken(what) => Stop::Broken(what),
        NotShelved::NoRoom(what) if of_reference => Stop::Reference(Failed::no_room(what)),
        NotShelved::NoRoom(what) => Stop::Candidate(Failed::no_room(what)),
    }
}
