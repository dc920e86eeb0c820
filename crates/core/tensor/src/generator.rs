//! Generators of tensor elements: an `init` with all defaults filled in, checked for one element
//! type. The main type is [`ElementGenerator`].

use thiserror::Error;

use super::Dtype;
use crate::{InitKind, TensorInit};

/// Reason why an `init` cannot be used with its element type.
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

/// Formula of the elements of a tensor. Element `i` depends only on `i` and, for the random kinds,
/// on word `i` of the argument's stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ElementGenerator {
    /// Equal elements with this value.
    Constant(f64),
    /// `start + i * step`.
    Arange {
        start: f64,
        /// Difference between neighbours.
        step: f64,
    },
    /// `low + u * (high - low)` with u in [0, 1).
    Uniform { low: f64, high: f64 },
    /// `mean + std * z` with a standard normal z.
    Normal {
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
            _ => return None,
        })
    }
}

impl ElementGenerator {
    /// Fills in the defaults and checks the parameters. Parameters that a kind does not use are
    /// ignored, as in the CUDA Evaluation Server.
    pub fn new(init: &TensorInit, dtype: Dtype) -> Result<Self, InitError> {
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
        match init.kind {
            InitKind::Zeros => Ok(ElementGenerator::Constant(0.0)),
            InitKind::Ones => Ok(ElementGenerator::Constant(1.0)),
            InitKind::Full => full(init, dtype),
            InitKind::Arange => arange(init),
            InitKind::Uniform if dtype.is_float() => uniform(init),
            InitKind::Randn if dtype.is_float() => normal(init),
            InitKind::Randint if dtype.is_float() => Err(InitError::new(
                "kind",
                format!(
                    "`randint` makes integers and the tensor holds {dtype}; use `uniform`, or an \
                     integer dtype"
                ),
            )),
            InitKind::Uniform | InitKind::Randint => integers(init, dtype),
            InitKind::Randn => Ok(integer_normal(dtype)),
        }
    }
}

fn full(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    let Some(value) = init.fill_value else {
        let message = "`full` needs `fill_value`, the value of every element".to_owned();
        return Err(InitError::new("fill_value", message));
    };
    if let Some((lowest, highest)) = dtype.integer_range() {
        let fits = value.fract() == 0.0 && value >= lowest as f64 && (value as i128) <= highest;
        if !fits {
            let message = format!("{dtype} holds integers from {lowest} to {highest}, not {value}");
            return Err(InitError::new("fill_value", message));
        }
    }
    Ok(ElementGenerator::Constant(value))
}

fn arange(init: &TensorInit) -> Result<ElementGenerator, InitError> {
    let step = init.step.unwrap_or(1.0);
    if step == 0.0 {
        let message = "`step` is zero; for equal elements use `full`".to_owned();
        return Err(InitError::new("step", message));
    }
    Ok(ElementGenerator::Arange { start: init.start.unwrap_or(0.0), step })
}

fn uniform(init: &TensorInit) -> Result<ElementGenerator, InitError> {
    let (low, high) = (init.low.unwrap_or(0.0), init.high.unwrap_or(1.0));
    ordered(low, high)?;
    if !(high - low).is_finite() {
        let message = format!("`high` - `low` overflows float64 ({low} to {high})");
        return Err(InitError::new("high", message));
    }
    Ok(ElementGenerator::Uniform { low, high })
}

fn normal(init: &TensorInit) -> Result<ElementGenerator, InitError> {
    let std = init.std.unwrap_or(1.0);
    if std < 0.0 {
        let message = format!("`std` must be 0 or more, not {std}");
        return Err(InitError::new("std", message));
    }
    Ok(ElementGenerator::Normal { mean: init.mean.unwrap_or(0.0), std })
}

fn integers(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    let (lowest, highest) = dtype.integer_range().unwrap_or((0, 0));
    let default_high = if dtype == Dtype::Bool { 2.0 } else { 100.0 };
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
    Ok(ElementGenerator::Integers { low, span })
}

/// Replaces the normal distribution for integers, as the CUDA Evaluation Server does: uniform over
/// the whole range of the type, and within one million for 64 bits.
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
