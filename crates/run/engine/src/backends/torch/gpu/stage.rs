//! What happens on the device during an evaluation: both sides' memory, the inputs, and what batches took.

use std::time::Duration;

use super::Gpu;
use super::arena::{Arena, Whose};
use super::beside::Beside;
use super::blocks::Blocks;
use super::calls::{FEWEST, LONG};
use super::shelf::{NotShelved, Shelf, Shelved};
use crate::backends::torch::MOST_BYTES;
use crate::backends::torch::inputs::Inputs;
use crate::backends::torch::judge::{Judge, Stop, UNSURE};
use crate::backends::torch::player::Player;
use crate::backends::torch::values::Value;
use warpgauge_torch::Fault;

/// One side: its runner's memory, and copies of what it returned.
pub(super) struct Side {
    pub(super) blocks: Blocks,
    pub(super) shelf: Shelf,
}

impl Side {
    pub(super) fn new(number: usize) -> Self {
        Self { blocks: Blocks::default(), shelf: Shelf::new(number) }
    }
}

/// What happens on the device.
pub(super) struct Stage<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) arena: Arena,
    pub(super) candidate: Side,
    pub(super) references: Vec<Side>,
    /// Where arguments that change are, by the names that they get.
    pub(super) changing: Vec<String>,
    /// What handing over takes.
    pub(super) idle: Duration,
    /// Whether results do not lie side by side.
    pub(super) strided: bool,
    /// Batches that count for the judge's clock.
    pub(super) outside: Vec<Outside>,
    /// Blocks of batches of both sides in turns.
    pub(super) beside: Vec<Beside>,
}

/// A batch that counts for the judge's clock.
pub(super) struct Outside {
    pub(super) turn: Turn,
    pub(super) seeds: Vec<Option<u64>>,
}

/// What the judge's clock says of one side's batch.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) calls: u32,
    /// Writing its inputs.
    pub(super) presenting: Duration,
    /// From the word to go until the side says that it is done, and opening what it returned.
    pub(super) running: Duration,
    /// Copying what it returned.
    pub(super) copying: Duration,
    /// Bytes of each copy.
    pub(super) sizes: Vec<usize>,
}

impl Turn {
    pub(super) fn new(calls: u32, presenting: Duration, took: Duration, shelved: &Shelved) -> Self {
        let running = took + shelved.opening;
        let (copying, sizes) = (shelved.copying, shelved.sizes.clone());
        Self { calls, presenting, running, copying, sizes }
    }

    /// Writing and copying.
    pub(super) fn around(&self) -> Duration {
        self.presenting + self.copying
    }

    /// How much longer writing and copying took than they do while nobody else uses the device.
    pub(super) fn excess(&self, alone: Alone) -> Duration {
        self.presenting.saturating_sub(alone.presenting)
            + self.copying.saturating_sub(alone.copying)
    }

    /// Milliseconds of one call, of all that was spent.
    pub(super) fn each(&self, spent: Duration) -> f32 {
        (spent.as_secs_f64() * 1e3 / f64::from(self.calls.max(1))) as f32
    }
}

/// What writing inputs and copying results take while nobody else uses the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alone {
    pub(super) presenting: Duration,
    pub(super) copying: Duration,
}

impl Alone {
    /// The least of some measurements; nothing, where there are none.
    pub(super) fn least(measured: impl Iterator<Item = (Duration, Duration)>) -> Self {
        let least = measured.reduce(|(a, b), (c, d)| (a.min(c), b.min(d)));
        let (presenting, copying) = least.unwrap_or_default();
        Self { presenting, copying }
    }
}

impl Stage<'_> {
    pub(super) fn shelf(&self, number: usize) -> Option<&warpgauge_device::DeviceBuffer> {
        match number {
            0 => self.candidate.shelf.memory(),
            _ => self.references.get(number - 1)?.shelf.memory(),
        }
    }

    /// A value with its elements on the host.
    pub(super) fn fetched(&self, value: Value) -> Result<Value, Stop> {
        let Value::OnDevice { dtype, shape, copy } = value else { return Ok(value) };
        let Some(memory) = self.shelf(copy.shelf) else {
            return Err(Stop::Broken("a copy is gone".to_owned()));
        };
        let mut bytes = vec![0; copy.bytes.min(MOST_BYTES as usize)];
        let copied = memory.copy_to_host(copy.at, &mut bytes, &self.gpu.stream);
        copied.map_err(|error| Stop::Broken(error.to_string()))?;
        Ok(Value::Tensor { dtype, shape, bytes })
    }

    /// Calls that make a batch long enough, of at most so many.
    pub(super) fn long_enough(&self, most: u32) -> u32 {
        let Some(pilot) = self.outside.last() else { return most };
        self.calls_of(&pilot.turn).max(FEWEST).min(most)
    }

    /// Calls that make a batch long enough, by what they took in another one.
    pub(super) fn calls_of(&self, turn: &Turn) -> u32 {
        let each = turn.running.saturating_sub(self.idle) / turn.calls.max(1);
        let wanted = LONG.as_nanos() / each.as_nanos().max(1) + 1;
        u32::try_from(wanted).unwrap_or(u32::MAX)
    }
}

impl Judge {
    /// Lends the runners memory for inputs.
    pub(super) fn stage<'a>(&mut self, gpu: &'a Gpu, idle: Duration) -> Result<Stage<'a>, Stop> {
        let referenced = !self.expectations.references.is_empty();
        let arena = match &self.inputs {
            Inputs::Given { arguments, .. } => Arena::of_given(gpu, arguments, referenced),
            Inputs::Made => {
                let maker = self.expectations.references.first_mut().map(|(maker, _)| maker);
                let of_reference = maker.is_some();
                let maker = maker.unwrap_or(&mut self.candidate);
                let made = maker.session.make_inputs(0);
                let made = made.map_err(|fault| stopped(maker, of_reference, fault))?;
                Arena::of_made(gpu, &made, referenced)
            }
        };
        let arena = arena.map_err(|error| self.not_shelved(error))?;
        let lent = |whose| arena.lent(whose).map_err(|error| self.not_shelved(error));
        let (handle, bytes) = lent(Whose::Candidate)?;
        let (of_references, as_many) = lent(Whose::References)?;
        let opened = self.candidate.session.open(&handle, bytes);
        opened.map_err(|fault| Stop::Candidate(self.candidate.failed(fault)))?;
        let mut references = Vec::new();
        for (index, (reference, _)) in self.expectations.references.iter_mut().enumerate() {
            let opened = reference.session.open(&of_references, as_many);
            opened.map_err(|fault| Stop::Reference(reference.failed(fault)))?;
            references.push(Side::new(index + 1));
        }
        let outputs = self.inputs.outputs().iter();
        let changing = outputs.filter_map(|output| Some(format!("[{}]", output.argument?)));
        let changing = changing.collect();
        Ok(Stage {
            gpu,
            arena,
            candidate: Side::new(0),
            references,
            changing,
            idle,
            strided: false,
            outside: Vec::new(),
            beside: Vec::new(),
        })
    }

    /// What the judge's clock says, once nothing but the judge uses the device: presenting inputs and
    /// copying results is deducted as long as it then takes, so that what it took longer is counted.
    pub(super) fn conclude(&mut self, mut stage: Stage<'_>) -> Result<(), Stop> {
        if stage.outside.is_empty() {
            return Ok(());
        }
        self.candidate.session.stop_for_good();
        for (reference, _) in &self.expectations.references {
            reference.session.stop_for_good();
        }
        stage.candidate.blocks = Blocks::default();
        let mut spare = Shelf::new(usize::MAX);
        let batches = std::mem::take(&mut stage.outside);
        let mut measured = Vec::new();
        for batch in &batches {
            measured.push(self.alone(&mut stage, &mut spare, &batch.seeds, &batch.turn.sizes)?);
        }
        let alone = Alone::least(measured.into_iter());
        let outside_ms = batches.iter().map(|Outside { turn, .. }| {
            let spent = turn.running + turn.excess(alone);
            // Nobody is to be told faster than it is.
            turn.each(spent.saturating_sub(stage.idle.mul_f64(1.0 - UNSURE)))
        });
        let outside_ms = outside_ms.collect();
        if let Some(clocks) = &mut self.judged.clocks {
            clocks.batch = batches[0].turn.calls;
            clocks.outside_ms = outside_ms;
            self.judged.samples_ms = clocks.samples().to_vec();
        }
        self.compare_sides(&mut stage, &mut spare)
    }

    /// What writing the inputs of a batch and copying its results take now.
    pub(super) fn alone(
        &self,
        stage: &mut Stage<'_>,
        spare: &mut Shelf,
        seeds: &[Option<u64>],
        sizes: &[usize],
    ) -> Result<(Duration, Duration), Stop> {
        let presenting = stage.arena.present(stage.gpu, Whose::Candidate, seeds);
        let presenting = presenting.map_err(|error| self.not_shelved(error))?;
        let copying = match stage.candidate.shelf.memory() {
            Some(from) => spare.time_copies(stage.gpu, from, sizes),
            None => Ok(Duration::ZERO),
        };
        Ok((presenting, copying.map_err(|error| self.not_shelved(error))?))
    }
}

/// A fault of one side.
pub(super) fn stopped(player: &Player, of_reference: bool, fault: Fault) -> Stop {
    let failed = player.failed(fault);
    if of_reference { Stop::Reference(failed) } else { Stop::Candidate(failed) }
}

/// Why there is no copy, as the end of an evaluation.
pub(super) fn not_shelved(player: &Player, of_reference: bool, error: NotShelved) -> Stop {
    match error {
        NotShelved::Fault(fault) => stopped(player, of_reference, fault),
        NotShelved::Broken(what) => Stop::Broken(what),
    }
}
