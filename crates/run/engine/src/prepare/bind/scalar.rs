//! Conversion of one scalar value to the bytes of a parameter.

use super::error::{BindError, describe, type_name};
use warpgauge_compile::{CType, Param};
use warpgauge_contract::{ArgKind, ArgSpec, ScalarValue as Scalar};
use warpgauge_model::FailureCode;

/// Returns the little-endian bytes of `arg` in the C type of `param`.
pub(super) fn bytes(index: usize, arg: &ArgSpec, param: &Param) -> Result<Vec<u8>, BindError> {
    converted(read(index, arg)?, &arg.name, index, arg.kind, param)
}

/// Returns the little-endian bytes of a value in the C type of `param`. Messages contain `name` and
/// `index`.
pub(super) fn converted(
    scalar: Scalar,
    name: &str,
    index: usize,
    kind: ArgKind,
    param: &Param,
) -> Result<Vec<u8>, BindError> {
    let misfit = |why: &str| {
        BindError::argument(
            index,
            FailureCode::ArgumentValue,
            format!(
                "argument `{}` ({}) does not fit parameter `{}`: {why}",
                name,
                shown(&scalar),
                describe(param, index),
            ),
        )
    };
    match &param.ctype {
        CType::F64 => Ok(float(&scalar).to_le_bytes().to_vec()),
        CType::F32 => {
            let wide = float(&scalar);
            let narrow = wide as f32;
            if wide.is_finite() && !narrow.is_finite() {
                return Err(misfit("its magnitude is beyond float's 3.4e38"));
            }
            Ok(narrow.to_le_bytes().to_vec())
        }
        CType::F16 => {
            let wide = float(&scalar);
            let narrow = half::f16::from_f32(wide as f32);
            if wide.is_finite() && !narrow.is_finite() {
                return Err(misfit("its magnitude is beyond __half's 65504"));
            }
            Ok(narrow.to_le_bytes().to_vec())
        }
        CType::Bf16 => Ok(half::bf16::from_f32(float(&scalar) as f32).to_le_bytes().to_vec()),
        CType::Bool => match scalar {
            Scalar::Bool(value) => Ok(vec![u8::from(value)]),
            Scalar::Int(0) => Ok(vec![0]),
            Scalar::Int(1) => Ok(vec![1]),
            _ => Err(misfit("a bool is true, false, 0 or 1")),
        },
        CType::Pointer { .. } => match scalar {
            Scalar::Int(0) => Ok(vec![0; 8]),
            _ => Err(misfit(
                "a pointer takes a tensor, or an argument of type `none` for a null pointer",
            )),
        },
        CType::Aggregate(_) => {
            Err(misfit("a structure is an argument of type `struct`, with its `fields`"))
        }
        CType::Unknown if matches!(kind, ArgKind::Float) => match param.bytes {
            4 => Ok((float(&scalar) as f32).to_le_bytes().to_vec()),
            8 => Ok(float(&scalar).to_le_bytes().to_vec()),
            _ => Err(misfit("the machine code does not contain its type; give it with `c_type`")),
        },
        integer => {
            let (low, high) = integer_range(integer, param.bytes).ok_or_else(|| {
                misfit("no integer type has that size; give the type with `c_type`")
            })?;
            let value = match scalar {
                Scalar::Int(value) => value,
                Scalar::Bool(value) => i128::from(value),
                Scalar::Float(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => {
                    value as i128
                }
                Scalar::Float(_) => {
                    return Err(misfit("an integer parameter requires whole numbers"));
                }
            };
            if !(low..=high).contains(&value) {
                return Err(misfit(&format!(
                    "{} holds {low} to {high}",
                    type_name(&param.ctype, param.bytes)
                )));
            }
            Ok(value.to_le_bytes()[..param.bytes as usize].to_vec())
        }
    }
}

/// Returns the range of an integer type. If the signedness is unknown, it covers both.
fn integer_range(ctype: &CType, bytes: u32) -> Option<(i128, i128)> {
    if !matches!(bytes, 1 | 2 | 4 | 8) {
        return None;
    }
    let bits = bytes * 8;
    let signed = (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1);
    let unsigned = (0, (1_i128 << bits) - 1);
    Some(match ctype {
        CType::I8 | CType::I16 | CType::I32 | CType::I64 => signed,
        CType::U8 | CType::U16 | CType::U32 | CType::U64 => unsigned,
        _ => (signed.0, unsigned.1),
    })
}

fn float(scalar: &Scalar) -> f64 {
    match *scalar {
        Scalar::Int(value) => value as f64,
        Scalar::Float(value) => value,
        Scalar::Bool(value) => f64::from(u8::from(value)),
    }
}

fn shown(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) => value.to_string(),
        Scalar::Bool(value) => value.to_string(),
    }
}

/// Returns the value of a scalar argument.
fn read(index: usize, arg: &ArgSpec) -> Result<Scalar, BindError> {
    let wanted = match arg.kind {
        ArgKind::Int => "a whole number",
        ArgKind::Float => "a number",
        ArgKind::Bool => "true or false",
        ArgKind::Str
        | ArgKind::Tensor
        | ArgKind::None
        | ArgKind::Struct
        | ArgKind::Pointers
        | ArgKind::Texture
        | ArgKind::Surface => "a number or a bool",
    };
    arg.scalar_value().map_err(|reason| {
        let text = format!("argument `{}` needs {wanted} in `value`: {reason}", arg.name);
        BindError::argument(index, FailureCode::ArgumentValue, text)
    })
}
