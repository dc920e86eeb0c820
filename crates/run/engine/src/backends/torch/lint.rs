//! Finds useless kernels that would pass, based on the expected outputs of a few calls with
//! different inputs.

use std::collections::BTreeMap;

use super::values::{Named, Value};
use warpgauge_tensor::{Dtype, shape};
use warpgauge_validate::{
    ArgumentContents, OutputFacts, ResolvedTolerance, Weakness, lint_output, needs_more_seeds,
    sample,
};

/// Number of calls to examine. The larger number applies if an output has few elements.
const CALLS: usize = 2;
const CALLS_OF_FEW: usize = 3;

/// Size in bytes above which a tensor is sampled.
const MOST_WHOLE_BYTES: usize = 16 << 20;

/// Expected outputs and inputs of the first calls.
#[derive(Default)]
pub(super) struct Lint {
    expected: BTreeMap<String, Seen>,
    inputs: BTreeMap<String, Seen>,
    calls: usize,
}

/// Contents of one tensor in each examined call.
struct Seen {
    dtype: Dtype,
    seeds: Vec<Vec<u8>>,
}

impl Lint {
    /// Returns whether to examine another call.
    pub(super) fn wants_call(&self) -> bool {
        let is_small = |seen: &Seen| needs_more_seeds(elements(seen.dtype, &seen.slices()));
        let few = self.expected.values().any(is_small);
        self.calls < if few { CALLS_OF_FEW } else { CALLS }
    }

    /// Returns whether an output could be a copy of a tensor with this type and size.
    pub(super) fn could_be_copied(
        expected: &BTreeMap<String, Value>,
        dtype: Dtype,
        bytes: u64,
    ) -> bool {
        let alike = |value: &Value| {
            matches!(value, Value::Tensor { dtype: other, shape, .. }
            if *other == dtype && shape::bytes(shape, dtype).ok() == Some(bytes))
        };
        expected.values().any(alike)
    }

    /// Examines a call: its expected outputs, and the inputs that outputs could be copies of.
    pub(super) fn see(&mut self, expected: &BTreeMap<String, Value>, inputs: &Named) {
        if !self.wants_call() {
            return;
        }
        expected.iter().for_each(|(name, value)| keep(&mut self.expected, name, value));
        // An input that the call changes contains the expected output afterwards, so it does not
        // count as copied.
        let kept = inputs.iter().filter(|(name, _)| !expected.contains_key(name));
        kept.for_each(|(name, value)| keep(&mut self.inputs, name, value));
        self.calls += 1;
    }

    /// Returns the useless kernels that would pass all examined calls. `seeded`: whether the inputs
    /// of the calls differ.
    pub(super) fn weaknesses(
        &self,
        tolerances: &BTreeMap<String, ResolvedTolerance>,
        seeded: bool,
    ) -> Vec<Weakness> {
        let inputs = self.inputs.iter().map(|(name, seen)| (name, seen.dtype, seen.slices()));
        let inputs: Vec<(&String, Dtype, Vec<&[u8]>)> = inputs.collect();
        let shapes = inputs.iter().map(|(_, dtype, seeds)| [elements(*dtype, seeds)]);
        let shapes: Vec<[u64; 1]> = shapes.collect();
        let contents = inputs.iter().zip(&shapes);
        let contents = contents.map(|((name, dtype, seeds), shape)| ArgumentContents {
            name,
            dtype: *dtype,
            shape,
            seeds,
        });
        let inputs: Vec<ArgumentContents<'_>> = contents.collect();
        let of_output = |(name, seen): (&String, &Seen)| {
            let (seeds, tolerance) = (seen.slices(), tolerances.get(name)?);
            let shape = [elements(seen.dtype, &seeds)];
            let expected =
                ArgumentContents { name, dtype: seen.dtype, shape: &shape, seeds: &seeds };
            Some(lint_output(&OutputFacts { expected, tolerance, seeded, inputs: &inputs }))
        };
        self.expected.iter().filter_map(of_output).flatten().collect()
    }
}

impl Seen {
    fn slices(&self) -> Vec<&[u8]> {
        self.seeds.iter().map(Vec::as_slice).collect()
    }
}

fn elements(dtype: Dtype, seeds: &[&[u8]]) -> u64 {
    seeds.first().map_or(0, |bytes| bytes.len() / dtype.size()) as u64
}

fn keep(all: &mut BTreeMap<String, Seen>, name: &str, value: &Value) {
    let Value::Tensor { dtype, bytes, .. } = value else { return };
    let kept = if bytes.len() <= MOST_WHOLE_BYTES { bytes.clone() } else { sample(bytes, *dtype) };
    let new = || Seen { dtype: *dtype, seeds: Vec::new() };
    all.entry(name.to_owned()).or_insert_with(new).seeds.push(kept);
}
