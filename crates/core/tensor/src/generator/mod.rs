//! Generators of tensor elements: an `init` with all defaults filled in, checked for one element
//! type. The main type is [`ElementGenerator`].

use thiserror::Error;

use super::Dtype;
use super::ordered::MAX_SPAN;
use super::philox::Philox;
use crate::{ColumnRange, InitKind, OffsetsInit, TensorInit, shape_of_parts};

mod quantized;
mod rows;
mod special;

use rows::{lengths, segments};

pub use quantized::{GlobalScale, QuantizedValues, ScaleRange, ZeroPoints};

/// Maximum number of values of `choice`.
pub const MAX_VALUES: usize = 32;

/// Maximum number of ranges of `columns`.
pub const MAX_COLUMNS: usize = 16;

/// Error of an `init` that cannot be used with its element type.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{message}")]
pub struct InitError {
    /// The invalid field of `init`.
    pub field: &'static str,
    /// Message with the expected value, the received value and a remedy.
    pub message: String,
}

impl InitError {
    fn new(field: &'static str, message: String) -> Self {
        Self { field, message }
    }
}

/// Formula of the elements of a tensor, or of the numbers of a complex or packed tensor. Element
/// `i` depends only on `i` and, for the random kinds, on word `i` of the argument's stream or on
/// the key of the stream.
#[derive(Debug, Clone, PartialEq)]
pub enum ElementGenerator {
    /// Every element has this value.
    Constant(f64),
    /// `start + i * step`. For a complex tensor, `i` counts elements, and imaginary parts are 0.
    Arange {
        start: f64,
        /// Difference between neighbours.
        step: f64,
        /// Number of numbers in one element: 2 for complex and packed types, otherwise 1.
        parts: u64,
    },
    /// `low + u * width` with u in [0, 1).
    Uniform { low: f64, width: f64 },
    /// `mean + std * z` with a standard normal z.
    Normal {
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Scales: 2 to the power of `mean + std * z`, rounded to a whole number from -127 to 127.
    Exponents {
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Uniform integers in `low … low + span - 1`, all within the element type.
    Integers {
        /// Smallest value.
        low: i128,
        /// Number of values, at least 1.
        span: u64,
    },
    /// `low` plus element `i` of a random permutation of 0 … span − 1.
    Permutation {
        /// Smallest value that may occur.
        low: i128,
        /// Number of values, at least that of the elements.
        span: u64,
    },
    /// `low` plus the value at `i + 1` of a rising sequence, plus `i` if all values are different.
    Sorted {
        /// Smallest value that may occur.
        low: i128,
        /// Number of steps of the sequence: the number of elements plus 1.
        points: u64,
        /// Last value of the sequence.
        top: u64,
        unique: bool,
    },
    /// `low + r * 2^-53 * width`, where r is the value at `i + 1` of a rising sequence from 0 to 2^53.
    SortedFloats {
        low: f64,
        width: f64,
        /// Number of steps of the sequence: the number of elements plus 1.
        points: u64,
    },
    /// `low` plus the value at `i` of a rising sequence.
    Offsets {
        /// Value of the first element.
        low: i128,
        /// Number of steps of the sequence: the number of elements minus 1.
        points: u64,
        /// Last value of the sequence.
        top: u64,
    },
    /// Differences of adjacent values in the rising sequence of another tensor.
    Lengths(OffsetsInit),
    /// For position `i`, the index of the last value that is at most `i` in the rising sequence of
    /// another tensor.
    Segments(OffsetsInit),
    /// Random choice among these values.
    Choice(Vec<f64>),
    /// Scales, each from the stream's key and its index.
    Scales(ScaleRange),
    /// Integers in `low … low + span - 1`, each from the stream's key and its index.
    ZeroPoints { low: u64, span: u64 },
    /// Normal numbers, quantised with the scale of their block.
    Quantized(QuantizedValues),
    /// Like `Uniform`, with a lower bound and a width for each column.
    UniformColumns(Vec<(f64, f64)>),
    /// Like `Integers`, with a smallest value and a span for each column.
    IntegerColumns(Vec<(i128, u64)>),
}

impl Dtype {
    /// Returns the smallest and largest value of an integer type or bool, and `None` for floats.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Dtype::Int8 => (i8::MIN as i128, i8::MAX as i128),
            Dtype::Int16 => (i16::MIN as i128, i16::MAX as i128),
            Dtype::Int32 => (i32::MIN as i128, i32::MAX as i128),
            Dtype::Int64 => (i64::MIN as i128, i64::MAX as i128),
            Dtype::Uint8 => (0, u8::MAX as i128),
            Dtype::Uint16 => (0, u16::MAX as i128),
            Dtype::Uint32 => (0, u32::MAX as i128),
            Dtype::Uint64 => (0, u64::MAX as i128),
            Dtype::Bool => (0, 1),
            Dtype::Int4x2 => (-8, 7),
            Dtype::Uint4x2 => (0, 15),
            _ => return None,
        })
    }
}

impl ElementGenerator {
    /// Fills in the defaults for a tensor of a shape, and checks the parameters. Numeric fields
    /// that a kind does not use are ignored, as in the CUDA Evaluation Server.
    pub fn new(init: &TensorInit, dtype: Dtype, shape: &[u64]) -> Result<Self, InitError> {
        for (field, value) in [
            ("mean", init.mean),
            ("std", init.std),
            ("low", init.low),
            ("high", init.high),
            ("start", init.start),
            ("step", init.step),
        ] {
            if value.is_some_and(|value| !value.is_finite()) {
                return Err(InitError::new(field, format!("`{field}` must be a finite number")));
            }
        }
        only_for(init)?;
        let is_pair = matches!(
            init.kind,
            InitKind::Quantized | InitKind::Scales | InitKind::ZeroPoints | InitKind::GlobalScale
        );
        if dtype.is_complex() && !is_pair {
            return special::of_parts(init, dtype);
        }
        if dtype == Dtype::Float8E8m0 && !is_pair {
            return special::of_scales(init, dtype);
        }
        special::fits_four_bits(init, dtype)?;
        // The generator works on numbers. A packed or complex element has two.
        let (own, numbers) = (shape, shape_of_parts(dtype, shape));
        let shape = &numbers[..];
        let elements = shape.iter().fold(1, |all: u64, &extent| all.saturating_mul(extent));
        match init.kind {
            InitKind::Zeros => Ok(ElementGenerator::Constant(0.0)),
            InitKind::Ones => Ok(ElementGenerator::Constant(1.0)),
            InitKind::Full => full(init, dtype),
            InitKind::Arange => arange(init, dtype),
            InitKind::Choice => choice(init, dtype),
            InitKind::Quantized => quantized::values(init, dtype, own),
            InitKind::Scales => quantized::scales(init, dtype, own),
            InitKind::ZeroPoints => quantized::zero_points(init, dtype),
            InitKind::GlobalScale => quantized::global_scale(init, dtype, own),
            InitKind::Uniform | InitKind::Randint if !init.columns.is_empty() => {
                by_column(init, dtype, shape)
            }
            InitKind::Uniform if dtype.is_float() => uniform(init),
            InitKind::Randn if dtype.is_float() => normal(init),
            InitKind::Sorted if dtype.is_float() => sorted_floats(init, elements),
            kind if dtype.is_float() => Err(InitError::new(
                "kind",
                format!(
                    "`{}` generates integers, but the tensor holds {dtype}; use `uniform` or `sorted`, or an integer \
                     dtype",
                    kind.name()
                ),
            )),
            InitKind::Uniform | InitKind::Randint => {
                let (low, span) = integers(init, dtype)?;
                Ok(ElementGenerator::Integers { low, span })
            }
            InitKind::Randn => Ok(integer_normal(dtype)),
            InitKind::Permutation => permutation(init, dtype, elements),
            InitKind::Sorted => sorted(init, dtype, elements),
            InitKind::Offsets => offsets(init, dtype, elements),
            InitKind::Lengths => lengths(init, dtype, elements),
            InitKind::Segments => segments(init, dtype, elements),
        }
    }

    /// Returns the stream of the random words: the argument's stream, or that of the tensor that it
    /// depends on.
    pub fn stream(&self, seed: u64, name: &str) -> Philox {
        match self {
            Self::Lengths(of) | Self::Segments(of) => {
                Philox::for_argument(of.seed.unwrap_or(0), &of.name)
            }
            _ => Philox::for_argument(seed, name),
        }
    }
}

/// Rejects fields that only other kinds use, since they would be ignored.
fn only_for(init: &TensorInit) -> Result<(), InitError> {
    use InitKind::{
        Choice, GlobalScale, Lengths, Offsets, Permutation, Quantized, Randint, Scales, Segments,
        Sorted, Uniform, ZeroPoints,
    };
    let kind = init.kind;
    let given = [
        ("values", !init.values.is_empty(), kind == Choice, "`choice`"),
        (
            "columns",
            !init.columns.is_empty(),
            matches!(kind, Uniform | Randint),
            "`uniform` and `randint`",
        ),
        (
            "unique",
            init.unique,
            kind == Sorted,
            "`sorted`; the values of `permutation` are always different",
        ),
        ("block", !init.block.is_empty(), kind == Scales, "`scales`"),
        ("layout", !init.layout.is_rows(), kind == Scales, "`scales`"),
        ("zeros", init.zeros.is_some(), kind == Quantized, "`quantized`"),
        ("global", init.global.is_some(), kind == Quantized, "`quantized`"),
        (
            "of",
            init.of.is_some(),
            matches!(
                kind,
                Randint
                    | Permutation
                    | Offsets
                    | Lengths
                    | Segments
                    | Quantized
                    | Scales
                    | ZeroPoints
                    | GlobalScale
            ),
            "`randint`, `permutation`, `offsets`, `lengths`, `segments`, `quantized`, `scales`, `zero_points` and \
             `global_scale`",
        ),
    ];
    match given.into_iter().find(|(_, given, allowed, _)| *given && !allowed) {
        Some((field, .., kinds)) => {
            Err(InitError::new(field, format!("`{field}` is for the kind {kinds}")))
        }
        None => Ok(()),
    }
}

fn choice(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    if init.values.is_empty() || init.values.len() > MAX_VALUES {
        let message = format!(
            "`choice` takes 1 to {MAX_VALUES} `values`, not {}; send more as `data`",
            init.values.len()
        );
        return Err(InitError::new("values", message));
    }
    if dtype.integer_range().is_some() {
        init.values.iter().try_for_each(|&value| whole("values", value, dtype).map(|_| ()))?;
    }
    Ok(ElementGenerator::Choice(init.values.clone()))
}

fn by_column(
    init: &TensorInit,
    dtype: Dtype,
    shape: &[u64],
) -> Result<ElementGenerator, InitError> {
    let last = shape.last().copied().unwrap_or(1);
    let count = init.columns.len();
    if count > MAX_COLUMNS || count as u64 != last {
        let message = format!(
            "gives {count} ranges, but the last dimension has {last} (at most {MAX_COLUMNS} are possible)"
        );
        return Err(InitError::new("columns", message));
    }
    if init.low.is_some() || init.high.is_some() {
        let message = "give `columns`, or `low` and `high`, not both".to_owned();
        return Err(InitError::new("columns", message));
    }
    let one = |range: &ColumnRange| TensorInit {
        low: Some(range.low),
        high: Some(range.high),
        ..TensorInit::of_kind(init.kind)
    };
    let at = |error: InitError| InitError::new("columns", error.message);
    if dtype.is_float() {
        if init.kind == InitKind::Randint {
            let message = format!(
                "`randint` generates integers, but the tensor holds {dtype}; use `uniform`"
            );
            return Err(InitError::new("kind", message));
        }
        let all: Result<_, InitError> =
            init.columns.iter().map(|range| bounds(&one(range))).collect();
        return all.map(ElementGenerator::UniformColumns).map_err(at);
    }
    let all: Result<_, InitError> =
        init.columns.iter().map(|range| integers(&one(range), dtype)).collect();
    all.map(ElementGenerator::IntegerColumns).map_err(at)
}

fn sorted_floats(init: &TensorInit, elements: u64) -> Result<ElementGenerator, InitError> {
    if init.unique {
        let message = "`unique` is for integers: floating-point numbers are rounded".to_owned();
        return Err(InitError::new("unique", message));
    }
    let (low, width) = bounds(init)?;
    Ok(ElementGenerator::SortedFloats { low, width, points: elements.saturating_add(1) })
}

fn permutation(
    init: &TensorInit,
    dtype: Dtype,
    elements: u64,
) -> Result<ElementGenerator, InitError> {
    let high = init.high.unwrap_or(init.low.unwrap_or(0.0) + elements.max(1) as f64);
    let (low, span) = spanned(&TensorInit { high: Some(high), ..init.clone() }, dtype)?;
    if span < elements {
        let message = format!(
            "{elements} elements cannot all be different among the {span} integers from `low` to `high`"
        );
        return Err(InitError::new("high", message));
    }
    Ok(ElementGenerator::Permutation { low, span })
}

fn sorted(init: &TensorInit, dtype: Dtype, elements: u64) -> Result<ElementGenerator, InitError> {
    let (low, span) = spanned(init, dtype)?;
    let taken = if init.unique { elements } else { 1 };
    let Some(top) = span.checked_sub(taken) else {
        let message = format!(
            "{elements} elements cannot all be different among the {span} integers from `low` to `high`"
        );
        return Err(InitError::new("high", message));
    };
    let points = elements.saturating_add(1);
    Ok(ElementGenerator::Sorted { low, points, top, unique: init.unique })
}

fn offsets(init: &TensorInit, dtype: Dtype, elements: u64) -> Result<ElementGenerator, InitError> {
    let Some(high) = init.high else {
        let message =
            "`offsets` needs `high`, the last value, or `of`, the tensor that they point into";
        return Err(InitError::new("high", message.to_owned()));
    };
    let low = whole("low", init.low.unwrap_or(0.0), dtype)?;
    let high = whole("high", high, dtype)?;
    let top = u64::try_from(high - low).ok().filter(|&top| top <= MAX_SPAN).ok_or_else(|| {
        let message = format!(
            "goes from {low} to {high}; offsets must not fall, and may rise by at most 2^63"
        );
        InitError::new("high", message)
    })?;
    if elements < 2 && top > 0 {
        let message = format!("{elements} elements cannot go from {low} to {high}; use at least 2");
        return Err(InitError::new("high", message));
    }
    Ok(ElementGenerator::Offsets { low, points: elements.saturating_sub(1).max(1), top })
}

/// Returns a number as an integer, if it is whole and the element type can hold it.
fn whole(field: &'static str, value: f64, dtype: Dtype) -> Result<i128, InitError> {
    let (lowest, highest) = dtype.integer_range().unwrap_or((0, 0));
    let fits = value.fract() == 0.0 && (lowest..=highest).contains(&(value as i128));
    fits.then_some(value as i128).ok_or_else(|| {
        let message = format!("{dtype} holds integers from {lowest} to {highest}, not {value}");
        InitError::new(field, message)
    })
}

fn holds_up_to(largest: u64, dtype: Dtype) -> Result<(), InitError> {
    match dtype.integer_range() {
        Some((_, highest)) if i128::from(largest) <= highest => Ok(()),
        _ => Err(InitError::new("kind", format!("values up to {largest} do not fit {dtype}"))),
    }
}

fn full(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    let value = fill_value(init)?;
    if dtype.integer_range().is_some() {
        whole("fill_value", value, dtype)?;
    }
    Ok(ElementGenerator::Constant(value))
}

fn fill_value(init: &TensorInit) -> Result<f64, InitError> {
    init.fill_value.ok_or_else(|| {
        let message = "`full` needs `fill_value`, the value of every element".to_owned();
        InitError::new("fill_value", message)
    })
}

fn arange(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    let step = init.step.unwrap_or(1.0);
    if step == 0.0 {
        let message = "`step` is zero; for equal elements use `full`".to_owned();
        return Err(InitError::new("step", message));
    }
    let (start, parts) = (init.start.unwrap_or(0.0), if dtype.is_complex() { 2 } else { 1 });
    Ok(ElementGenerator::Arange { start, step, parts })
}

fn uniform(init: &TensorInit) -> Result<ElementGenerator, InitError> {
    let (low, width) = bounds(init)?;
    Ok(ElementGenerator::Uniform { low, width })
}

/// Returns the lower bound and the width of a range of floating-point numbers.
fn bounds(init: &TensorInit) -> Result<(f64, f64), InitError> {
    let (low, high) = (init.low.unwrap_or(0.0), init.high.unwrap_or(1.0));
    ordered(low, high)?;
    if !(high - low).is_finite() {
        let message = format!("`high` - `low` overflows float64 ({low} to {high})");
        return Err(InitError::new("high", message));
    }
    Ok((low, high - low))
}

fn normal(init: &TensorInit) -> Result<ElementGenerator, InitError> {
    let std = init.std.unwrap_or(1.0);
    if std < 0.0 {
        let message = format!("`std` must be 0 or more, not {std}");
        return Err(InitError::new("std", message));
    }
    Ok(ElementGenerator::Normal { mean: init.mean.unwrap_or(0.0), std })
}

/// Like [`integers`], for kinds whose range has at most 2^63 values.
fn spanned(init: &TensorInit, dtype: Dtype) -> Result<(i128, u64), InitError> {
    let (low, span) = integers(init, dtype)?;
    if span > MAX_SPAN {
        let message = format!("`high` - `low` must be at most 2^63 here, not {span}");
        return Err(InitError::new("high", message));
    }
    Ok((low, span))
}

/// Returns the smallest value and the number of values of a range of integers.
fn integers(init: &TensorInit, dtype: Dtype) -> Result<(i128, u64), InitError> {
    let (lowest, highest) = dtype.integer_range().unwrap_or((0, 0));
    let default_high = 100f64.min(highest as f64 + 1.0);
    let (low, high) = (init.low.unwrap_or(0.0), init.high.unwrap_or(default_high));
    for (field, value) in [("low", low), ("high", high)] {
        if value.fract() != 0.0 {
            let message = format!("`{field}` must be an integer for {dtype}, not {value}");
            return Err(InitError::new(field, message));
        }
    }
    ordered(low, high)?;
    // The casts saturate far outside every element type, so the checks below still catch large
    // values.
    let (low, high) = (low as i128, high as i128);
    if low < lowest {
        let message = format!("`low` is {low}, but the smallest {dtype} is {lowest}");
        return Err(InitError::new("low", message));
    }
    if high - 1 > highest {
        let message = format!(
            "`high` is {high} (exclusive), so values up to {} occur, but the largest {dtype} is \
             {highest}",
            high - 1
        );
        return Err(InitError::new("high", message));
    }
    let span = u64::try_from(high - low).map_err(|_| {
        let message = format!("`high` - `low` must be below 2^64, not {}", high - low);
        InitError::new("high", message)
    })?;
    Ok((low, span))
}

/// Replaces the normal distribution for integers, as the CUDA Evaluation Server does. The
/// distribution is uniform over the range of the type; for 64-bit types the magnitude is at most
/// one million.
fn integer_normal(dtype: Dtype) -> ElementGenerator {
    const MILLION: i128 = 1_000_000;
    let (low, end) = match dtype {
        Dtype::Int64 => (-MILLION, MILLION),
        Dtype::Uint64 => (0, MILLION),
        other => other.integer_range().map_or((0, 1), |(low, high)| (low, high + 1)),
    };
    ElementGenerator::Integers { low, span: (end - low) as u64 }
}

fn ordered(low: f64, high: f64) -> Result<(), InitError> {
    if low < high {
        return Ok(());
    }
    let message = format!("`low` must be below `high`; they are {low} and {high}");
    Err(InitError::new("low", message))
}
