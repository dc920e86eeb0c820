//! Elements that consist of several numbers, viewed as tensors of their numbers.
//!
//! A complex tensor is compared, filled and moved as a real tensor whose last dimension holds the
//! real and the imaginary part. A packed tensor has two 4-bit numbers in a byte. They are unpacked
//! to a byte each, one piece of the tensor at a time, wherever numbers are read.

use std::borrow::Cow;

use crate::Dtype;

impl Dtype {
    /// Returns the type of the parts of a complex type, and the type itself otherwise.
    pub const fn part(self) -> Self {
        match self {
            Dtype::Complex64 => Dtype::Float32,
            Dtype::Complex128 => Dtype::Float64,
            other => other,
        }
    }

    /// Returns the number of numbers in an element: 2 for complex and packed types, and 1
    /// otherwise.
    pub const fn parts(self) -> u64 {
        if self.is_complex() || self.is_packed() { 2 } else { 1 }
    }

    pub const fn is_complex(self) -> bool {
        matches!(self, Dtype::Complex64 | Dtype::Complex128)
    }

    /// Returns whether a byte holds two numbers.
    pub const fn is_packed(self) -> bool {
        matches!(self, Dtype::Float4E2m1x2 | Dtype::Int4x2 | Dtype::Uint4x2)
    }
}

/// Returns the shape of the numbers of a tensor. A complex tensor gets an additional last dimension
/// of 2. The last dimension of a packed tensor is twice as long.
pub fn shape_of_parts(dtype: Dtype, shape: &[u64]) -> Vec<u64> {
    let mut numbers = shape.to_vec();
    match numbers.last_mut().filter(|_| dtype.is_packed()) {
        Some(last) => *last = last.saturating_mul(dtype.parts()),
        None if dtype.parts() > 1 => numbers.push(dtype.parts()),
        None => (),
    }
    numbers
}

/// Returns the type and shape of a tensor with the same bytes, in which complex elements are pairs
/// of real ones.
pub fn real_view(dtype: Dtype, shape: &[u64]) -> (Dtype, Vec<u64>) {
    match dtype.is_complex() {
        true => (dtype.part(), shape_of_parts(dtype, shape)),
        false => (dtype, shape.to_vec()),
    }
}

/// Returns the numbers of a packed tensor, one per byte, in the form that its element type reads:
/// integers are sign-extended, and the sign of a float is in the highest bit. Other tensors are
/// returned unchanged.
pub fn unpacked(dtype: Dtype, bytes: &[u8]) -> Cow<'_, [u8]> {
    let number: fn(u8) -> u8 = match dtype {
        Dtype::Float4E2m1x2 => |code| code & 7 | (code & 8) << 4,
        Dtype::Int4x2 => |code| ((code << 4) as i8 >> 4) as u8,
        Dtype::Uint4x2 => |code| code,
        _ => return Cow::Borrowed(bytes),
    };
    Cow::Owned(bytes.iter().flat_map(|byte| [byte & 15, byte >> 4].map(number)).collect())
}

/// Packs pairs of numbers in the form that [`unpacked`] returns.
pub(crate) fn pack(dtype: Dtype, numbers: &[u8], out: &mut [u8]) {
    let code = |number: u8| match dtype {
        Dtype::Float4E2m1x2 => number & 7 | number >> 4 & 8,
        _ => number & 15,
    };
    for (byte, pair) in out.iter_mut().zip(numbers.as_chunks::<2>().0) {
        *byte = code(pair[0]) | code(pair[1]) << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Element, for_dtype};

    #[test]
    fn the_numbers_of_a_tensor_have_its_bytes() {
        for dtype in Dtype::ALL {
            let numbers = shape_of_parts(dtype, &[3, 5]);
            let count: u64 = numbers.iter().product();
            assert_eq!(count, 15 * dtype.parts(), "{dtype}");
            let bytes = count as usize * dtype.part().size();
            let halves = if dtype.is_packed() { 2 } else { 1 };
            assert_eq!(bytes, halves * 15 * dtype.size(), "{dtype}");
            assert_eq!(dtype.part().part(), dtype.part(), "{dtype}");
        }
        assert_eq!(shape_of_parts(Dtype::Complex64, &[]), [2]);
        assert_eq!(shape_of_parts(Dtype::Int4x2, &[3, 5]), [3, 10]);
        assert_eq!(shape_of_parts(Dtype::Int4x2, &[]), [2]);
    }
    #[test]
    fn every_packed_code_has_its_value_and_survives() {
        fn value<T: Element>(number: &[u8]) -> f64 {
            T::read(number).to_f64()
        }
        let floats = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        for dtype in [Dtype::Float4E2m1x2, Dtype::Int4x2, Dtype::Uint4x2] {
            for byte in 0..=255u8 {
                let numbers = unpacked(dtype, &[byte]).into_owned();
                let codes = [byte & 15, byte >> 4];
                for (number, code) in numbers.iter().zip(codes) {
                    let expected = match dtype {
                        Dtype::Int4x2 if code > 7 => f64::from(code) - 16.0,
                        Dtype::Float4E2m1x2 if code > 7 => -floats[usize::from(code) - 8],
                        Dtype::Float4E2m1x2 => floats[usize::from(code)],
                        _ => f64::from(code),
                    };
                    let value = for_dtype!(dtype, value(std::slice::from_ref(number)));
                    assert_eq!(value.to_bits(), expected.to_bits(), "{dtype} {code}");
                }
                let mut again = [0];
                pack(dtype, &numbers, &mut again);
                assert_eq!(again, [byte], "{dtype}");
            }
        }
        assert_eq!(*unpacked(Dtype::Uint8, &[0x21]), [0x21]);
    }
}
