//! Kinds of parameters, by their C types. The main type is [`Kind`].

use crate::infer::guess::CompiledParameter;
use crate::infer::pointers;

/// Kind of a parameter.
pub(super) enum Kind {
    Pointer {
        dtype: &'static str,
        lanes: u64,
        is_const: bool,
    },
    /// An array of pointers.
    Pointers {
        dtype: &'static str,
        lanes: u64,
        is_const: bool,
    },
    Integer,
    Float,
    Bool,
}

/// Returns the kind of a parameter.
///
/// # Errors
/// A type that no contract can provide, with a remedy.
pub(super) fn kind(parameter: &CompiledParameter, name: &str) -> Result<Kind, String> {
    let text = parameter.c_type.as_str();
    if let Some(entry) = pointers::entry_of(text)
        && let pointee = entry.trim_end_matches('*').trim_start_matches("const ")
        && let Some((dtype, lanes)) = element(pointee)
    {
        return Ok(Kind::Pointers { dtype, lanes, is_const: entry.starts_with("const ") });
    }
    if let Some(pointee) = text.strip_suffix('*') {
        let is_const = pointee.starts_with("const ");
        let pointee = pointee.trim_start_matches("const ");
        let (dtype, lanes) = element(pointee).ok_or_else(|| {
            format!(
                "`{text} {name}` points to what no tensor of a contract holds ({pointee}): write the \
                 contract by hand, with the elements as numbers"
            )
        })?;
        return Ok(Kind::Pointer { dtype, lanes, is_const });
    }
    match text {
        "float" | "double" | "__half" | "__nv_bfloat16" => Ok(Kind::Float),
        "bool" => Ok(Kind::Bool),
        _ if element(text).is_some() || text.ends_with("-bit integer") && parameter.bytes < 8 => {
            Ok(Kind::Integer)
        }
        // Machine code contains only sizes.
        _ if parameter.bytes == 8
            && (text.contains("unknown") || text.ends_with("-bit integer")) =>
        {
            Ok(Kind::Pointer { dtype: "float32", lanes: 1, is_const: false })
        }
        _ if parameter.bytes == 4 && text.contains("unknown") => Ok(Kind::Integer),
        _ if text.starts_with("enum ") => Ok(Kind::Integer),
        _ => Err(format!(
            "parameter `{text} {name}` is passed by value as a structure: write the contract by hand"
        )),
    }
}

/// Returns the element type and the number of elements of a pointee.
fn element(name: &str) -> Option<(&'static str, u64)> {
    let scalar = |name: &str| {
        Some(match name {
            "float" => "float32",
            "double" => "float64",
            "__half" => "float16",
            "__nv_bfloat16" => "bfloat16",
            "signed char" | "char" => "int8",
            "short" => "int16",
            "int" => "int32",
            "long long" | "long" => "int64",
            "unsigned char" | "uchar" => "uint8",
            "unsigned short" | "ushort" => "uint16",
            "unsigned int" | "uint" => "uint32",
            "unsigned long long" | "unsigned long" => "uint64",
            "bool" => "bool",
            "void" => "float32",
            _ => return None,
        })
    };
    scalar(name).map(|dtype| (dtype, 1)).or_else(|| {
        let lanes = name.chars().last()?.to_digit(10).filter(|lanes| (1..=4).contains(lanes))?;
        scalar(&name[..name.len() - 1]).map(|dtype| (dtype, u64::from(lanes)))
    })
}

/// Returns the size of an element type in bytes, from its name.
pub(super) fn bytes(dtype: &str) -> u64 {
    match dtype.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>() {
        Ok(bits) => bits / 8,
        Err(_) => 1,
    }
}
