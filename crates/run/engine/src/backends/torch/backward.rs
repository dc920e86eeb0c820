//! Backward passes: upstream gradients, which the judge generates like inputs.

use super::fault::Stop;
use super::inputs::{Argument, Content, Inputs};
use super::players::Players;
use warpgauge_tensor::{InitKind, TensorInit};
use warpgauge_torch::{GradientInput, TensorLayout, TreeOf};

/// Makes candidate and references compute gradients in further calls. If the contract gives the
/// inputs, upstream gradients become additional arguments.
pub(super) fn begin(players: &mut Players) -> Result<(), Stop> {
    let upstream = upstream(players)?;
    let seed = players.seed();
    if let Inputs::Given { arguments, .. } = &mut players.inputs {
        let argument = |one: &GradientInput| {
            let init = TensorInit { seed: Some(seed), ..TensorInit::of_kind(InitKind::Randn) };
            let what = TensorLayout::in_order(one.dtype, one.shape.clone());
            let name = format!("upstream.{}", one.place);
            Argument::Tensor { name, what, content: Content::Init(Box::new(init)) }
        };
        arguments.extend(upstream.iter().map(argument));
    }
    for reference in &mut players.expectations.references {
        reference.player.begin_backward(&upstream).map_err(Stop::Reference)?;
    }
    players.candidate.begin_backward(&upstream).map_err(Stop::Candidate)
}

/// Returns upstream gradients for outputs of floating-point type. These are the contract's outputs,
/// or otherwise the outputs of the submission that generates the inputs.
fn upstream(players: &mut Players) -> Result<Vec<GradientInput>, Stop> {
    let of_contract = players.inputs.outputs();
    if !of_contract.is_empty() {
        let floats = of_contract.iter().filter(|output| output.what.dtype.is_float());
        let upstream = floats.map(|output| GradientInput {
            place: output.name.clone(),
            dtype: output.what.dtype,
            shape: output.what.shape.clone(),
        });
        return Ok(upstream.collect());
    }
    let seed = players.seed();
    let arguments = players.inputs.tree();
    let (maker, of_reference) = players.maker();
    let returned = maker.session.probe(arguments.as_ref(), seed);
    let returned = returned.map_err(|fault| maker.stopped(of_reference, fault))?;
    let floats = returned.leaves("").into_iter().filter_map(|(place, leaf)| match leaf {
        TreeOf::Tensor(tensor) if tensor.dtype.is_float() => {
            Some(GradientInput { place, dtype: tensor.dtype, shape: tensor.shape.clone() })
        }
        _ => None,
    });
    Ok(floats.collect())
}
