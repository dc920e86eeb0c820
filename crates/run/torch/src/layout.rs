//! A tensor in another process's memory: its layout, and copying its elements in C order.

use std::io;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::memory::SubmissionMemory;
use warpgauge_tensor::{Dtype, shape};

/// Maximum number of dimensions, equal to PyTorch's.
const MAX_RANK: usize = 64;

/// Number of bytes that are read or written at once.
const CHUNK: usize = 4 << 20;

/// A tensor as a runner describes it. The description is not trusted: see [`TensorAt::read`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorAt {
    /// Address of the first element, or its offset in `block` if there is one.
    pub address: u64,
    /// The block of device memory that holds the tensor, as the base64 of an inter-process handle.
    /// `None` means that the tensor is in the process's host memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// Distance in elements from one index to the next, by dimension.
    pub strides: Vec<u64>,
}

/// Why a tensor cannot be read or written.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// The description is not valid for a tensor.
    #[error("its description is not valid for a tensor: {0}")]
    Invalid(String),
    /// The tensor takes more memory than the limit.
    #[error("takes {bytes} bytes; at most {most} bytes can be judged")]
    TooLarge {
        /// Bytes from the first element to the end of the last.
        bytes: u64,
        most: u64,
    },
    /// The memory cannot be accessed.
    #[error("its memory cannot be accessed: {0}")]
    Memory(#[from] io::Error),
}

impl TensorAt {
    /// Returns the size of the tensor's elements without gaps, bytes.
    ///
    /// # Errors
    /// Fails if the shape is invalid.
    pub fn bytes(&self) -> Result<u64, LayoutError> {
        if self.shape.len() > MAX_RANK || self.shape.len() != self.strides.len() {
            let what = format!("{} extents, {} strides", self.shape.len(), self.strides.len());
            return Err(LayoutError::Invalid(what));
        }
        if self.shape.contains(&0) {
            return Ok(0);
        }
        let bytes = shape::bytes(&self.shape, self.dtype);
        bytes.map_err(|error| LayoutError::Invalid(error.to_string()))
    }

    /// Returns the number of bytes from the first element to the end of the last. Neither this
    /// number nor the size of all elements may exceed `most`.
    ///
    /// # Errors
    /// Fails if the tensor is larger, or its description is invalid.
    pub fn span(&self, most: u64) -> Result<u64, LayoutError> {
        let bytes = self.bytes()?;
        if bytes == 0 {
            return Ok(0);
        }
        let steps = self.shape.iter().zip(&self.strides);
        let last = steps.map(|(extent, stride)| (extent - 1).checked_mul(*stride));
        let last = last.into_iter().try_fold(0u64, |sum, part| sum.checked_add(part?));
        let span = last
            .and_then(|last| last.checked_add(1)?.checked_mul(self.dtype.size() as u64))
            .ok_or_else(|| LayoutError::Invalid("its strides overflow".to_owned()))?;
        let bytes = span.max(bytes);
        if bytes > most {
            return Err(LayoutError::TooLarge { bytes, most });
        }
        Ok(span)
    }

    /// Returns whether the elements are contiguous, in C order.
    pub fn is_contiguous(&self) -> bool {
        let mut step: u64 = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&extent, &stride)| {
            let fits = extent == 1 || stride == step;
            step = step.wrapping_mul(extent);
            fits
        })
    }

    /// Returns the strides if a copy should keep them: the elements are not in C order, but leave
    /// no gap in memory.
    pub fn kept_strides(&self) -> Option<Vec<u64>> {
        let leaves_no_gap = !self.is_contiguous() && !self.shape.contains(&0) && self.is_dense();
        leaves_no_gap.then(|| self.strides.clone())
    }

    /// Returns whether every element of memory between the first and the last belongs to the
    /// tensor.
    fn is_dense(&self) -> bool {
        let steps = self.shape.iter().copied().zip(self.strides.iter().copied());
        let mut steps: Vec<(u64, u64)> = steps.filter(|(extent, _)| *extent > 1).collect();
        steps.sort_by_key(|(_, stride)| *stride);
        let covered = steps.into_iter().try_fold(1u64, |covered, (extent, stride)| {
            let more = (extent - 1).checked_mul(stride).filter(|_| stride <= covered)?;
            covered.checked_add(more)
        });
        covered.is_some()
    }

    /// Returns the tensor's memory as a tensor of one dimension, if a copy keeps its strides.
    /// Otherwise returns the tensor itself.
    ///
    /// # Errors
    /// Fails if the tensor takes more than `most` bytes, or its description is invalid.
    pub fn stored(&self, most: u64) -> Result<Self, LayoutError> {
        if self.kept_strides().is_none() {
            return Ok(self.clone());
        }
        let elements = self.span(most)? / self.dtype.size() as u64;
        Ok(Self { shape: vec![elements], strides: vec![1], ..self.clone() })
    }

    /// Returns the elements in C order. `held` is the memory that begins with the first element.
    ///
    /// # Errors
    /// Fails if `held` is too short, or the description is invalid.
    pub fn in_order(&self, held: &[u8]) -> Result<Vec<u8>, LayoutError> {
        let span = self.span(u64::MAX)?;
        match held.get(..span as usize) {
            None => Err(LayoutError::Invalid(format!(
                "it has {span} bytes, of which {} are available",
                held.len()
            ))),
            Some(held) if self.is_contiguous() => Ok(held.to_vec()),
            Some(held) => self.gathered(held),
        }
    }

    /// Reads the elements in C order, if they lie within `most` bytes.
    ///
    /// # Errors
    /// Returns a [`LayoutError`].
    pub fn read(&self, memory: &dyn SubmissionMemory, most: u64) -> Result<Vec<u8>, LayoutError> {
        let span = self.span(most)?;
        // This fits in memory, since `span` is at most `most`, a limit on memory.
        let mut held = Vec::new();
        for start in (0..span as usize).step_by(CHUNK) {
            let length = CHUNK.min(span as usize - start);
            // Allocation grows with the data that is read, not with the size that the runner
            // claims.
            held.resize(start + length, 0);
            memory.read(self.address.wrapping_add(start as u64), &mut held[start..])?;
        }
        Ok(if self.is_contiguous() { held } else { self.gathered(&held)? })
    }

    fn gathered(&self, held: &[u8]) -> Result<Vec<u8>, LayoutError> {
        let size = self.dtype.size();
        let mut out = Vec::with_capacity(self.bytes()? as usize);
        self.each(|at| out.extend_from_slice(&held[at * size..][..size]))?;
        Ok(out)
    }

    /// Calls `visit` with the index of each element in memory, in C order.
    fn each(&self, mut visit: impl FnMut(usize)) -> Result<(), LayoutError> {
        let elements = self.bytes()? / self.dtype.size() as u64;
        let mut index = vec![0u64; self.shape.len()];
        let mut at = 0u64;
        for _ in 0..elements {
            visit(at as usize);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= index[axis] * self.strides[axis];
                index[axis] = 0;
            }
        }
        Ok(())
    }

    /// Writes the elements, which are given in C order, to a tensor with any strides within `most`
    /// bytes.
    ///
    /// # Errors
    /// Returns a [`LayoutError`].
    pub fn overwrite(
        &self,
        memory: &dyn SubmissionMemory,
        elements: &[u8],
        most: u64,
    ) -> Result<(), LayoutError> {
        if self.bytes()? != elements.len() as u64 {
            let what = format!("{} bytes are written to {}", elements.len(), self.bytes()?);
            return Err(LayoutError::Invalid(what));
        }
        let span = self.span(most)?;
        if span == 0 {
            return Ok(());
        }
        if self.is_contiguous() {
            return Ok(memory.write(self.address, elements)?);
        }
        // Memory between the elements must keep its content.
        let mut held = vec![0; span as usize];
        memory.read(self.address, &mut held)?;
        let size = self.dtype.size();
        let mut parts = elements.chunks_exact(size);
        self.each(|at| {
            if let Some(part) = parts.next() {
                held[at * size..][..size].copy_from_slice(part);
            }
        })?;
        Ok(memory.write(self.address, &held)?)
    }

    /// Writes the elements in parts. `fill` receives the byte offset of each part.
    ///
    /// # Errors
    /// Returns a [`LayoutError`]. The tensor must be contiguous, as a newly allocated tensor is.
    pub fn write(
        &self,
        memory: &dyn SubmissionMemory,
        mut fill: impl FnMut(u64, &mut [u8]),
    ) -> Result<(), LayoutError> {
        if !self.is_contiguous() {
            return Err(LayoutError::Invalid("the allocated memory is not contiguous".to_owned()));
        }
        let bytes = self.bytes()?;
        let mut part = vec![0; CHUNK.min(bytes as usize)];
        for start in (0..bytes).step_by(CHUNK) {
            let length = (CHUNK as u64).min(bytes - start) as usize;
            fill(start, &mut part[..length]);
            memory.write(self.address.wrapping_add(start), &part[..length])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory from address 100 on.
    struct Held(std::cell::RefCell<Vec<u8>>);

    impl SubmissionMemory for Held {
        fn read(&self, address: u64, out: &mut [u8]) -> io::Result<()> {
            let held = self.0.borrow();
            let from = address.checked_sub(100).ok_or(io::ErrorKind::InvalidInput)? as usize;
            let part = held.get(from..from + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(part);
            Ok(())
        }

        fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
            let from = (address - 100) as usize;
            self.0.borrow_mut()[from..from + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
    }

    fn held() -> Held {
        Held(std::cell::RefCell::new((0..24).collect()))
    }

    fn tensor(shape: &[u64], strides: &[u64]) -> TensorAt {
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        TensorAt { address: 100, block: None, dtype: Dtype::Int8, shape, strides }
    }

    #[test]
    fn elements_are_read_in_c_order_however_they_lie() {
        let read =
            |shape: &[u64], strides: &[u64]| tensor(shape, strides).read(&held(), 1024).unwrap();
        assert_eq!(read(&[2, 3], &[3, 1]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(read(&[3, 2], &[1, 3]), [0, 3, 1, 4, 2, 5], "transposed");
        assert_eq!(read(&[2, 2], &[0, 1]), [0, 1, 0, 1], "expanded");
        assert_eq!(read(&[2, 2], &[12, 6]), [0, 6, 12, 18], "sliced");
        assert_eq!(read(&[], &[]), [0], "a scalar");
        assert_eq!(read(&[4, 0], &[1, 1]), [0u8; 0]);
    }

    #[test]
    fn what_is_no_tensor_or_not_there_is_an_error() {
        let refused = |tensor: TensorAt, most| tensor.read(&held(), most).unwrap_err().to_string();
        assert!(refused(tensor(&[2], &[1, 1]), 64).contains("1 extents, 2 strides"));
        assert!(refused(tensor(&[2, 2], &[1 << 40, 1]), 64).contains("at most 64"));
        assert!(refused(tensor(&[3, 2], &[u64::MAX, 1]), 64).contains("overflow"));
        assert!(refused(tensor(&[1 << 40, 1 << 40], &[1, 1]), 64).contains("2^63 bytes or more"));
        // An element that is repeated by a stride of 0 counts each time, as in a comparison.
        assert!(refused(tensor(&[1 << 20], &[0]), 64).contains("1048576 bytes"));
        assert!(refused(tensor(&[25], &[1]), 64).contains("cannot be accessed"));
        let elsewhere = TensorAt { address: 7, ..tensor(&[1], &[1]) };
        assert!(refused(elsewhere, 64).contains("cannot be accessed"));
    }

    #[test]
    fn strides_are_kept_where_elements_leave_no_gap() {
        let kept = |shape: &[u64], strides: &[u64]| tensor(shape, strides).kept_strides().is_some();
        assert!(kept(&[3, 2], &[1, 3]), "transposed");
        assert!(kept(&[2, 3, 2, 2], &[12, 1, 6, 3]), "channels last");
        assert!(kept(&[2, 3], &[1, 0]) && kept(&[3, 2], &[1, 1]), "expanded, overlapping");
        assert!(!kept(&[2, 3], &[3, 1]), "in C order");
        assert!(!kept(&[2, 2], &[12, 6]) && !kept(&[3], &[2]), "sliced");
        assert!(!kept(&[2, 0], &[1, 2]) && !kept(&[2, 2], &[u64::MAX, 1]), "none");
        let stored = tensor(&[3, 2], &[1, 3]).stored(64).unwrap();
        assert_eq!((stored.shape, stored.strides), (vec![6], vec![1]));
        assert!(tensor(&[3, 2], &[1, 3]).stored(5).is_err());
        let sliced = tensor(&[2, 2], &[12, 6]);
        assert_eq!(sliced.stored(64).unwrap(), sliced);
        let channels_last = tensor(&[3, 2], &[1, 3]);
        assert_eq!(channels_last.in_order(&[0, 1, 2, 3, 4, 5, 6]).unwrap(), [0, 3, 1, 4, 2, 5]);
        assert!(channels_last.in_order(&[0; 5]).is_err());
    }

    #[test]
    fn elements_are_written_however_they_lie() {
        let memory = held();
        let write = |shape: &[u64], strides: &[u64], elements: &[u8]| {
            tensor(shape, strides).overwrite(&memory, elements, 64)
        };
        write(&[2, 2], &[1, 3], &[90, 91, 92, 93]).unwrap();
        assert_eq!(memory.0.borrow()[..6], [90, 92, 2, 91, 93, 5], "the rest is left alone");
        write(&[3], &[1], &[7, 8, 9]).unwrap();
        assert_eq!(memory.0.borrow()[..4], [7, 8, 9, 91]);
        write(&[0], &[1], &[]).unwrap();
        assert!(write(&[3], &[1], &[7]).is_err() && write(&[2], &[100], &[1, 2]).is_err());
    }

    #[test]
    fn what_is_written_is_there() {
        let memory = held();
        tensor(&[2, 2], &[2, 1]).write(&memory, |at, part| part.fill(9 + at as u8)).unwrap();
        assert_eq!(memory.0.borrow()[..5], [9, 9, 9, 9, 4]);
        assert!(tensor(&[2, 2], &[1, 2]).write(&memory, |_, _| ()).is_err());
    }
}
