//! Generated content that depends on another tensor of the contract. The main function is [`settled_init`].

use super::ArgSpec;
use super::error::quoted;
use crate::TensorSpec;

use warpgauge_tensor::{ElementGenerator, InitError, InitKind, OffsetsInit, PairInit, TensorInit};

/// Returns an `init` in which what it takes from the tensor that `of` names is filled in.
///
/// # Errors
/// Fails if there is no such tensor among the arguments, or if it is not of the kind that is needed.
pub fn settled_init(init: &TensorInit, args: &[ArgSpec]) -> Result<TensorInit, InitError> {
    let mut settled = TensorInit { offsets: None, pair: None, ..init.clone() };
    let Some(of) = &init.of else { return Ok(settled) };
    let other = tensor_named(of, args)?;
    match init.kind {
        InitKind::Randint | InitKind::Permutation => {
            let Some(&extent) = other.shape.first() else {
                return wrong(format!(
                    "`{}` is a single number: nothing can be an index into it",
                    quoted(of)
                ));
            };
            settled.high = Some(up_to(init, extent)?);
            if extent == 0 {
                return wrong(format!(
                    "`{}` has no elements, so there are no indices into it",
                    quoted(of)
                ));
            }
        }
        InitKind::Offsets => {
            let elements = other.shape.iter().product();
            settled.high = Some(up_to(init, elements)?);
        }
        InitKind::Lengths | InitKind::Segments => {
            settled.offsets = Some(Box::new(offsets_of(of, other, args)?));
        }
        InitKind::Quantized | InitKind::Scales => {
            settled.pair = Some(Box::new(pair_of((init, of), other, args)?));
        }
        // The generator rejects `of` for the other kinds.
        _ => (),
    }
    Ok(settled)
}

/// Returns a bound that is taken from another tensor, unless one is given.
fn up_to(init: &TensorInit, bound: u64) -> Result<f64, InitError> {
    match init.high {
        None => Ok(bound as f64),
        Some(_) => wrong("give `of` or `high`, not both: `of` gives the upper bound".to_owned()),
    }
}

fn offsets_of(of: &str, spec: &TensorSpec, args: &[ArgSpec]) -> Result<OffsetsInit, InitError> {
    let kind = spec.init.as_ref().filter(|init| init.kind == InitKind::Offsets);
    let Some(init) = kind else {
        return wrong(format!(
            "`{}` is not generated as `kind: offsets`, on which lengths and segments depend",
            quoted(of)
        ));
    };
    let init = settled_init(init, args)?;
    match ElementGenerator::new(&init, spec.dtype, &spec.shape) {
        Ok(ElementGenerator::Offsets { top, .. }) => Ok(OffsetsInit {
            name: of.to_owned(),
            elements: spec.shape.iter().product(),
            top,
            seed: init.seed,
        }),
        _ => wrong(format!("the content of `{}` is invalid itself", quoted(of))),
    }
}

/// Returns what a tensor of quantised values or of scales needs of the other one, which names it, too.
fn pair_of(
    (own, of): (&TensorInit, &str),
    spec: &TensorSpec,
    args: &[ArgSpec],
) -> Result<PairInit, InitError> {
    let wanted = match own.kind {
        InitKind::Quantized => InitKind::Scales,
        _ => InitKind::Quantized,
    };
    let Some(init) = spec.init.as_ref().filter(|init| init.kind == wanted) else {
        return wrong(format!(
            "`{}` is not generated as `kind: {}`: quantised values and their scales name each other",
            quoted(of),
            wanted.name()
        ));
    };
    let back = init.of.as_deref().unwrap_or_default();
    if tensor_named(back, args)?.init.as_ref() != Some(own) {
        return wrong(format!(
            "`{}` names `{}`: quantised values and their scales name each other",
            quoted(of),
            quoted(back)
        ));
    }
    let scales = if wanted == InitKind::Scales { of } else { back };
    let names_them = |arg: &&ArgSpec| {
        let init = arg.tensor_spec.as_ref().and_then(|spec| spec.init.as_ref());
        init.is_some_and(|init| {
            init.kind == InitKind::Quantized && init.of.as_deref() == Some(scales)
        })
    };
    if args.iter().filter(names_them).count() > 1 {
        return wrong(format!(
            "`{}` are the scales of several tensors; give each its own",
            quoted(scales)
        ));
    }
    Ok(PairInit {
        name: of.to_owned(),
        dtype: spec.dtype,
        shape: spec.shape.clone(),
        seed: init.seed,
        std: init.std,
        block: init.block.clone(),
        layout: init.layout,
    })
}

fn tensor_named<'a>(of: &str, args: &'a [ArgSpec]) -> Result<&'a TensorSpec, InitError> {
    let spec = args.iter().find(|arg| arg.name == of).and_then(|arg| arg.tensor_spec.as_ref());
    match spec {
        Some(spec)
            if spec.open.is_empty()
                && warpgauge_tensor::shape::bytes(&spec.shape, spec.dtype).is_ok() =>
        {
            Ok(spec)
        }
        Some(_) => wrong(format!("the shape of `{}` is not known", quoted(of))),
        None => wrong(format!("there is no tensor `{}` among the arguments", quoted(of))),
    }
}

fn wrong<T>(message: String) -> Result<T, InitError> {
    Err(InitError { field: "of", message })
}
