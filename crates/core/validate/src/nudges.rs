//! Runs of a reference on moved inputs: the inputs that move, the size of the steps, and the elements of the outputs
//! that are sampled. The main type is [`Nudge`].

use std::ops::Range;
use std::time::Duration;

use warpgauge_tensor::{Dtype, can_nudge};

/// Maximum number of elements of an output that are sampled, in pieces of [`PIECE`].
const SAMPLE: usize = 1 << 16;

/// Number of elements in each sampled piece.
const PIECE: usize = 2048;

/// Number of elements below which an output needs more runs, because one element may stay unchanged by chance.
pub(super) const FEW_ELEMENTS: usize = 16;

/// Number of elements below which an output needs more runs with the first of [`INNER_STEPS`], because few inputs
/// cross a boundary.
const SMALL: usize = 4096;

/// Number of runs with each step for an output with few elements.
const RUNS_OF_FEW: usize = 4;

/// Steps for inputs of 32 bits, in units in the last place, that show whether a reference rounds them to fewer bits.
/// The second is the distance between two boundaries of bfloat16.
pub(super) const INNER_STEPS: [u32; 3] = [256, 1 << 16, 1 << 18];

/// Larger step of the inputs, in units in the last place, which shows whether the output's change grows with
/// it.
pub(super) const LARGE_STEPS: u32 = 4;

/// Run time above which a reference is run as few times as possible.
pub const QUICK: Duration = Duration::from_secs(1);

/// Perturbation of the inputs in one run of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nudge {
    /// Type of the inputs, or of their parts, that move.
    pub dtype: Dtype,
    /// Size of the step by which each input moves, in units in the last place.
    pub steps: u32,
    /// Seed that selects the direction in which each element moves.
    pub seed: u64,
}

/// Returns the perturbations of inputs of these types, one for each run. Complex inputs are moved by their parts.
/// `elements` is the number of elements of the smallest output, if known.
pub fn nudges(inputs: impl Iterator<Item = Dtype>, elements: Option<usize>) -> Vec<Nudge> {
    let mut types: Vec<Dtype> = inputs.map(Dtype::part).filter(|dtype| can_nudge(*dtype)).collect();
    types.sort_by_key(|dtype| dtype.name());
    types.dedup();
    let runs_below = |most: usize| {
        if elements.is_some_and(|elements| elements < most) { RUNS_OF_FEW } else { 1 }
    };
    let runs = |steps, count| std::iter::repeat_n(steps, count);
    let of_type = |dtype| {
        let small = runs_below(FEW_ELEMENTS);
        let steps = runs(1, small).chain(runs(LARGE_STEPS, small));
        steps.zip(1u64..).map(move |(steps, run)| Nudge { dtype, steps, seed: run << 40 })
    };
    let inner = INNER_STEPS.into_iter().flat_map(|steps| {
        let is_least = steps == INNER_STEPS[0];
        let count = runs_below(if is_least { SMALL } else { FEW_ELEMENTS });
        let seeds = (0u64..).map(|run| 1 << 39 | run << 40);
        let nudge = |(steps, seed)| Nudge { dtype: Dtype::Float32, steps, seed };
        runs(steps, count).zip(seeds).map(nudge)
    });
    let inner: Vec<Nudge> = inner.filter(|_| types.contains(&Dtype::Float32)).collect();
    types.into_iter().flat_map(of_type).chain(inner).collect()
}

/// Returns the byte ranges of an output that are sampled: the whole of a small output, or evenly spaced pieces of a
/// large one.
pub fn sampled_ranges(bytes: usize, dtype: Dtype) -> Vec<Range<usize>> {
    let size = dtype.size();
    let elements = bytes / size;
    let (count, length) = if elements <= SAMPLE { (1, elements) } else { (SAMPLE / PIECE, PIECE) };
    let step = (elements - length) / (count - 1).max(1);
    let start = |piece| step * piece * size;
    (0..count).map(|piece| start(piece)..start(piece) + length * size).collect()
}

/// Returns the sampled elements of an output: the bytes of [`sampled_ranges`].
pub fn sample(content: &[u8], dtype: Dtype) -> Vec<u8> {
    let ranges = sampled_ranges(content.len(), dtype);
    ranges.into_iter().flat_map(|range| &content[range]).copied().collect()
}

/// Output of a reference for inputs that were moved by a few units in the last place.
#[derive(Debug, Clone, Copy)]
pub struct NudgedRun<'a> {
    /// Type of the inputs that moved.
    pub inputs: Dtype,
    /// Step in units in the last place; 0 if the inputs did not move.
    pub steps: u32,
    /// Sampled elements of the output, at the same positions as in the run on unmoved inputs.
    pub output: &'a [u8],
}

impl Nudge {
    /// No perturbation. Such a run shows whether the reference's results vary.
    pub const NONE: Self = Self { dtype: Dtype::Float32, steps: 0, seed: 0 };

    /// Number of runs on unmoved inputs if the measured changes are doubtful. A reference with a race may give the
    /// same result several times.
    pub const REPEATS: usize = 6;
}

impl<'a> NudgedRun<'a> {
    /// Describes the output of a run with this perturbation.
    pub fn of(nudge: &Nudge, output: &'a [u8]) -> Self {
        Self { inputs: nudge.dtype, steps: nudge.steps, output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_outputs_are_sampled_from_end_to_end() {
        let whole = |bytes| sampled_ranges(bytes, Dtype::Float32) == vec![0..bytes; 1];
        assert!(whole(0) && whole(4096));
        let large = sampled_ranges(4 << 20, Dtype::Float32);
        assert_eq!((large.len(), large[0].clone()), (32, 0..8192));
        assert!(large.iter().all(|range| range.len() == 8192 && range.end <= 4 << 20));
        assert!(large[31].end > (4 << 20) - 8192);
    }

    #[test]
    fn inputs_move_type_by_type() {
        let of = |types: &[Dtype], elements| nudges(types.iter().copied(), elements);
        assert_eq!(of(&[Dtype::Int32, Dtype::Bool], None), []);
        let types = [Dtype::Float32, Dtype::Int64, Dtype::Bfloat16, Dtype::Float32];
        assert_eq!(of(&types, None).len(), 7);
        assert_eq!(of(&types, Some(100)).len(), 10);
        assert_eq!(of(&types, Some(1)).len(), 28);
        let seeds: std::collections::BTreeSet<u64> =
            of(&types[..1], Some(1)).iter().map(|nudge| nudge.seed).collect();
        assert_eq!(seeds.len(), 12);
    }
}
