//! Binding of all arguments of a contract to all parameters of a kernel.

use super::error::BindError;
use super::{ctype, pointer, scalar};
use warpgauge_compile::{CType, Constant, KernelInfo, Param};
use warpgauge_contract::{ArgKind, ArgSpec, ScalarValue};
use warpgauge_model::FailureCode;
use warpgauge_worker::protocol::Argument;

/// Arguments in parameter order, and the contract arguments that are tensors.
#[derive(Debug, Clone)]
pub struct BoundArguments {
    /// Arguments to pass.
    pub arguments: Vec<Argument>,
    /// For each device buffer, the index of its argument in the contract.
    pub buffers: Vec<usize>,
}

/// Binds `args` to the parameters of `kernel`.
///
/// # Errors
/// The list has every argument that does not fit, not only the first.
pub fn bind_arguments(
    kernel: &KernelInfo,
    args: &[ArgSpec],
) -> Result<BoundArguments, Vec<BindError>> {
    let passed = args.iter().enumerate().filter(|(_, arg)| !arg.is_meta).collect::<Vec<_>>();
    let params = match &kernel.params {
        Some(params) => params.clone(),
        None => declared_params(&passed)?,
    };
    if params.len() != passed.len() {
        let names = passed.iter().map(|(_, arg)| arg.name.as_str()).collect::<Vec<_>>();
        return Err(vec![BindError::count(kernel, &params, &names)]);
    }
    let mut bound = BoundArguments { arguments: Vec::new(), buffers: Vec::new() };
    let mut errors = Vec::new();
    for ((index, arg), param) in passed.into_iter().zip(&params) {
        match bind_one(index, arg, param, bound.buffers.len()) {
            Ok(argument) => {
                if matches!(argument, Argument::Buffer(_)) {
                    bound.buffers.push(index);
                }
                bound.arguments.push(argument);
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(bound) } else { Err(errors) }
}

/// Binds one argument of a contract, by index, to the parameter that is known to be its own.
pub(crate) fn bind_passed(
    index: usize,
    args: &[ArgSpec],
    param: &Param,
) -> Result<Argument, BindError> {
    let (arg, buffer) = passed(index, args)?;
    bind_one(index, arg, param, buffer)
}

/// Returns an argument by index, and the number of buffers before it. If it is a tensor, that is its
/// buffer's index.
pub(super) fn passed(index: usize, args: &[ArgSpec]) -> Result<(&ArgSpec, usize), BindError> {
    let Some(arg) = args.get(index) else {
        let message = "the kernel was compiled for more arguments than there are".to_owned();
        return Err(BindError::argument(index, FailureCode::ArgumentCount, message));
    };
    let is_buffer = |arg: &&ArgSpec| arg.kind == ArgKind::Tensor && !arg.is_meta;
    Ok((arg, args[..index].iter().filter(is_buffer).count()))
}

/// Returns the bytes of a value that a compiler chose.
pub(crate) fn value_bytes(value: &Constant, param: &Param) -> Result<Vec<u8>, BindError> {
    let scalar = match value {
        Constant::Bool(value) => ScalarValue::Bool(*value),
        Constant::Int(value) => ScalarValue::Int((*value).into()),
        Constant::Unsigned(value) => ScalarValue::Int((*value).into()),
        Constant::Float(value) => ScalarValue::Float(*value),
        Constant::Text(_) => {
            let message = format!("`{}` is a text", super::error::describe(param, 0));
            return Err(BindError::argument(0, FailureCode::ArgumentType, message));
        }
    };
    let name = param.name.as_deref().unwrap_or("parameter");
    scalar::converted(scalar, name, 0, ArgKind::Int, param)
}

fn bind_one(
    index: usize,
    arg: &ArgSpec,
    param: &Param,
    next_buffer: usize,
) -> Result<Argument, BindError> {
    let param = with_declared_type(index, arg, param)?;
    match (&arg.kind, &arg.tensor_spec) {
        (ArgKind::Tensor, Some(spec)) => {
            pointer::check(index, arg, spec.dtype, &param)?;
            Ok(Argument::Buffer(next_buffer))
        }
        _ => scalar::bytes(index, arg, &param).map(Argument::Scalar),
    }
}

/// Returns the parameter with the contract's `c_type` filled in, if the image does not contain the
/// type.
fn with_declared_type(index: usize, arg: &ArgSpec, param: &Param) -> Result<Param, BindError> {
    let Some(text) = &arg.c_type else { return Ok(param.clone()) };
    let declared = parse_declared(index, arg, text)?;
    let known = !matches!(param.ctype, CType::Unknown | CType::Integer);
    let contradicts =
        known && std::mem::discriminant(&param.ctype) != std::mem::discriminant(&declared);
    if contradicts || ctype::scalar_size(&declared).is_some_and(|bytes| bytes != param.bytes) {
        return Err(BindError::argument(
            index,
            FailureCode::ArgumentType,
            format!(
                "argument `{}` declares `c_type: {text}`, but the kernel has `{}` ({} bytes); \
                 correct it or leave `c_type` out",
                arg.name,
                super::error::describe(param, index),
                param.bytes,
            ),
        ));
    }
    Ok(if known { param.clone() } else { Param { ctype: declared, ..param.clone() } })
}

fn parse_declared(index: usize, arg: &ArgSpec, text: &str) -> Result<CType, BindError> {
    ctype::parse(text).ok_or_else(|| {
        BindError::argument(
            index,
            FailureCode::UnknownCType,
            format!(
                "argument `{}`: `{text}` is not a C type known here; known are {}",
                arg.name,
                ctype::KNOWN
            ),
        )
    })
}

/// Returns the parameters as the contract declares them, for images without type information
/// (compressed fatbins).
fn declared_params(passed: &[(usize, &ArgSpec)]) -> Result<Vec<Param>, Vec<BindError>> {
    let mut params = Vec::new();
    let mut errors = Vec::new();
    let mut offset = 0;
    for (index, arg) in passed {
        let declared = match (&arg.c_type, arg.kind) {
            (Some(text), _) => parse_declared(*index, arg, text),
            (None, ArgKind::Tensor) => Ok(CType::Pointer { pointee: None, is_const: false }),
            (None, _) => Err(BindError::argument(
                *index,
                FailureCode::UnknownCType,
                format!(
                    "the image does not tell its kernels' parameters; give argument `{}` a \
                     `c_type` ({})",
                    arg.name,
                    ctype::KNOWN
                ),
            )),
        };
        match declared {
            Ok(ctype) => {
                let bytes = ctype::scalar_size(&ctype).unwrap_or(8);
                offset = u32::next_multiple_of(offset, bytes);
                params.push(Param { name: Some(arg.name.clone()), ctype, bytes, offset });
                offset += bytes;
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(params) } else { Err(errors) }
}
