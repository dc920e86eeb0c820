//! The matrix-vector product on the CPU, with bounds for the error of a correct kernel. The main
//! function is [`product`].

use rayon::prelude::*;

use super::Csr;

/// The precision of a kernel's arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatPrecision {
    Single,
    Double,
}

impl FloatPrecision {
    /// Returns the unit roundoff, i.e. half the distance from 1 to the next larger number.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::Single => f64::from(f32::EPSILON) / 2.0,
            Self::Double => f64::EPSILON / 2.0,
        }
    }

    /// Returns the smallest normal number. Smaller results may be flushed to zero.
    fn smallest(self) -> f64 {
        match self {
            Self::Single => f64::from(f32::MIN_POSITIVE),
            Self::Double => f64::MIN_POSITIVE,
        }
    }
}

/// A product, with the maximum error of each element.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// A·x, accumulated in binary64.
    pub y: Vec<f64>,
    /// For each row, the maximum distance from `y` of the result of any summation order. It is 0
    /// for an empty row.
    pub bounds: Vec<f64>,
}

/// Computes A·x. `x` must have as many elements as the matrix has columns.
///
/// The bound of a row with n entries is n·(u + u₆₄)·Σ|aᵢxᵢ| + u·|y| + n·λ. Here u is the unit
/// roundoff of the kernel's arithmetic, and u₆₄ is that of binary64. λ is the smallest normal
/// number, for products that are flushed to zero. The first term holds for any n and any order,
/// with or without fused operations: Jeannerod and Rump, "Improved error bounds for inner products
/// in floating-point arithmetic" (SIAM J. Matrix Anal. Appl. 34, 2013). The second term is for the
/// rounding of the expected result.
///
/// # Panics
/// If `x` has a different length.
pub fn product(matrix: &Csr, x: &[f64], precision: FloatPrecision) -> Product {
    assert_eq!(x.len(), matrix.cols() as usize, "x has one element for each column");
    let (unit, own) = (precision.unit_roundoff(), FloatPrecision::Double.unit_roundoff());
    let (y, bounds) = (0..matrix.rows() as usize)
        .into_par_iter()
        .with_min_len(1 << 10)
        .map(|row| {
            let (columns, values) = matrix.row(row);
            let (mut sum, mut magnitude) = (0.0f64, 0.0f64);
            for (&column, &value) in columns.iter().zip(values) {
                let term = value * x[column as usize];
                sum += term;
                magnitude += term.abs();
            }
            let terms = columns.len() as f64;
            let bound =
                terms * (unit + own) * magnitude + unit * sum.abs() + terms * precision.smallest();
            (sum, bound)
        })
        .unzip();
    Product { y, bounds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MatrixGenerator;

    #[test]
    fn the_product_is_that_of_the_definition() {
        let csr = Csr::new(3, vec![0, 2, 2, 3], vec![0, 2, 1], vec![1.5, -2.0, 4.0]).unwrap();
        let product = product(&csr, &[2.0, 3.0, 5.0], FloatPrecision::Single);
        assert_eq!(product.y, [-7.0, 0.0, 12.0]);
        assert_eq!(product.bounds[1], 0.0);
    }

    /// Sums in binary32, forwards and backwards, stay within the bound of their row. A sum without
    /// one term does not.
    #[test]
    fn right_sums_are_within_their_bounds_and_wrong_ones_are_not() {
        let text = "random:rows=300,cols=5000,nnz_per_row=40,long_rows=3,seed=5";
        let csr = text.parse::<MatrixGenerator>().unwrap().generate().unwrap();
        let x: Vec<f64> = (0..5000u32).map(|i| f64::from(i % 61) / 64.0 - 0.4).collect();
        let product = product(&csr, &x, FloatPrecision::Single);
        let mut left_out = 0;
        for row in 0..300 {
            let (columns, values) = csr.row(row);
            let terms: Vec<f32> = columns
                .iter()
                .zip(values)
                .map(|(&column, &value)| value as f32 * x[column as usize] as f32)
                .collect();
            let forwards: f32 = terms.iter().sum();
            let backwards: f32 = terms.iter().rev().sum();
            for sum in [forwards, backwards] {
                let error = (f64::from(sum) - product.y[row]).abs();
                assert!(error <= product.bounds[row], "row {row}: {error}");
            }
            let short: f32 = terms.iter().skip(1).sum();
            left_out += u32::from((f64::from(short) - product.y[row]).abs() > product.bounds[row]);
        }
        assert!(left_out > 250, "only {left_out} rows notice that a term is missing");
    }
}
