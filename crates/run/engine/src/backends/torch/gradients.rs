//! Names of gradients, and the matching of returned gradients with expected ones.

use std::collections::BTreeMap;

use super::inputs::Inputs;
use super::values::{Named, Value};
use warpgauge_validate::{Reason, ReasonCode};

/// Prefixes of the names of gradients, and of the names of parameters' gradients.
const GRADIENT: &str = "grad.";
const OF_PARAMETER: &str = "grad.parameters.";

/// Returns whether a value with this name is a gradient.
pub(super) fn is_gradient(name: &str) -> bool {
    name.starts_with(GRADIENT)
}

/// Returns a reason if an expected gradient is missing. The candidate may arrange its parameters
/// differently. Gradients of reference parameters that the candidate lacks may be absent if its
/// additional gradients have at least the same total size.
pub(super) fn missing(
    values: &Named,
    expected: &BTreeMap<String, Value>,
    has_parameter: impl Fn(&str) -> bool,
) -> Option<Reason> {
    let known = |name: &str| name.strip_prefix(OF_PARAMETER).is_none_or(&has_parameter);
    let came = |name: &String| values.iter().any(|(other, _)| other == name);
    let absent = expected.iter().filter(|(name, _)| is_gradient(name) && !came(name));
    let (missed, arranged): (Vec<_>, Vec<_>) = absent.partition(|(name, _)| known(name));
    let own = values.iter().filter(|(name, _)| is_gradient(name) && !expected.contains_key(name));
    let own: u64 = own.map(|(_, value)| value.bytes()).sum();
    let replaced: u64 = arranged.iter().map(|(_, value)| value.bytes()).sum();
    let lacking = if own < replaced { arranged.first() } else { None };
    let (absent, _) = missed.first().or(lacking)?;
    let message = format!("it returns no gradient `{absent}`, but the reference does");
    Some(Reason::new(ReasonCode::OutputMismatch, message))
}

/// Returns the names of gradients that only the candidate or only the reference has.
pub(super) fn unchecked(values: &Named, expected: &BTreeMap<String, Value>) -> Vec<String> {
    let own = values.iter().map(|(name, _)| name);
    let own = own.filter(|name| is_gradient(name) && !expected.contains_key(*name));
    let theirs = expected
        .keys()
        .filter(|name| is_gradient(name) && values.iter().all(|(other, _)| other != *name));
    own.chain(theirs).cloned().collect()
}

/// Separates the gradients of a call from its other results, and names them.
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
            // These are contents of arguments after the call; their names are only their paths.
            returned.push((name, value));
        }
    }
    (returned, gradients)
}
