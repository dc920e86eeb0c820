//! Gradients: what they begin from, which the judge draws like inputs, and those that come back.

use std::collections::BTreeMap;

use super::inputs::{Argument, Content, Inputs};
use super::judge::{Judge, Stop};
use super::player::Player;
use super::values::{Named, Value};
use warpgauge_tensor::{InitKind, TensorInit};
use warpgauge_torch::{TreeOf, Upstream, What};
use warpgauge_validate::{Reason, ReasonCode};

/// What names of gradients begin with, and those of parameters' gradients.
const GRADIENT: &str = "grad.";
const OF_PARAMETER: &str = "grad.parameters.";

/// Whether a value of that name is a gradient.
pub(super) fn is_gradient(name: &str) -> bool {
    name.starts_with(GRADIENT)
}

impl Judge {
    /// Has all sides compute gradients from now on, if that is what is to be judged. They begin from tensors
    /// behind the other arguments.
    pub(super) fn begin_backward(&mut self) -> Result<(), Stop> {
        if !self.backward {
            return Ok(());
        }
        let upstream = self.upstream()?;
        let seed = self.seed();
        if let Inputs::Given { arguments, .. } = &mut self.inputs {
            let argument = |one: &Upstream| {
                let init = TensorInit { seed: Some(seed), ..TensorInit::of_kind(InitKind::Randn) };
                let what = What { dtype: one.dtype, shape: one.shape.clone() };
                let name = format!("upstream.{}", one.place);
                Argument::Tensor { name, what, content: Content::Init(init) }
            };
            arguments.extend(upstream.iter().map(argument));
        }
        for (reference, _) in &mut self.expectations.references {
            reference.begin_backward(&upstream).map_err(Stop::Reference)?;
        }
        self.candidate.begin_backward(&upstream).map_err(Stop::Candidate)
    }

    /// Outputs that have gradients: those of the contract, or else those that the side returns which says what
    /// the inputs are.
    fn upstream(&mut self) -> Result<Vec<Upstream>, Stop> {
        let of_contract = self.inputs.outputs();
        if !of_contract.is_empty() {
            let floats = of_contract.iter().filter(|output| output.what.dtype.is_float());
            let upstream = floats.map(|output| Upstream {
                place: output.name.clone(),
                dtype: output.what.dtype,
                shape: output.what.shape.clone(),
            });
            return Ok(upstream.collect());
        }
        let seed = self.seed();
        let arguments = self.inputs.tree();
        let maker = self.expectations.references.first_mut().map(|(maker, _)| maker);
        let of_reference = maker.is_some();
        let maker = maker.unwrap_or(&mut self.candidate);
        let returned = maker.session.probe(arguments.as_ref(), seed).map_err(|fault| {
            let failed = maker.failed(fault);
            if of_reference { Stop::Reference(failed) } else { Stop::Candidate(failed) }
        })?;
        let floats = returned.leaves("").into_iter().filter_map(|(place, leaf)| match leaf {
            TreeOf::Tensor(tensor) if tensor.dtype.is_float() => {
                Some(Upstream { place, dtype: tensor.dtype, shape: tensor.shape.clone() })
            }
            _ => None,
        });
        Ok(floats.collect())
    }

    /// A gradient that is expected and did not come. Parameters that the candidate does not have are not
    /// missed: how it arranges them is its own.
    pub(super) fn missing_gradient(
        &self,
        values: &Named,
        expected: &BTreeMap<String, Value>,
    ) -> Option<Reason> {
        let known = |name: &str| {
            name.strip_prefix(OF_PARAMETER).is_none_or(|own| self.candidate.has_parameter(own))
        };
        let came = |name: &String| values.iter().any(|(other, _)| other == name);
        let mut wanted = expected.keys().filter(|name| is_gradient(name));
        let absent = wanted.find(|name| known(name) && !came(name))?;
        let message = format!("it gives no gradient `{absent}`, which the reference does");
        Some(Reason::new(ReasonCode::OutputMismatch, message))
    }

    /// Gradients of either side that nothing of the other's is compared with.
    pub(super) fn note_unchecked(&mut self, values: &Named, expected: &BTreeMap<String, Value>) {
        if !self.backward || expected.is_empty() {
            return;
        }
        let own = values.iter().map(|(name, _)| name);
        let own = own.filter(|name| is_gradient(name) && !expected.contains_key(*name));
        let theirs = expected
            .keys()
            .filter(|name| is_gradient(name) && values.iter().all(|(other, _)| other != *name));
        self.judged.unchecked = own.chain(theirs).cloned().collect();
    }
}

impl Player {
    fn has_parameter(&self, name: &str) -> bool {
        self.loaded.parameters.iter().any(|parameter| parameter.trained && parameter.name == name)
    }
}

/// What a call returned, and the gradients by their names. `name_of` names an argument by its place.
pub(super) fn separated(values: Named, root: &str, inputs: &Inputs) -> (Named, Named) {
    let (forward, of_inputs, of_parameters) = (
        format!("{root}.returned"),
        format!("{root}.gradients.inputs."),
        format!("{root}.gradients.parameters."),
    );
    let (mut returned, mut gradients) = (Named::new(), Named::new());
    for (name, value) in values {
        if let Some(rest) = name.strip_prefix(&forward) {
            returned.push((format!("{root}{rest}"), value));
        } else if let Some(place) = name.strip_prefix(&of_inputs) {
            gradients.push((format!("{GRADIENT}{}", inputs.name_of(place)), value));
        } else if let Some(parameter) = name.strip_prefix(&of_parameters) {
            gradients.push((format!("{OF_PARAMETER}{parameter}"), value));
        } else {
            // Arguments as the calls left them, which are named by their places alone.
            returned.push((name, value));
        }
    }
    (returned, gradients)
}
