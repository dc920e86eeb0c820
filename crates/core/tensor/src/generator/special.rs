//! Content of element types that have not all kinds: complex numbers, and scales.

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

/// Smallest and largest scale.
const SMALLEST_SCALE: f64 = f64::from_bits((1023 - 127) << 52);
const LARGEST_SCALE: f64 = f64::from_bits((1023 + 127) << 52);

/// Returns the formula of scales, which are powers of two: `randn` draws exponents, `uniform` values.
pub(super) fn of_scales(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    if !init.columns.is_empty() {
        let message = format!("a tensor of {dtype} has no ranges of columns; use `low` and `high`");
        return Err(InitError::new("columns", message));
    }
    let scale = |field, value: f64| {
        let fits = (SMALLEST_SCALE..=LARGEST_SCALE).contains(&value) && value.to_bits() << 12 == 0;
        fits.then_some(value).ok_or_else(|| {
            let message = format!("{dtype} holds powers of two from 2^-127 to 2^127, not {value}");
            InitError::new(field, message)
        })
    };
    match init.kind {
        InitKind::Ones => Ok(ElementGenerator::Constant(1.0)),
        InitKind::Full => scale("fill_value", fill_value(init)?).map(ElementGenerator::Constant),
        InitKind::Choice => {
            init.values.iter().try_for_each(|&value| scale("values", value).map(|_| ()))?;
            choice(init, dtype)
        }
        InitKind::Uniform => {
            let (low, high) = (init.low.unwrap_or(0.25), init.high.unwrap_or(4.0));
            for (field, bound) in [("low", low), ("high", high)] {
                if !(SMALLEST_SCALE..=LARGEST_SCALE).contains(&bound) {
                    let message =
                        format!("{dtype} holds 2^-127 to 2^127, and `{field}` is {bound}");
                    return Err(InitError::new(field, message));
                }
            }
            uniform(&TensorInit { low: Some(low), high: Some(high), ..init.clone() })
        }
        InitKind::Randn => match normal(init)? {
            ElementGenerator::Normal { mean, std } => Ok(ElementGenerator::Exponents { mean, std }),
            other => Ok(other),
        },
        InitKind::Zeros
        | InitKind::Arange
        | InitKind::Randint
        | InitKind::Permutation
        | InitKind::Sorted
        | InitKind::Offsets
        | InitKind::Lengths
        | InitKind::Segments => {
            let message = format!(
                "`{}` makes values that {dtype} does not hold: it has powers of two and no zero; use `randn`, which \
                 draws exponents, `uniform`, `choice`, `full` or `ones`",
                init.kind.name()
            );
            Err(InitError::new("kind", message))
        }
    }
}
