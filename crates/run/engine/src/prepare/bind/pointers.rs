//! Arrays of pointers to tensors. The kernel receives a pointer to the first entry.

use std::collections::BTreeSet;

use super::arguments::{Passed, Tensors};
use super::error::{BindError, describe};
use super::pointer;
use warpgauge_compile::{CType, Param};
use warpgauge_contract::PointerEntry;
use warpgauge_model::FailureCode;
use warpgauge_worker::protocol::Argument;

/// Returns whether a parameter is declared as a pointer to pointers.
pub(super) fn is_array(param: &Param) -> bool {
    let CType::Pointer { pointee, .. } = &param.ctype else { return false };
    matches!(pointee.as_deref(), Some(CType::Pointer { .. }))
}

/// Returns whether a parameter may be an array of pointers. It is declared as such an array, or as
/// a pointer to addresses or bytes, or its type is unknown.
pub(super) fn may_be_array(param: &Param) -> bool {
    match &param.ctype {
        CType::Pointer { pointee, .. } => match pointee.as_deref() {
            None => true,
            Some(pointee) => matches!(
                pointee,
                CType::Pointer { .. }
                    | CType::I64
                    | CType::U64
                    | CType::I8
                    | CType::U8
                    | CType::Unknown
                    | CType::Aggregate(_)
            ),
        },
        CType::Integer | CType::Unknown => param.bytes == 8,
        _ => false,
    }
}

/// Binds an array of pointers to its parameter.
pub(super) fn bind(
    passed: &Passed<'_>,
    entries: &[PointerEntry],
    param: &Param,
    tensors: &Tensors<'_>,
) -> Result<Argument, BindError> {
    let misfit = |why: &str| {
        let message = format!(
            "argument `{}` (array of {} pointers) does not fit parameter `{}`: {why}",
            passed.name(),
            entries.len(),
            describe(param, passed.index())
        );
        BindError::argument(passed.index(), FailureCode::ArgumentType, message)
    };
    if !may_be_array(param) {
        return Err(misfit(
            "the parameter is not an array of pointers, such as `float**`; give the pointers of an array within a structure in `fields`",
        ));
    }
    let pointee = match &param.ctype {
        CType::Pointer { pointee: Some(pointee), .. } if is_array(param) => Some(&**pointee),
        _ => None,
    };
    let pointed_at = entries.iter().flatten().map(|(tensor, _)| *tensor).collect::<BTreeSet<_>>();
    for tensor in pointed_at {
        let arg = &tensors.args[tensor];
        let Some(spec) = &arg.tensor_spec else {
            return Err(misfit("an entry is not a tensor"));
        };
        let Some(pointee) = pointee else { continue };
        let entry = Param {
            name: Some(format!("{}[]", param.name.as_deref().unwrap_or(passed.name()))),
            ctype: pointee.clone(),
            bytes: 8,
            offset: 0,
            layout: None,
        };
        pointer::check(passed.index(), arg, spec.dtype, &entry)?;
    }
    let array = (tensors.array)(entries);
    array.ok_or_else(|| {
        misfit("only kernels of the types cuda, ptx, cubin, fatbin and triton support arrays of pointers")
    })
}
