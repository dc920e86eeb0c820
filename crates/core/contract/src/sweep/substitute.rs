//! Replaces axis references in the strings of a contract. The main function is [`substitute`].

use serde_json::{Map, Value};

use super::SweepAxis;
use super::axes::in_name;
use crate::error::{ContractError, quoted};

use warpgauge_model::FailureCode;

/// Fields with code or encoded data, in which a dollar sign has its own meaning.
const OPAQUE: [&str; 4] = ["source_code", "files", "binary_b64", "data_b64"];

/// Maximum length of a string after substitution, bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// A point of the sweep: the axes, and the index of each axis's value.
pub(super) struct Point<'a> {
    pub(super) axes: &'a [SweepAxis],
    /// Index of the value of each axis.
    pub(super) at: &'a [usize],
}

/// Replaces all references by values, and marks the used axes.
pub(super) fn substitute(
    contract: &Map<String, Value>,
    point: &Point<'_>,
    used: &mut [bool],
) -> Result<Map<String, Value>, ContractError> {
    let mut path = String::new();
    let fields = contract.iter().map(|(name, value)| {
        path.clear();
        path.push_str(name);
        Ok((name.clone(), of_value(value, name, &mut path, point, used)?))
    });
    fields.collect()
}

/// Replaces the references in a value. The recursion is bounded, because the parser bounds the
/// nesting of bodies.
fn of_value(
    value: &Value,
    field: &str,
    path: &mut String,
    point: &Point<'_>,
    used: &mut [bool],
) -> Result<Value, ContractError> {
    let length = path.len();
    match value {
        _ if OPAQUE.contains(&field) => Ok(value.clone()),
        Value::String(text) => {
            let value = of_text(text, point, used).map_err(|message| ContractError {
                path: path.clone(),
                code: FailureCode::AxisReference,
                message,
            })?;
            Ok(if is_text(path) { as_text(value) } else { value })
        }
        Value::Array(items) => {
            let items = items.iter().enumerate().map(|(index, item)| {
                path.truncate(length);
                path.push_str(&format!("[{index}]"));
                of_value(item, "", path, point, used)
            });
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, inner)| {
                path.truncate(length);
                path.push('.');
                path.push_str(name);
                Ok((name.clone(), of_value(inner, name, path, point, used)?))
            });
            fields.collect::<Result<_, _>>().map(Value::Object)
        }
        other => Ok(other.clone()),
    }
}

/// Returns whether values at this path must be strings, such as compiler options and names, even if
/// they look like numbers.
fn is_text(path: &str) -> bool {
    path.contains("kernel.metadata.") && !path.ends_with(".jitify")
}

fn as_text(value: Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::Bool(value) => value.to_string().into(),
        other => other,
    }
}

fn of_text(text: &str, point: &Point<'_>, used: &mut [bool]) -> Result<Value, String> {
    if !text.contains('$') {
        return Ok(text.into());
    }
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        result.push_str(before);
        if let Some(behind) = behind.strip_prefix('$') {
            result.push('$');
            rest = behind;
            continue;
        }
        let (name, behind) = name_at(behind)?;
        let axis = point.axes.iter().position(|axis| axis.name == name);
        let axis = axis.ok_or_else(|| unknown(name, point.axes))?;
        used[axis] = true;
        let value = &point.axes[axis].values[point.at[axis]];
        if before.is_empty() && behind.is_empty() && result.is_empty() {
            return Ok(value.to_json());
        }
        result.push_str(&value.to_string());
        if result.len() > MAX_TEXT_BYTES {
            return Err(format!("becomes longer than {MAX_TEXT_BYTES} bytes"));
        }
        rest = behind;
    }
    result.push_str(rest);
    Ok(result.into())
}

/// Returns the names of axes that a string refers to, up to the first dollar sign without a name.
pub fn axes_in(text: &str) -> Vec<&str> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some((_, behind)) = rest.split_once('$') {
        rest = match (behind.strip_prefix('$'), name_at(behind)) {
            (Some(behind), _) => behind,
            (None, Ok((name, behind))) => {
                names.push(name);
                behind
            }
            (None, Err(_)) => break,
        };
    }
    names
}

/// Returns the name after a dollar sign, and the rest of the text.
fn name_at(text: &str) -> Result<(&str, &str), String> {
    let found = match text.strip_prefix('{') {
        Some(braced) => braced.split_once('}'),
        None => {
            let end = text.bytes().position(|byte| !in_name(byte)).unwrap_or(text.len());
            Some(text.split_at(end))
        }
    };
    let named = found.filter(|(name, _)| !name.is_empty() && name.bytes().all(in_name));
    named.ok_or_else(|| {
        "has a `$` without an axis name; write `$name`, `${name}`, or `$$` for a dollar sign"
            .to_owned()
    })
}

fn unknown(name: &str, axes: &[SweepAxis]) -> String {
    let names = axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ");
    format!(
        "refers to `${}`, which is not an axis (the axes are: {names}); write `$$` for a dollar \
         sign",
        quoted(name)
    )
}
