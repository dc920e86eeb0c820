//! Kinds of parameters, by their C types. The main type is [`Kind`].

use crate::infer::guess::CompiledParameter;
use crate::infer::lexer::{closing, integer, is_name};
use crate::infer::objects::Object;
use crate::infer::pointers;

/// Maximum number of structures of a source that are examined.
const MAX_STRUCTURES: usize = 256;

/// Maximum number of elements of a structure.
const MAX_FIELDS: u64 = 1024;

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
    /// A texture or a surface.
    Object(Object),
}

/// Returns the kind of a parameter. `tokens` are those of the source.
///
/// # Errors
/// Returns a message with a remedy for a type that no contract can provide.
pub(super) fn kind(
    parameter: &CompiledParameter,
    name: &str,
    tokens: &[&str],
) -> Result<Kind, String> {
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
        let known = element(pointee).or_else(|| structure(pointee, tokens));
        let (dtype, lanes) = known.ok_or_else(|| {
            format!(
                "`{text} {name}` points to structures with fields of several types ({pointee}): write \
                 the contract by hand, with a tensor of bytes (uint8) that holds them"
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

/// Returns the element type and the number of elements of the C type that a pointer points to.
pub(super) fn element(name: &str) -> Option<(&'static str, u64)> {
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

/// Returns the element type of a structure whose fields are numbers of one type without padding, and their number.
fn structure(name: &str, tokens: &[&str]) -> Option<(&'static str, u64)> {
    let bodies = tokens.iter().enumerate().filter(|(_, token)| **token == "struct");
    let body = bodies.take(MAX_STRUCTURES).find_map(|(at, _)| {
        let open = at + tokens[at..].iter().take(4).position(|token| *token == "{")?;
        let close = closing(tokens, open)?;
        let names = tokens[at + 1..open].iter().chain(tokens.get(close + 1));
        names.into_iter().any(|token| *token == name).then(|| &tokens[open + 1..close])
    })?;
    let (mut dtype, mut lanes) = (None, 0_u64);
    for field in body.split(|token| *token == ";").filter(|field| !field.is_empty()) {
        let (c_type, names) = match field {
            ["unsigned", "int", names @ ..] => ("unsigned int", names),
            [c_type, names @ ..] => (*c_type, names),
            [] => continue,
        };
        let (own, each) = element(c_type)?;
        // Vectors of two and four elements are aligned to their size.
        let is_aligned = each == 3 || lanes.is_multiple_of(each);
        if *dtype.get_or_insert(own) != own || !is_aligned {
            return None;
        }
        for declared in names.split(|token| *token == ",") {
            let count = match declared {
                [name] if is_name(name) => 1,
                [name, "[", extent, "]"] if is_name(name) => integer(extent)?,
                _ => return None,
            };
            lanes = lanes.checked_add(each.checked_mul(count)?)?;
        }
    }
    Some((dtype?, lanes)).filter(|(_, lanes)| (1..=MAX_FIELDS).contains(lanes))
}

/// Returns the size, in bytes, of the C type with this name, if it can be an element type.
pub(super) fn size_of(c_type: &str) -> Option<u64> {
    let c_type = match c_type {
        "half" => "__half",
        "nv_bfloat16" => "__nv_bfloat16",
        "uint8_t" => "uchar",
        "int8_t" => "char",
        "int32_t" => "int",
        "uint32_t" | "unsigned" => "uint",
        "int64_t" => "long",
        "size_t" | "uint64_t" => "unsigned long",
        "half2" | "__half2" | "nv_bfloat162" | "__nv_bfloat162" => return Some(4),
        "longlong2" | "ulonglong2" => return Some(16),
        other => other,
    };
    element(c_type).map(|(dtype, lanes)| bytes(dtype) * lanes)
}

/// Returns the size, in bytes, of the element type with this name.
pub(super) fn bytes(dtype: &str) -> u64 {
    match dtype.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>() {
        Ok(bits) => bits / 8,
        Err(_) => 1,
    }
}
