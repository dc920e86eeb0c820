//! Comparison rules for outputs that have more than one correct result, for the worker. The main
//! function is [`arrangement`].

use warpgauge_contract::{
    ArgKind, ArgSpec, CompareAs, EvaluateRequest, IoContract, ScalarValue, ScalesOf,
};
use warpgauge_validate::{Arrangement, RowCount, RowOrder, Scaled};

/// Returns how an output is compared; buffers are identified by index. The contract is already
/// validated.
pub(super) fn arrangement(
    name: &str,
    how: &CompareAs,
    request: &EvaluateRequest,
    (io, position): (&IoContract, &impl Fn(&str) -> Option<usize>),
) -> Option<Arrangement> {
    let of = |name: &Option<String>| name.as_deref().and_then(position);
    let count = |name: &String| {
        let scalar = io.args.iter().find(|arg| arg.name == *name && arg.kind == ArgKind::Int);
        match scalar.map(ArgSpec::scalar_value) {
            Some(Ok(ScalarValue::Int(rows))) => Some(RowCount::Rows(rows.try_into().unwrap_or(0))),
            Some(_) => None,
            None => position(name).map(RowCount::Buffer),
        }
    };
    let scaled =
        how.scales.as_ref().and_then(|scales| scaled(name, scales, request, (io, position)));
    let scales = how.output_of_scales(&io.args);
    Some(Arrangement {
        output: position(name)?,
        along: how.along.iter().chain(scales).filter_map(|name| position(name)).collect(),
        order: match (how.any_order, of(&how.segments), of(&how.equal)) {
            (true, ..) => RowOrder::Any,
            (_, Some(offsets), _) => RowOrder::Segments(offsets),
            (.., Some(keys)) => RowOrder::Equal(keys),
            _ => RowOrder::Given,
        },
        up_to: how.up_to.as_ref().and_then(count),
        mask: of(&how.mask),
        empty: how.empty,
        through: of(&how.through),
        scaled,
    })
}

/// Returns how a quantised output is compared together with its scales.
fn scaled(
    name: &str,
    scales: &ScalesOf,
    request: &EvaluateRequest,
    (io, position): (&IoContract, &impl Fn(&str) -> Option<usize>),
) -> Option<Scaled> {
    let named = |name: &str| io.args.iter().find(|arg| arg.name == name);
    let spec = |name| named(name).and_then(|arg| arg.tensor_spec.as_ref());
    let given = request.tolerance.as_ref();
    let [atol, rtol] = [given.and_then(|given| given.atol), given.and_then(|given| given.rtol)];
    let is_given = atol.is_some() || rtol.is_some();
    Some(Scaled {
        scales: position(&scales.of)?,
        blocks: scales.blocks(spec(name)?, spec(&scales.of)?).ok()?,
        within: is_given.then(|| (atol.unwrap_or(0.0), rtol.unwrap_or(0.0))),
    })
}

/// Returns whether an output is compared together with its scales, or contains the scales of
/// another output.
pub(super) fn has_scales(request: &EvaluateRequest, name: &str) -> bool {
    let scales = |how: &CompareAs| how.scales.as_ref().is_some_and(|scales| scales.of == name);
    let own = request.compare_as.get(name).is_some_and(|how| how.scales.is_some());
    own || request.compare_as.values().any(scales)
}
