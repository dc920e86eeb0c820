//! Generated content that depends on another tensor of the contract. The main function is [`settled_init`].

use super::ArgSpec;
use super::error::quoted;
use crate::TensorSpec;

use warpgauge_tensor::{ElementGenerator, InitError, InitKind, OffsetsInit, PairInit, TensorInit};

/// Returns the `init` with the values filled in that it takes from the tensor named by `of`.
///
/// # Errors Fails if there is no such tensor among the arguments, or if its content is of the wrong kind.
pub fn settled_init(init: &TensorInit, args: &[ArgSpec]) -> Result<TensorInit, InitError> {
    let mut settled = TensorInit {
        offsets: None,
        pair: None,
        zeros_pair: None,
        global_pair: None,
        ..init.clone()
    };
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
        InitKind::Quantized => {
            settled.pair = Some(Box::new(part_of((of, InitKind::Scales), args)?));
            settled.zeros_pair = part_named((&init.zeros, InitKind::ZeroPoints), args)?;
            settled.global_pair = part_named((&init.global, InitKind::GlobalScale), args)?;
        }
        InitKind::Scales | InitKind::ZeroPoints | InitKind::GlobalScale => {
            settled.pair = Some(Box::new(values_of(init, (of, other), args)?));
        }
        // The generator rejects `of` for the other kinds.
        _ => (),
    }
    Ok(settled)
}

/// Returns the bound taken from another tensor. A bound that is also given is an error.
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
        _ => wrong(format!("the content of `{}` is itself invalid; correct it first", quoted(of))),
    }
}

/// Returns the name by which quantised values refer to their scales, zero points or global scale.
fn name_of(values: &TensorInit, part: InitKind) -> Option<&str> {
    let name = match part {
        InitKind::ZeroPoints => &values.zeros,
        InitKind::GlobalScale => &values.global,
        _ => &values.of,
    };
    name.as_deref()
}

/// Returns the properties of the quantised values that `of` names. `own` is the content of their scales, zero points
/// or global scale.
fn values_of(
    own: &TensorInit,
    (of, spec): (&str, &TensorSpec),
    args: &[ArgSpec],
) -> Result<PairInit, InitError> {
    let Some(init) = spec.init.as_ref().filter(|init| init.kind == InitKind::Quantized) else {
        return wrong(format!(
            "`{}` is not generated as `kind: quantized`: quantised values and their scales name each other",
            quoted(of)
        ));
    };
    let back = name_of(init, own.kind).unwrap_or_default();
    if tensor_named(back, args)?.init.as_ref() != Some(own) {
        return wrong(format!(
            "`{}` names `{}`: quantised values and their scales name each other",
            quoted(of),
            quoted(back)
        ));
    }
    shared_alike((of, spec, init), (back, own.kind), args)?;
    Ok(pair(of, spec, init))
}

/// Returns the properties of the zero points or global scale that quantised values name, if they name any.
fn part_named(
    (name, kind): (&Option<String>, InitKind),
    args: &[ArgSpec],
) -> Result<Option<Box<PairInit>>, InitError> {
    let Some(name) = name else { return Ok(None) };
    part_of((name, kind), args).map(|pair| Some(Box::new(pair)))
}

/// Returns the properties of the tensor that quantised values name as their scales, zero points or
/// global scale.
fn part_of((name, kind): (&str, InitKind), args: &[ArgSpec]) -> Result<PairInit, InitError> {
    let spec = tensor_named(name, args)?;
    let Some(init) = spec.init.as_ref().filter(|init| init.kind == kind) else {
        return wrong(format!(
            "`{}` is not generated as `kind: {}`: quantised values and their scales name each other",
            quoted(name),
            kind.name()
        ));
    };
    // The tensor names one of the quantised tensors that share it.
    let of = init.of.as_deref().unwrap_or_default();
    let values = tensor_named(of, args)?;
    let first = values
        .init
        .as_ref()
        .filter(|init| init.kind == InitKind::Quantized && name_of(init, kind) == Some(name));
    let Some(first) = first else {
        return wrong(format!(
            "`{}` names `{}`: quantised values and their scales name each other",
            quoted(name),
            quoted(of)
        ));
    };
    shared_alike((of, values, first), (name, kind), args)?;
    Ok(pair(name, spec, init))
}

/// Fails unless all quantised tensors that share this tensor agree in type, deviation and global scale, because these
/// determine its content.
fn shared_alike(
    (of, spec, first): (&str, &TensorSpec, &TensorInit),
    (name, kind): (&str, InitKind),
    args: &[ArgSpec],
) -> Result<(), InitError> {
    let other = args.iter().find(|arg| {
        let other = arg.tensor_spec.as_ref().and_then(|spec| Some((spec, spec.init.as_ref()?)));
        other.is_some_and(|(other, init)| {
            let shares = init.kind == InitKind::Quantized && name_of(init, kind) == Some(name);
            let is_alike = other.dtype == spec.dtype
                && init.std.unwrap_or(1.0) == first.std.unwrap_or(1.0)
                && init.global == first.global;
            shares && !is_alike
        })
    });
    match other {
        Some(other) => wrong(format!(
            "`{}` and `{}` share `{}` and differ in `dtype`, `std` or `global`: give each its own",
            quoted(of),
            quoted(&other.name),
            quoted(name)
        )),
        None => Ok(()),
    }
}

fn pair(name: &str, spec: &TensorSpec, init: &TensorInit) -> PairInit {
    PairInit {
        name: name.to_owned(),
        dtype: spec.dtype,
        shape: spec.shape.clone(),
        seed: init.seed,
        std: init.std,
        block: init.block.clone(),
        layout: init.layout,
        has_global: init.global.is_some(),
    }
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
