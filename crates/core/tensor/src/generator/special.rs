//! Content of element types that do not support all kinds or values: complex numbers, scales, and
//! 4-bit floats.

use super::{ElementGenerator, InitError, arange, choice, fill_value, normal, uniform};
use crate::{Dtype, InitKind, TensorInit};

/// Returns the generator of the parts of a complex tensor. Constants and ranges are real, and
/// random kinds draw both parts.
pub(super) fn of_parts(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    if !init.columns.is_empty() {
        let message = format!("`columns` is for real tensors, but this one holds {dtype}");
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
        | InitKind::Segments
        | InitKind::Quantized
        | InitKind::Scales
        | InitKind::ZeroPoints
        | InitKind::GlobalScale => {
            let message = format!(
                "`{}` generates ordered or whole real numbers, but the tensor holds {dtype}; use `randn`, \
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

/// Returns the generator of scales, which are powers of two: `randn` draws exponents, and `uniform`
/// draws values.
pub(super) fn of_scales(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    if !init.columns.is_empty() {
        let message = format!("`columns` is not supported for {dtype}; use `low` and `high`");
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
                        format!("{dtype} holds 2^-127 to 2^127, but `{field}` is {bound}");
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
        | InitKind::Segments
        | InitKind::Quantized
        | InitKind::Scales
        | InitKind::ZeroPoints
        | InitKind::GlobalScale => {
            let message = format!(
                "`{}` generates values that {dtype} cannot hold: it has only powers of two, and no zero; use `randn`, which \
                 draws exponents, `uniform`, `choice`, `full` or `ones`",
                init.kind.name()
            );
            Err(InitError::new("kind", message))
        }
    }
}

/// Largest number that E2M1 represents.
const LARGEST_E2M1: f64 = 6.0;

/// Rejects ranges and values beyond the largest 4-bit float, since most of such a range would
/// become one number.
pub(super) fn fits_four_bits(init: &TensorInit, dtype: Dtype) -> Result<(), InitError> {
    if dtype != Dtype::Float4E2m1x2 {
        return Ok(());
    }
    let of_kind =
        |kinds: &[InitKind], value: Option<f64>| value.filter(|_| kinds.contains(&init.kind));
    let ranged = [InitKind::Uniform, InitKind::Sorted];
    let given = [
        ("low", of_kind(&ranged, init.low)),
        ("high", of_kind(&ranged, init.high)),
        ("fill_value", of_kind(&[InitKind::Full], init.fill_value)),
    ];
    let given = given.into_iter().filter_map(|(field, value)| Some((field, value?)));
    let values = init.values.iter().map(|&value| ("values", value));
    let columns = init.columns.iter().flat_map(|one| [one.low, one.high]);
    let mut all = given.chain(values).chain(columns.map(|bound| ("columns", bound)));
    match all.find(|(_, value)| value.abs() > LARGEST_E2M1) {
        Some((field, value)) => {
            let message = format!("{dtype} holds numbers from -6 to 6, but `{field}` has {value}");
            Err(InitError::new(field, message))
        }
        None => Ok(()),
    }
}
