//! Values of scalar arguments.

use serde_json::Value;

use super::error::quoted;
use super::{ArgKind, ArgSpec, Role};

/// 2^53. An f64 represents every integer up to it exactly.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// Value of a scalar argument, before its conversion to the C type of the kernel's parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalarValue {
    /// An integer, −2^63 to 2^64 − 1.
    Int(i128),
    /// A floating-point number, possibly infinite or NaN.
    Float(f64),
    /// A boolean.
    Bool(bool),
}

impl ArgSpec {
    /// Returns whether the argument is passed as a parameter, and not as a compile-time constant or a variable of the
    /// image.
    pub fn is_parameter(&self) -> bool {
        !self.is_meta && self.symbol.is_none()
    }

    /// Returns whether the argument belongs to one kernel of a comparison alone: scratch memory, a structure, an array
    /// of pointers, a texture, or a surface.
    pub fn is_private(&self) -> bool {
        self.role == Role::Scratch
            || self.kind.is_object()
            || matches!(self.kind, ArgKind::Struct | ArgKind::Pointers)
    }

    /// Returns the value of an `int`, `float` or `bool` argument. The error contains the expected
    /// and the actual value.
    pub fn scalar_value(&self) -> Result<ScalarValue, String> {
        let Some(value) = &self.value else {
            return Err("a scalar argument needs a `value`".to_owned());
        };
        match self.kind {
            ArgKind::Int => integer(value).map(ScalarValue::Int),
            ArgKind::Float => float(value).map(ScalarValue::Float),
            ArgKind::Bool => match value {
                Value::Bool(value) => Ok(ScalarValue::Bool(*value)),
                other => Err(format!("expected true or false, found {}", described(other))),
            },
            ArgKind::Tensor
            | ArgKind::Str
            | ArgKind::None
            | ArgKind::Struct
            | ArgKind::Pointers
            | ArgKind::Texture
            | ArgKind::Surface => Err("not a number".to_owned()),
        }
    }
}

fn integer(value: &Value) -> Result<i128, String> {
    let Value::Number(number) = value else {
        return Err(format!("expected an integer, found {}", described(value)));
    };
    if let Some(value) = number.as_i64() {
        return Ok(value.into());
    }
    if let Some(value) = number.as_u64() {
        return Ok(value.into());
    }
    match number.as_f64() {
        Some(value) if value.fract() == 0.0 && value.abs() <= EXACT_INTEGERS => Ok(value as i128),
        _ => Err(format!("expected an integer of at most 64 bits, found {number}")),
    }
}

fn float(value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(number) => {
            number.as_f64().ok_or_else(|| format!("expected a number, found {number}"))
        }
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "inf" | "+inf" | ".inf" | "+.inf" | "infinity" | "+infinity" => Ok(f64::INFINITY),
            "-inf" | "-.inf" | "-infinity" => Ok(f64::NEG_INFINITY),
            "nan" | ".nan" => Ok(f64::NAN),
            _ => Err(format!(
                "expected a number or one of \"inf\", \"-inf\", \"nan\", found {}",
                described(value)
            )),
        },
        other => Err(format!("expected a number, found {}", described(other))),
    }
}

/// Describes a JSON value in words.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string \"{}\"", quoted(text)),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(fields) => format!("an object of {} fields", fields.len()),
    }
}
