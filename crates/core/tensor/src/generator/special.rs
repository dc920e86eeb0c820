//! Content of element types that have not all kinds: complex numbers.

use super::{ElementGenerator, InitError, arange, choice, fill_value, normal, uniform};
use crate::{Dtype, InitKind, TensorInit};

/// Returns the formula of the parts of a complex tensor: constants and ranges are real, random kinds draw
/// both parts.
pub(super) fn of_parts(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    if !init.columns.is_empty() {
        let message = format!("ranges of columns are for real tensors, and this one holds {dtype}");
        return Err(InitError::new("columns", message));
    }
    let real = |start| ElementGenerator::Arange { start, step: 0.0, parts: dtype.parts() };
    match init.kind {
        InitKind::Zeros => Ok(ElementGenerator::Constant(0.0)),
        InitKind::Ones => Ok(real(1.0)),
        InitKind::Full => fill_value(init).map(real),
        InitKind::Arange => arange(init, dtype),
        InitKind::Choice => choice(init, dtype),
        InitKind::Uniform => uniform(init),
        InitKind::Randn => normal(init),
        InitKind::Randint
        | InitKind::Permutation
        | InitKind::Sorted
        | InitKind::Offsets
        | InitKind::Lengths
        | InitKind::Segments => {
            let message = format!(
                "`{}` makes real numbers in an order or whole ones, and the tensor holds {dtype}; use `randn`, \
                 `uniform` or `choice`",
                init.kind.name()
            );
            Err(InitError::new("kind", message))
        }
    }
}
