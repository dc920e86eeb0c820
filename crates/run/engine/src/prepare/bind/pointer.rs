//! Checks whether a tensor can be passed as a pointer.

use super::error::{BindError, describe};
use warpgauge_compile::{CType, Param};
use warpgauge_contract::{ArgSpec, Role};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

/// Checks that the tensor `arg` can be passed as the parameter `param`.
pub(super) fn check(
    index: usize,
    arg: &ArgSpec,
    dtype: Dtype,
    param: &Param,
) -> Result<(), BindError> {
    let misfit = |why: String| {
        BindError::argument(
            index,
            FailureCode::ArgumentType,
            format!(
                "argument `{}` (tensor of {dtype}) does not fit parameter `{}`: {why}",
                arg.name,
                describe(param, index),
            ),
        )
    };
    match &param.ctype {
        CType::Pointer { pointee, is_const } => {
            if *is_const && arg.role != Role::Input {
                return Err(misfit(
                    "the kernel cannot write through a pointer to const; make the role `input`, \
                     or the parameter non-const"
                        .to_owned(),
                ));
            }
            match pointee.as_deref() {
                Some(element) if !element_fits(element, dtype) => Err(misfit(format!(
                    "the pointer is to {}; use a tensor with a matching dtype",
                    super::error::type_name(element, 0)
                ))),
                _ => Ok(()),
            }
        }
        CType::Integer | CType::Unknown | CType::U64 | CType::I64 if param.bytes == 8 => {
            match param.ctype {
                CType::U64 | CType::I64 => {
                    Err(misfit("the parameter is an integer, not a pointer".to_owned()))
                }
                _ => Ok(()),
            }
        }
        _ => Err(misfit(
            "a tensor is passed as a pointer, but the parameter is not a pointer".to_owned(),
        )),
    }
}

/// Returns the bytes of a null pointer, if `param` is a pointer.
pub(super) fn null(index: usize, arg: &ArgSpec, param: &Param) -> Result<Vec<u8>, BindError> {
    let may_be_pointer = matches!(param.ctype, CType::Integer | CType::Unknown) && param.bytes == 8;
    if matches!(param.ctype, CType::Pointer { .. }) || may_be_pointer {
        return Ok(vec![0; 8]);
    }
    let message = format!(
        "argument `{}` (type `none`) does not fit parameter `{}`: only a pointer can be null",
        arg.name,
        describe(param, index)
    );
    Err(BindError::argument(index, FailureCode::ArgumentType, message))
}

/// Returns whether elements of `dtype` may be accessed through a pointer to `element`.
///
/// Integers of the same size, and bytes of any type, are accepted: signedness and raw access are
/// the kernel's concern. Structures and vector types (`float4`) do not restrict their elements
/// here.
fn element_fits(element: &CType, dtype: Dtype) -> bool {
    match element {
        CType::F64 => dtype == Dtype::Float64,
        CType::F32 => dtype == Dtype::Float32,
        CType::F16 => dtype == Dtype::Float16,
        CType::Bf16 => dtype == Dtype::Bfloat16,
        CType::I16 | CType::U16 => !dtype.is_float() && dtype.size() == 2 || half_width(dtype),
        CType::I32 | CType::U32 => !dtype.is_float() && dtype.size() == 4,
        CType::I64 | CType::U64 => !dtype.is_float() && dtype.size() == 8,
        CType::Bool => matches!(dtype, Dtype::Bool | Dtype::Uint8 | Dtype::Int8),
        _ => true,
    }
}

/// Returns whether elements of a type may be accessed as `unsigned short`. This is common for
/// 16-bit floating-point types, because CUDA has no built-in types for them.
fn half_width(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float16 | Dtype::Bfloat16)
}
