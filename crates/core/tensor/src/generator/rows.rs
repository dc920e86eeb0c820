//! Content derived from a tensor of the kind `offsets`.

use super::{ElementGenerator, InitError, holds_up_to};
use crate::{Dtype, OffsetsInit, TensorInit};

pub(super) fn lengths(
    init: &TensorInit,
    dtype: Dtype,
    elements: u64,
) -> Result<ElementGenerator, InitError> {
    let of = depended_on(init)?;
    if elements + 1 != of.elements {
        let message = format!(
            "{} has {} offsets and so {} lengths, not {elements}",
            of.name,
            of.elements,
            of.elements.saturating_sub(1)
        );
        return Err(InitError::new("of", message));
    }
    holds_up_to(of.top, dtype)?;
    Ok(ElementGenerator::Lengths(of))
}

pub(super) fn segments(
    init: &TensorInit,
    dtype: Dtype,
    elements: u64,
) -> Result<ElementGenerator, InitError> {
    let of = depended_on(init)?;
    if elements != of.top {
        let message = format!("{} covers {} positions, not {elements}", of.name, of.top);
        return Err(InitError::new("of", message));
    }
    holds_up_to(of.elements.saturating_sub(2), dtype)?;
    Ok(ElementGenerator::Segments(of))
}

fn depended_on(init: &TensorInit) -> Result<OffsetsInit, InitError> {
    init.offsets.as_deref().cloned().ok_or_else(|| {
        let message = "needs `of`, the name of a tensor of the kind `offsets`".to_owned();
        InitError::new("of", message)
    })
}
