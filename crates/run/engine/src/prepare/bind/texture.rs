//! Texture objects over tensors.

use super::arguments::{Passed, Tensors};
use super::error::{BindError, describe};
use warpgauge_compile::{CType, Param};
use warpgauge_model::FailureCode;
use warpgauge_worker::protocol::Argument;

/// Returns whether a parameter may be a texture object, which is a number of 64 bits.
pub(super) fn may_be(param: &Param) -> bool {
    matches!(param.ctype, CType::U64 | CType::Integer | CType::Unknown) && param.bytes == 8
}

/// Binds a texture over the tensor `of` to the parameter that takes it.
pub(super) fn bind(
    passed: &Passed<'_>,
    of: usize,
    param: &Param,
    tensors: &Tensors<'_>,
) -> Result<Argument, BindError> {
    let misfit = |code: FailureCode, why: String| {
        let message = format!(
            "argument `{}` (a texture) does not fit parameter `{}`: {why}",
            passed.name(),
            describe(param, passed.index())
        );
        BindError::argument(passed.index(), code, message)
    };
    if !may_be(param) {
        let why = "a texture is passed as a `cudaTextureObject_t`".to_owned();
        return Err(misfit(FailureCode::ArgumentType, why));
    }
    let layout = passed.arg().texture.as_ref().map(|texture| texture.layout(tensors.args));
    let layout = match layout {
        Some(Ok((_, layout))) => layout,
        Some(Err((code, why))) => return Err(misfit(code, why)),
        None => return Err(misfit(FailureCode::MissingField, "it names no tensor".to_owned())),
    };
    match (tensors.place)(of, 0) {
        Some(Argument::Buffer(buffer)) => Ok(Argument::Texture(buffer, Box::new(layout))),
        _ => {
            let why =
                "textures over scratch memory are not supported: make its tensor `role: inout`";
            Err(misfit(FailureCode::ArgumentType, why.to_owned()))
        }
    }
}
