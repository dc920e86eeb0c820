//! Texture and surface objects over tensors.

use super::arguments::{Passed, Tensors};
use super::error::{BindError, describe};
use warpgauge_compile::{CType, Param};
use warpgauge_contract::ArgKind;
use warpgauge_model::FailureCode;
use warpgauge_worker::protocol::Argument;

/// Returns whether a parameter may be a texture or surface object, which is a 64-bit number.
pub(super) fn may_be(param: &Param) -> bool {
    matches!(param.ctype, CType::U64 | CType::Integer | CType::Unknown) && param.bytes == 8
}

/// Binds a texture or a surface over the tensor with the index `of` to its parameter.
pub(super) fn bind(
    passed: &Passed<'_>,
    of: usize,
    param: &Param,
    tensors: &Tensors<'_>,
) -> Result<Argument, BindError> {
    let is_surface = passed.arg().kind == ArgKind::Surface;
    let what = if is_surface { "surface" } else { "texture" };
    let misfit = |code: FailureCode, why: String| {
        let message = format!(
            "argument `{}` (a {what}) does not fit parameter `{}`: {why}",
            passed.name(),
            describe(param, passed.index())
        );
        BindError::argument(passed.index(), code, message)
    };
    if !may_be(param) {
        let handle = if is_surface { "cudaSurfaceObject_t" } else { "cudaTextureObject_t" };
        let why = format!("a {what} is passed as a `{handle}`");
        return Err(misfit(FailureCode::ArgumentType, why));
    }
    let nameless = || misfit(FailureCode::MissingField, "it names no tensor".to_owned());
    let wrong = |(code, why)| misfit(code, why);
    let in_array = if is_surface {
        let surface = passed.arg().surface.as_ref().ok_or_else(nameless)?;
        let (_, grid) = surface.grid(tensors.args).map_err(wrong)?;
        (tensors.object)(of, &grid, None)
    } else {
        let texture = passed.arg().texture.as_ref().ok_or_else(nameless)?;
        let (_, layout) = texture.layout(tensors.args).map_err(wrong)?;
        if !layout.in_array {
            return match (tensors.place)(of, 0) {
                Some(Argument::Buffer(buffer)) => Ok(Argument::Texture(buffer, Box::new(layout))),
                _ => {
                    let why = "a texture over scratch memory needs a CUDA array: add `array: true`";
                    Err(misfit(FailureCode::ArgumentType, why.to_owned()))
                }
            };
        }
        (tensors.object)(of, &layout.grid, Some(&layout))
    };
    in_array.ok_or_else(|| {
        let why = "its tensor has no memory in this launch".to_owned();
        misfit(FailureCode::ArgumentType, why)
    })
}
