//! Reader of `.safetensors` files: eight bytes with the length of a JSON header, the header, and
//! the elements. The format is described at <https://huggingface.co/docs/safetensors>.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Dtype, shape, shape_of_parts};

use crate::{FileElements, TensorFileError};

/// Maximum length of a header, bytes. It suffices for about 80,000 tensors.
const MAX_HEADER: u64 = 8 << 20;

/// Entry of the header that is not a tensor.
const METADATA: &str = "__metadata__";

/// Maximum number of names that an error lists.
const LISTED: usize = 8;

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

pub(crate) fn read(
    file: Arc<File>,
    tensor: Option<&str>,
    max_bytes: u64,
) -> Result<FileElements, TensorFileError> {
    let length = file.metadata()?.len();
    let mut prefix = [0; 8];
    file.read_exact_at(&mut prefix, 0)?;
    let header = u64::from_le_bytes(prefix);
    let there = length.saturating_sub(8);
    if header > there || header > MAX_HEADER {
        return Err(TensorFileError::data(format!(
            "the .safetensors file announces a header of {header} bytes; {there} bytes follow, \
             and at most {MAX_HEADER} are read"
        )));
    }
    let mut text = vec![0; header as usize];
    file.read_exact_at(&mut text, 8)?;
    let mut entries: BTreeMap<String, Box<RawValue>> =
        serde_json::from_slice(&text).map_err(|error| {
            TensorFileError::data(format!(
                "the .safetensors header is invalid: \
                                                        {error}"
            ))
        })?;
    entries.remove(METADATA);
    let (name, entry) = chosen(&entries, tensor)?;
    let wrong =
        |message: String| TensorFileError::data(format!("tensor {}: {message}", short(name)));
    let Entry { dtype, shape: mut extents, data_offsets: (begin, end) } =
        serde_json::from_str(entry.get()).map_err(|error| wrong(error.to_string()))?;
    let dtype = dtype_named(&dtype).ok_or_else(|| wrong("its dtype is unknown".to_owned()))?;
    if dtype.is_packed() {
        // The format counts numbers. The tensor counts bytes, each with two numbers.
        let last = extents.last_mut().filter(|last| **last % 2 == 0);
        *last.ok_or_else(|| {
            wrong(format!("its last dimension must be even: one byte holds two numbers of {dtype}"))
        })? /= 2;
    }
    let bytes = shape::bytes(&extents, dtype).map_err(|error| TensorFileError::Invalid {
        code: FailureCode::InvalidShape,
        message: error.to_string(),
    })?;
    if bytes > max_bytes {
        return Err(TensorFileError::too_large(bytes, max_bytes));
    }
    let room = there - header;
    if begin > end || end > room || end - begin != bytes {
        return Err(TensorFileError::Invalid {
            code: FailureCode::SizeMismatch,
            message: format!(
                "tensor {}: shape {} of {dtype} is {bytes} bytes, its data_offsets are [{begin}, {end}], \
                 and {room} bytes follow the header",
                short(name),
                shape::shown(&extents)
            ),
        });
    }
    let offset = 8 + header + begin;
    Ok(FileElements { file, offset, bytes, dtype, shape: extents, sample_rate: None })
}

/// Returns the tensor of that name, or the only tensor.
fn chosen<'a>(
    entries: &'a BTreeMap<String, Box<RawValue>>,
    tensor: Option<&'a str>,
) -> Result<(&'a str, &'a RawValue), TensorFileError> {
    let listed = || {
        let names: Vec<String> = entries.keys().take(LISTED).map(|name| short(name)).collect();
        let more = if entries.len() > LISTED { ", …" } else { "" };
        format!("{}{more}", names.join(", "))
    };
    match (tensor, entries.len()) {
        (Some(name), _) => match entries.get(name) {
            Some(entry) => Ok((name, entry)),
            None => Err(TensorFileError::data(format!(
                "the .safetensors file has no tensor {}; it has {} ({})",
                short(name),
                entries.len(),
                listed()
            ))),
        },
        (None, 1) => match entries.iter().next() {
            Some((name, entry)) => Ok((name, entry)),
            None => Err(TensorFileError::data("the .safetensors file has no tensor")),
        },
        (None, 0) => Err(TensorFileError::data("the .safetensors file has no tensor")),
        (None, count) => Err(TensorFileError::data(format!(
            "the .safetensors file has {count} tensors ({}); name one in `tensor`",
            listed()
        ))),
    }
}

fn short(name: &str) -> String {
    format!("{:?}", name.chars().take(64).collect::<String>())
}

const NAMES: [(Dtype, &str); 18] = [
    (Dtype::Float64, "F64"),
    (Dtype::Float32, "F32"),
    (Dtype::Float16, "F16"),
    (Dtype::Bfloat16, "BF16"),
    (Dtype::Float8E4m3, "F8_E4M3"),
    (Dtype::Float8E5m2, "F8_E5M2"),
    (Dtype::Int8, "I8"),
    (Dtype::Int16, "I16"),
    (Dtype::Int32, "I32"),
    (Dtype::Int64, "I64"),
    (Dtype::Uint8, "U8"),
    (Dtype::Uint16, "U16"),
    (Dtype::Uint32, "U32"),
    (Dtype::Uint64, "U64"),
    (Dtype::Bool, "BOOL"),
    (Dtype::Complex64, "C64"),
    (Dtype::Float8E8m0, "F8_E8M0"),
    (Dtype::Float4E2m1x2, "F4"),
];

fn dtype_named(name: &str) -> Option<Dtype> {
    NAMES.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype)
}

/// Returns the head of a file with one tensor, called `tensor`.
///
/// # Errors
/// Returns an error if the format does not support the element type.
pub(crate) fn head(dtype: Dtype, extents: &[u64], bytes: u64) -> Result<Vec<u8>, TensorFileError> {
    let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == dtype) else {
        return Err(TensorFileError::data(format!(
            ".safetensors does not support the element type {dtype}; request `npy` or `raw`"
        )));
    };
    let extents = if dtype.is_packed() { shape_of_parts(dtype, extents) } else { extents.to_vec() };
    let entry = serde_json::json!({
        "tensor": {"dtype": name, "shape": extents, "data_offsets": [0, bytes]}
    });
    let mut text = entry.to_string().into_bytes();
    // The elements begin at a multiple of eight bytes.
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut head = (text.len() as u64).to_le_bytes().to_vec();
    head.extend(text);
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_format_has_no_name_for_is_refused_by_name() {
        for dtype in Dtype::ALL {
            let head = head(dtype, &[2, 4], 8 * dtype.size() as u64);
            match NAMES.iter().find(|(known, _)| *known == dtype) {
                Some((_, name)) => {
                    let text = String::from_utf8_lossy(&head.unwrap()[8..]).into_owned();
                    assert!(text.contains(&format!("\"{name}\"")), "{text}");
                    assert_eq!(dtype_named(name), Some(dtype));
                }
                None => {
                    let message = head.unwrap_err().to_string();
                    assert!(message.contains(dtype.name()) && message.contains("raw"), "{message}");
                }
            }
        }
    }
}
