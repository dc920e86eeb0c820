//! Inputs and references of tests, and the references' results for moved inputs.

use crate::nudges::{Nudge, NudgedRun, nudges};
use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::Element;

/// Returns normally distributed numbers. Each name has its own.
pub(super) fn random(count: usize, name: &str) -> Vec<f32> {
    let init = serde_json::from_value(serde_json::json!({"kind": "randn", "seed": 1})).unwrap();
    let mut bytes = vec![0; 4 * count];
    warpgauge_tensor::fill(&init, (Dtype::Float32, &[]), name, 0, &mut bytes).unwrap();
    numbers(&bytes)
}

pub(super) fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(f32::read).collect()
}

/// Results of a reference for moved inputs.
pub(super) struct Moved {
    planned: Vec<Nudge>,
    outputs: Vec<Vec<u8>>,
}

impl Moved {
    /// Makes the runs that are planned for as many elements as there are inputs.
    pub(super) fn of(inputs: &[f32], reference: impl Fn(&[f32]) -> Vec<f32>) -> Self {
        Self::by(nudges(std::iter::once(Dtype::Float32), Some(inputs.len())), inputs, reference)
    }

    /// Makes these runs.
    pub(super) fn by(
        planned: Vec<Nudge>,
        inputs: &[f32],
        reference: impl Fn(&[f32]) -> Vec<f32>,
    ) -> Self {
        let output = |nudge: &Nudge| {
            let mut moved = bytes(inputs);
            warpgauge_tensor::nudge(nudge.dtype, &mut moved, nudge.steps, nudge.seed);
            bytes(&reference(&numbers(&moved)))
        };
        let outputs = planned.iter().map(output).collect();
        Self { planned, outputs }
    }

    pub(super) fn runs(&self) -> Vec<NudgedRun<'_>> {
        let all = self.planned.iter().zip(&self.outputs);
        all.map(|(nudge, output)| NudgedRun::of(nudge, output)).collect()
    }
}
