//! Tensor maps, through which the Tensor Memory Accelerator (compute capability 9.0 and later)
//! accesses a tensor. The main type is [`TensorMap`].

use serde::{Deserialize, Serialize};

/// Maximum number of dimensions.
const MAX_RANK: usize = 5;

/// Largest extent of a tensor.
const MAX_EXTENT: u64 = 1 << 32;

/// Largest extent of a block, elements.
const MAX_BOX: u32 = 256;

/// Alignment of rows and strides, bytes.
const UNIT: u64 = 16;

/// Parameters of a `CUtensorMap`, except the address. Dimensions are in C order, and the last one
/// is contiguous; the driver takes the reverse order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMap {
    pub element: MapElement,
    pub shape: Vec<u64>,
    /// Distance between neighbours in each dimension, elements.
    pub strides: Vec<u64>,
    /// Extents of the block that one instruction copies.
    pub block: Vec<u32>,
    /// Pattern of a block's rows in the banks of shared memory.
    pub swizzle: MapSwizzle,
    /// Whether elements outside the tensor are read as NaN instead of zero.
    pub nan: bool,
}

/// Element types of a tensor map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapElement {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
    Bf16,
    /// `float` values, which are rounded to TF32 during the copy.
    Tf32,
}

impl MapElement {
    /// Returns the size of an element, bytes.
    pub fn bytes(self) -> u64 {
        match self {
            MapElement::U8 => 1,
            MapElement::U16 | MapElement::F16 | MapElement::Bf16 => 2,
            MapElement::U32 | MapElement::I32 | MapElement::F32 | MapElement::Tf32 => 4,
            MapElement::U64 | MapElement::I64 | MapElement::F64 => 8,
        }
    }
}

/// Patterns of a block's rows in shared memory, by their length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapSwizzle {
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl MapSwizzle {
    /// Returns the maximum length of a row of a block, bytes.
    fn row(self) -> Option<u64> {
        match self {
            MapSwizzle::None => None,
            MapSwizzle::Bytes32 => Some(32),
            MapSwizzle::Bytes64 => Some(64),
            MapSwizzle::Bytes128 => Some(128),
        }
    }
}

impl TensorMap {
    /// Checks the driver's conditions for a map (CUDA Driver API, `cuTensorMapEncodeTiled`).
    ///
    /// # Errors
    /// Returns a description of the violated condition.
    pub fn check(&self) -> Result<(), String> {
        let rank = self.shape.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(format!("it has {rank} dimensions; 1 to {MAX_RANK} are possible"));
        }
        if self.strides.len() != rank || self.block.len() != rank {
            return Err("its shape, strides and block differ in their number of dimensions".into());
        }
        if self.shape.iter().any(|extent| !(1..=MAX_EXTENT).contains(extent)) {
            return Err(format!("its shape is {:?}; extents are 1 to 2^32", self.shape));
        }
        if self.block.iter().any(|extent| !(1..=MAX_BOX).contains(extent)) {
            return Err(format!("its block is {:?}; extents are 1 to {MAX_BOX}", self.block));
        }
        let bytes = self.element.bytes();
        let row = u64::from(self.block[rank - 1]) * bytes;
        if !row.is_multiple_of(UNIT) || self.swizzle.row().is_some_and(|longest| row > longest) {
            return Err(format!(
                "a row of its block has {row} bytes; it must be a multiple of {UNIT}, and no longer \
                 than its pattern in shared memory"
            ));
        }
        let steps = self.strides[..rank - 1].iter().map(|stride| stride.checked_mul(bytes));
        let fits = |step: u64| step.is_multiple_of(UNIT) && step < 1 << 40;
        if self.strides[rank - 1] != 1 || !steps.into_iter().all(|step| step.is_some_and(fits)) {
            return Err(format!(
                "its strides are {:?} elements; the last must be 1, and the others multiples of \
                 {UNIT} bytes below 2^40",
                self.strides
            ));
        }
        Ok(())
    }

    /// Returns the distance from the start of the first element to the end of the last, bytes;
    /// `None` if the number overflows.
    pub fn span_bytes(&self) -> Option<u64> {
        let far =
            self.shape.iter().zip(&self.strides).try_fold(0u64, |far, (extent, stride)| {
                far.checked_add(extent.checked_sub(1)?.checked_mul(*stride)?)
            })?;
        far.checked_add(1)?.checked_mul(self.element.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            element: MapElement::F16,
            shape: vec![100, 72],
            strides: vec![72, 1],
            block: vec![32, 64],
            swizzle: MapSwizzle::Bytes128,
            nan: false,
        }
    }

    #[test]
    fn a_map_reaches_as_far_as_its_last_element() {
        assert_eq!(map().check(), Ok(()));
        assert_eq!(map().span_bytes(), Some(100 * 72 * 2));
        let padded = TensorMap { strides: vec![80, 1], ..map() };
        assert_eq!(padded.span_bytes(), Some((99 * 80 + 72) * 2));
        let endless = TensorMap { strides: vec![u64::MAX, 1], ..map() };
        assert_eq!(endless.span_bytes(), None);
        assert_eq!(TensorMap { shape: vec![0, 72], ..map() }.span_bytes(), None);
    }

    #[test]
    fn what_no_driver_takes_is_said() {
        let five = |n: usize| TensorMap {
            shape: vec![16; n],
            strides: vec![1; n],
            block: vec![16; n],
            ..map()
        };
        for (wrong, says) in [
            (five(0), "0 dimensions"),
            (five(6), "6 dimensions"),
            (TensorMap { strides: vec![1], ..map() }, "differ"),
            (TensorMap { block: vec![1; 3], ..map() }, "differ"),
            (TensorMap { shape: vec![0, 72], ..map() }, "shape"),
            (TensorMap { shape: vec![1 << 33, 72], ..map() }, "shape"),
            (TensorMap { block: vec![0, 64], ..map() }, "its block"),
            (TensorMap { block: vec![257, 64], ..map() }, "its block"),
            (TensorMap { block: vec![32, 4], ..map() }, "a row"),
            (TensorMap { swizzle: MapSwizzle::Bytes64, ..map() }, "a row"),
            (TensorMap { strides: vec![70, 1], ..map() }, "strides"),
            (TensorMap { strides: vec![72, 2], ..map() }, "strides"),
            (TensorMap { strides: vec![1 << 39, 1], ..map() }, "strides"),
            (TensorMap { strides: vec![u64::MAX - 7, 1], ..map() }, "strides"),
        ] {
            let told = wrong.check().expect_err(says);
            assert!(told.contains(says), "{told}");
        }
        // Without a swizzle pattern, rows may be longer.
        let plain = TensorMap { swizzle: MapSwizzle::None, block: vec![32, 256], ..map() };
        assert_eq!(plain.check(), Ok(()));
    }
}
