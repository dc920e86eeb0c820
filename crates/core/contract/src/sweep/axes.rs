//! Axes of sweeps and their values. The main type is [`SweepAxis`].

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::range;
use crate::error::{Mistakes, quoted};

use warpgauge_model::FailureCode;

/// Maximum number of axes of one sweep.
pub(super) const MAX_AXES: usize = 8;

/// Maximum length of an axis's name, bytes.
const MAX_NAME_BYTES: usize = 64;

/// Maximum length of a string among the values of an axis, bytes.
const MAX_TEXT_BYTES: usize = 1024;

/// Value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// `true` or `false`.
    Bool(bool),
    Int(i64),
    /// A finite number; infinities and NaN are rejected.
    Float(f64),
    /// A string. In a request it may also be a range, e.g. `2^10..2^24 by x4`.
    Text(String),
}

impl AxisValue {
    /// Returns the approximate size of the value in memory, bytes.
    pub fn weight(&self) -> usize {
        match self {
            AxisValue::Text(text) => 64 + text.len(),
            _ => 64,
        }
    }

    /// Returns the value as JSON for a contract.
    pub fn to_json(&self) -> Value {
        match self {
            AxisValue::Bool(value) => (*value).into(),
            AxisValue::Int(value) => (*value).into(),
            AxisValue::Float(value) => (*value).into(),
            AxisValue::Text(text) => text.as_str().into(),
        }
    }
}

/// Formats the value for use inside a string of the contract.
impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisValue::Text(text) => f.write_str(text),
            other => other.to_json().fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for AxisValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl Visitor<'_> for ValueVisitor {
            type Value = AxisValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a boolean, a text, or a range such as \"2^10..2^24 by x4\"")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<AxisValue, E> {
                Ok(AxisValue::Bool(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<AxisValue, E> {
                Ok(AxisValue::Int(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<AxisValue, E> {
                let too_large = || E::invalid_value(de::Unexpected::Unsigned(value), &self);
                i64::try_from(value).map(AxisValue::Int).map_err(|_| too_large())
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<AxisValue, E> {
                if value.is_finite() {
                    Ok(AxisValue::Float(value))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(value), &self))
                }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<AxisValue, E> {
                Ok(AxisValue::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

/// Axis of a sweep, with its ranges expanded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepAxis {
    /// Name of the axis.
    pub name: String,
    /// Values of the axis, in order.
    pub values: Vec<AxisValue>,
}

/// Checks the axes and expands their ranges, to at most `max_points` values each.
pub(super) fn expand(
    axes: &BTreeMap<String, Vec<AxisValue>>,
    max_points: usize,
    mistakes: &mut Mistakes,
) -> Vec<SweepAxis> {
    mistakes.require((1..=MAX_AXES).contains(&axes.len()), "axes", FailureCode::Axes, || {
        format!("a sweep may have 1 to {MAX_AXES} axes; this one has {}", axes.len())
    });
    let axes = axes.iter().take(MAX_AXES);
    axes.map(|(name, given)| {
        let path = format!("axes.{}", quoted(name));
        mistakes.require(is_name(name), path.clone(), FailureCode::AxisName, || {
            format!(
                "a name has 1 to {MAX_NAME_BYTES} characters of A–Z, a–z, 0–9 and `_`, and \
                     does not start with a digit"
            )
        });
        let values = expand_one(given, &path, max_points, mistakes);
        SweepAxis { name: name.clone(), values }
    })
    .collect()
}

fn expand_one(
    given: &[AxisValue],
    path: &str,
    max_points: usize,
    mistakes: &mut Mistakes,
) -> Vec<AxisValue> {
    let mut values = Vec::new();
    for (index, value) in given.iter().enumerate() {
        let at = || format!("{path}[{index}]");
        let room = max_points.saturating_sub(values.len());
        let expanded = match value {
            AxisValue::Text(text) => range::expand(text, room),
            other if room > 0 => Ok(vec![other.clone()]),
            _ => Err(range::too_many(room)),
        };
        match expanded {
            Ok(expanded) => values.extend(expanded),
            Err(message) => {
                let code =
                    if room == 0 { FailureCode::TooManyPoints } else { FailureCode::AxisValue };
                mistakes.add(at(), code, message);
                return values;
            }
        }
        if let AxisValue::Text(text) = value {
            mistakes.require(text.len() <= MAX_TEXT_BYTES, at(), FailureCode::TooLong, || {
                format!(
                    "a string may have at most {MAX_TEXT_BYTES} bytes; this one has {}",
                    text.len()
                )
            });
        }
    }
    mistakes.require(!values.is_empty(), path, FailureCode::AxisValue, || {
        "an axis needs at least one value".to_owned()
    });
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = values.iter().find(|value| !seen.insert(value.to_json().to_string())) {
        mistakes.add(
            path,
            FailureCode::DuplicateValue,
            format!("has the value {} twice", quoted_of(twice)),
        );
    }
    values
}

fn quoted_of(value: &AxisValue) -> String {
    quoted(&value.to_json().to_string())
}

/// Returns whether the name is valid for an axis.
fn is_name(name: &str) -> bool {
    let starts_well = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    starts_well && name.len() <= MAX_NAME_BYTES && name.bytes().all(in_name)
}

/// Returns whether a byte may occur in a name.
pub(super) fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
