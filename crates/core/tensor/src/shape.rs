//! Sizes of tensors, computed without overflow. The main function is [`bytes()`].

use thiserror::Error;

use super::Dtype;

/// Maximum number of dimensions of a tensor, the limit of numpy before version 2.
pub const MAX_RANK: usize = 32;

/// Reasons why a shape cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// A dimension is zero.
    #[error(
        "dimension {dimension} of shape {} is zero; every extent must be at least 1", shown(.shape)
    )]
    Zero {
        /// Index of the dimension, from 0.
        dimension: usize,
        shape: Vec<u64>,
    },
    /// The size in bytes does not fit in 63 bits.
    #[error("shape {} of {dtype} needs 2^63 bytes or more", shown(.shape))]
    Overflow { shape: Vec<u64>, dtype: Dtype },
    /// The tensor has too many dimensions.
    #[error("a tensor has {rank} dimensions; at most {MAX_RANK} are allowed")]
    Rank { rank: usize },
}

/// Formats a shape for messages, e.g. `[16, 32]`; long shapes are truncated.
pub fn shown(shape: &[u64]) -> String {
    let mut text: Vec<String> = shape.iter().take(MAX_RANK).map(u64::to_string).collect();
    if shape.len() > MAX_RANK {
        text.push("…".to_owned());
    }
    format!("[{}]", text.join(", "))
}

/// Returns the number of elements, which is 1 for a shape without dimensions. Overflow and zero
/// extents are errors.
pub fn numel(shape: &[u64], dtype: Dtype) -> Result<u64, ShapeError> {
    bytes(shape, dtype).map(|bytes| bytes / dtype.size() as u64)
}

/// Returns the size of a contiguous tensor in bytes. It is at most `i64::MAX`, which every file and
/// buffer API can express.
pub fn bytes(shape: &[u64], dtype: Dtype) -> Result<u64, ShapeError> {
    if shape.len() > MAX_RANK {
        return Err(ShapeError::Rank { rank: shape.len() });
    }
    if let Some(dimension) = shape.iter().position(|&extent| extent == 0) {
        return Err(ShapeError::Zero { dimension, shape: shape.to_vec() });
    }
    shape
        .iter()
        .try_fold(dtype.size() as u64, |bytes, &extent| bytes.checked_mul(extent))
        .filter(|&bytes| i64::try_from(bytes).is_ok())
        .ok_or_else(|| ShapeError::Overflow { shape: shape.to_vec(), dtype })
}

/// Returns the index in each dimension of the element at `offset` in C order.
pub fn unravel(mut offset: u64, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (position, &extent) in index.iter_mut().zip(shape).rev() {
        let extent = extent.max(1);
        *position = offset % extent;
        offset /= extent;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(bytes(&[3, 5], Dtype::Float32), Ok(60));
        assert_eq!(numel(&[3, 5], Dtype::Float64), Ok(15));
        assert_eq!(bytes(&[], Dtype::Float16), Ok(2));
    }

    #[test]
    fn zero_overflow_and_rank_are_refused() {
        assert!(matches!(bytes(&[4, 0], Dtype::Int8), Err(ShapeError::Zero { dimension: 1, .. })));
        assert!(matches!(
            bytes(&[1 << 40, 1 << 23], Dtype::Int8),
            Err(ShapeError::Overflow { .. })
        ));
        assert!(matches!(
            bytes(&[u64::MAX, u64::MAX], Dtype::Int8),
            Err(ShapeError::Overflow { .. })
        ));
        assert_eq!(bytes(&[1; 40], Dtype::Int8), Err(ShapeError::Rank { rank: 40 }));
    }

    #[test]
    fn unravels_in_c_order() {
        assert_eq!(unravel(17, &[4, 5]), [3, 2]);
        assert_eq!(unravel(0, &[]), [0u64; 0]);
    }
}
