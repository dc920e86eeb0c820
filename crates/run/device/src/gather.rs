//! Copies tensors whose elements are not contiguous into C order on the device.

use bytemuck::{Pod, Zeroable};

use super::support::Support;
use super::{DeviceError, Params, Stream};

/// Maximum number of axes after contiguous axes are merged: `MOST_AXES` in support.cu.
const MOST_AXES: usize = 8;

/// Mirrors `Layout` in support.cu.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Layout {
    extents: [u64; MOST_AXES],
    strides: [u64; MOST_AXES],
}

/// Returns the layout of a tensor's elements. Its axes are merged if one axis continues at the end
/// of the next.
///
/// Returns `None` if there are too many axes. No extent may be 0.
fn merged(shape: &[u64], strides: &[u64]) -> Option<(Layout, u32)> {
    let mut axes: Vec<(u64, u64)> = Vec::new();
    for (&extent, &stride) in shape.iter().zip(strides).filter(|(extent, _)| **extent != 1) {
        match axes.last_mut() {
            Some((outer, step)) if Some(*step) == stride.checked_mul(extent) => {
                (*outer, *step) = (outer.checked_mul(extent)?, stride);
            }
            _ => axes.push((extent, stride)),
        }
    }
    let mut layout = Layout::zeroed();
    if axes.len() > MOST_AXES {
        return None;
    }
    for (axis, (extent, stride)) in axes.iter().enumerate() {
        (layout.extents[axis], layout.strides[axis]) = (*extent, *stride);
    }
    Some((layout, axes.len() as u32))
}

impl Support {
    /// Queues copying a tensor's elements, of `size` bytes each, contiguously and in C order to an
    /// address. Both addresses must be multiples of the size, and the tensor must be within memory
    /// of this context. Returns `false` without queueing anything if the tensor has too many axes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn gather(
        &self,
        (from, to): (u64, u64),
        (shape, strides): (&[u64], &[u64]),
        size: u32,
        stream: &Stream,
    ) -> Result<bool, DeviceError> {
        if shape.contains(&0) {
            return Ok(true);
        }
        let Some((layout, axes)) = merged(shape, strides) else { return Ok(false) };
        let count: u64 = shape.iter().product();
        let mut arguments = Params::new();
        arguments.push_address(from).push_address(to).push(&count.to_ne_bytes());
        arguments.push(&size.to_ne_bytes()).push(&axes.to_ne_bytes());
        arguments.push(bytemuck::bytes_of(&layout));
        self.launch("wg_gather", self.spread(count), arguments, stream)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_lie_side_by_side_are_one() {
        let of = |shape: &[u64], strides: &[u64]| {
            let (layout, axes) = merged(shape, strides).unwrap();
            let axes = axes as usize;
            (layout.extents[..axes].to_vec(), layout.strides[..axes].to_vec())
        };
        assert_eq!(of(&[2, 3, 4], &[12, 4, 1]), (vec![24], vec![1]));
        assert_eq!(of(&[3, 2], &[1, 3]), (vec![3, 2], vec![1, 3]));
        assert_eq!(of(&[2, 8, 4, 4], &[128, 1, 32, 8]), (vec![2, 8, 16], vec![128, 1, 8]));
        assert_eq!(of(&[2, 1, 5], &[0, 7, 0]), (vec![10], vec![0]));
        assert_eq!(of(&[1, 1], &[5, 5]), (vec![], vec![]));
        let many: Vec<u64> = (0..9).map(|axis| 1 << (2 * axis)).collect();
        assert!(merged(&[2; 9], &many).is_none());
    }
}
