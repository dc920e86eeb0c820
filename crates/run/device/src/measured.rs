//! Compares two tensors on the device, and measures all differences that a report contains.

use bytemuck::{Pod, Zeroable};

use super::support::{NearTolerance, Support, THREADS, dtype_number};
use super::{Context, DeviceBuffer, DeviceError, Params, Stream};
use warpgauge_tensor::Dtype;

/// Mirrors `Part` in support.cu.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Part {
    pairs: u64,
    matched: u64,
    near: u64,
    non_finite: u64,
    non_finite_matched: u64,
    first: u64,
    max_abs: f64,
    max_rel: f64,
    sum: f64,
    squares: f64,
}

/// Statistics of the differences between two tensors, over all elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredErrors {
    /// Number of pairs of finite elements.
    pub pairs: u64,
    /// Number of elements that match.
    pub matched: u64,
    /// Number of elements that do not match, but are within the wider tolerance.
    pub near: u64,
    /// Number of elements that do not match and are not finite.
    pub non_finite: u64,
    /// Number of elements that match and are not finite.
    pub non_finite_matched: u64,
    /// Index of the first element that does not match.
    pub first: Option<u64>,
    /// Largest |actual − expected| over pairs of finite elements. The following fields are over
    /// these pairs, too.
    pub max_abs: f64,
    /// Largest |actual − expected| / |expected| over pairs with expected ≠ 0.
    pub max_rel: f64,
    /// Sum of |actual − expected|.
    pub sum: f64,
    /// Sum of (actual − expected)².
    pub sum_of_squares: f64,
}

impl Support {
    /// Compares `count` elements at two addresses of this context. `further` is a wider absolute
    /// tolerance that a few elements may use. Waits for the stream.
    ///
    /// # Errors
    /// Fails if [`Support::compares`] does not support the type; otherwise returns the driver's
    /// error.
    pub fn measure(
        &self,
        context: &Context,
        (actual, expected): (u64, u64),
        (dtype, count): (Dtype, u64),
        (near, further): (NearTolerance, f64),
        stream: &Stream,
    ) -> Result<MeasuredErrors, DeviceError> {
        let shape = self.spread(count);
        let bytes = size_of::<Part>() * shape.grid[0] as usize;
        let parts = DeviceBuffer::new(context, bytes as u64, "the worker's own use")?;
        let mut arguments = Params::new();
        arguments.push_address(actual).push_address(expected).push(&count.to_ne_bytes());
        for tolerance in [near.atol, near.rtol, further] {
            arguments.push(&tolerance.to_ne_bytes());
        }
        arguments.push(&dtype_number(dtype).to_ne_bytes());
        arguments.push(&u32::from(near.allow_non_finite).to_ne_bytes());
        arguments.push_address(parts.address());
        self.launch("wg_measure", shape, arguments, stream)?;
        let mut found = vec![Part::zeroed(); bytes / size_of::<Part>()];
        parts.copy_to_host(0, bytemuck::cast_slice_mut(&mut found), stream)?;
        Ok(joined(&found))
    }
}

/// The number of threads per block must equal `MEASURE_THREADS` in support.cu.
const _: () = assert!(THREADS == 256);

fn joined(parts: &[Part]) -> MeasuredErrors {
    let count = |of: fn(&Part) -> u64| parts.iter().map(of).sum::<u64>();
    let largest = |of: fn(&Part) -> f64| parts.iter().map(of).fold(0.0, f64::max);
    let sum = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>();
    MeasuredErrors {
        pairs: count(|part| part.pairs),
        matched: count(|part| part.matched),
        near: count(|part| part.near),
        non_finite: count(|part| part.non_finite),
        non_finite_matched: count(|part| part.non_finite_matched),
        first: parts.iter().map(|part| part.first).min().filter(|first| *first != u64::MAX),
        max_abs: largest(|part| part.max_abs),
        max_rel: largest(|part| part.max_rel),
        sum: sum(|part| part.sum),
        sum_of_squares: sum(|part| part.squares),
    }
}
