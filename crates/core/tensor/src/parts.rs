//! Elements of several numbers, as tensors of their numbers: a complex tensor is compared, filled and
//! moved as a real one whose last dimension holds the real and the imaginary part.

use crate::Dtype;

impl Dtype {
    /// Returns the type of the numbers in an element: that of the parts of a complex type, and the type
    /// itself otherwise.
    pub const fn part(self) -> Self {
        match self {
            Dtype::Complex64 => Dtype::Float32,
            Dtype::Complex128 => Dtype::Float64,
            other => other,
        }
    }

    /// Returns the count of numbers in an element: 2 for complex types, and 1 otherwise.
    pub const fn parts(self) -> u64 {
        if self.is_complex() { 2 } else { 1 }
    }

    pub const fn is_complex(self) -> bool {
        matches!(self, Dtype::Complex64 | Dtype::Complex128)
    }
}

/// Returns the shape of the numbers of a tensor: that of a complex one has another dimension of 2.
pub fn shape_of_parts(dtype: Dtype, shape: &[u64]) -> Vec<u64> {
    let last = dtype.is_complex().then_some(dtype.parts());
    shape.iter().copied().chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_tensor_have_its_bytes() {
        for dtype in Dtype::ALL {
            let numbers = shape_of_parts(dtype, &[3, 5]);
            let count: u64 = numbers.iter().product();
            assert_eq!(count, 15 * dtype.parts(), "{dtype}");
            assert_eq!(count as usize * dtype.part().size(), 15 * dtype.size(), "{dtype}");
            assert_eq!(dtype.part().part(), dtype.part(), "{dtype}");
        }
        assert_eq!(shape_of_parts(Dtype::Complex64, &[]), [2]);
    }
}
