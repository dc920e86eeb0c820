//! Proof that a kernel wrote every element of an output.
//!
//! The kernel runs twice on equal inputs, and its output is filled with a different byte before each
//! run. An element that holds nothing but the first byte after the first run, and nothing but the
//! second after the second, was not written: a kernel that writes would have to write, each time,
//! what happened to be there.

use rayon::prelude::*;

/// Elements per parallel task. Fixed, though the result is the same for any size.
const CHUNK: usize = 1 << 16;

/// What two runs tell about an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenProof {
    /// Elements looked at.
    pub elements: u64,
    /// Elements that kept both fillings. An element that is missing from a buffer counts too.
    pub unwritten: u64,
    /// Offset of the first of them, in elements.
    pub first: Option<u64>,
}

impl WrittenProof {
    /// Whether every element was written.
    pub fn is_complete(&self) -> bool {
        self.unwritten == 0
    }
}

/// Counts elements of `element_size` bytes that neither run wrote. `out_a` was filled with
/// `poison_a` before the run that left it, `out_b` with `poison_b`; the two bytes must differ, or
/// an element that legitimately holds them counts as unwritten.
///
/// Both runs must have had the same inputs. A kernel whose results vary from run to run (atomics)
/// can be wronged only where an element is both fillings by chance: for one-byte elements once in
/// 65536, for wider ones practically never.
pub fn unwritten(
    out_a: &[u8],
    poison_a: u8,
    out_b: &[u8],
    poison_b: u8,
    element_size: usize,
) -> WrittenProof {
    let size = element_size.max(1);
    let look = match size {
        1 => look::<1>,
        2 => look::<2>,
        4 => look::<4>,
        8 => look::<8>,
        _ => look_at_any,
    };
    let poison = [poison_a, poison_b];
    let (counted, first) = out_a
        .par_chunks(CHUNK * size)
        .zip(out_b.par_chunks(CHUNK * size))
        .enumerate()
        .map(|(index, (a, b))| {
            let (count, first) = look(a, b, poison, size);
            (count, first.map(|offset| (index * CHUNK) as u64 + offset))
        })
        .reduce(
            || (0, None),
            |left, right| (left.0 + right.0, [left.1, right.1].into_iter().flatten().min()),
        );
    let present = (out_a.len().min(out_b.len()) / size) as u64;
    let elements = out_a.len().max(out_b.len()).div_ceil(size) as u64;
    let missing = elements - present;
    let first = first.or((missing > 0).then_some(present));
    WrittenProof { elements, unwritten: counted + missing, first }
}

/// Count and first offset in one chunk. A constant size makes each element one machine word.
fn look<const SIZE: usize>(a: &[u8], b: &[u8], poison: [u8; 2], _: usize) -> (u64, Option<u64>) {
    let (a, _) = a.as_chunks::<SIZE>();
    let (b, _) = b.as_chunks::<SIZE>();
    let kept =
        |(a, b): (&[u8; SIZE], &[u8; SIZE])| (*a == [poison[0]; SIZE]) & (*b == [poison[1]; SIZE]);
    let count = a.iter().zip(b).map(|pair| u64::from(kept(pair))).sum();
    let first = if count == 0 { None } else { a.iter().zip(b).position(kept) };
    (count, first.map(|offset| offset as u64))
}

fn look_at_any(a: &[u8], b: &[u8], poison: [u8; 2], size: usize) -> (u64, Option<u64>) {
    let pairs = || a.chunks_exact(size).zip(b.chunks_exact(size));
    let kept = |(a, b): (&[u8], &[u8])| {
        a.iter().all(|byte| *byte == poison[0]) && b.iter().all(|byte| *byte == poison[1])
    };
    let count = pairs().filter(|pair| kept(*pair)).count() as u64;
    (count, pairs().position(kept).map(|offset| offset as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Dtype;
    use crate::tensor::element::{Element, for_dtype};
    use crate::validate::{POISON_BYTE, SECOND_POISON_BYTE};

    fn proof(a: &[u8], b: &[u8], size: usize) -> WrittenProof {
        unwritten(a, POISON_BYTE, b, SECOND_POISON_BYTE, size)
    }

    #[test]
    fn finds_what_neither_run_wrote() {
        for size in [1, 2, 3, 4, 8, 16] {
            let elements = 200_003;
            let mut a = vec![1; elements * size];
            let mut b = a.clone();
            assert_eq!(
                proof(&a, &b, size),
                WrittenProof { elements: 200_003, unwritten: 0, first: None }
            );
            for element in [70_000, 70_001, 199_999, 200_002] {
                a[element * size..][..size].fill(POISON_BYTE);
                b[element * size..][..size].fill(SECOND_POISON_BYTE);
            }
            // Written in one of the runs: legitimate content that looks like poison.
            a[5 * size..][..size].fill(POISON_BYTE);
            b[6 * size..][..size].fill(SECOND_POISON_BYTE);
            // Written in part.
            if size > 1 {
                a[8 * size..][..size - 1].fill(POISON_BYTE);
                b[8 * size..][..size - 1].fill(SECOND_POISON_BYTE);
            }
            let found = proof(&a, &b, size);
            assert_eq!((found.unwritten, found.first), (4, Some(70_000)), "{size}");
            assert!(!found.is_complete());
        }
    }

    #[test]
    fn the_result_is_the_same_on_any_number_of_threads() {
        let mut a = vec![7; 1 << 20];
        let mut b = a.clone();
        for at in (3..a.len()).step_by(4097) {
            (a[at], b[at]) = (POISON_BYTE, SECOND_POISON_BYTE);
        }
        let all: Vec<_> = [1, 2, 5, 16]
            .into_iter()
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| proof(&a, &b, 1))
            })
            .collect();
        assert_eq!(all[0].first, Some(3));
        assert!(all.iter().all(|proof| *proof == all[0]), "{all:?}");
    }

    #[test]
    fn missing_elements_are_unwritten() {
        let found = proof(&[0; 40], &[0; 32], 4);
        assert_eq!(found, WrittenProof { elements: 10, unwritten: 2, first: Some(8) });
        assert_eq!(proof(&[], &[], 4), WrittenProof { elements: 0, unwritten: 0, first: None });
    }

    /// NaN, beyond every tolerance of ordinary values, no bool, or the end of an integer's range.
    #[test]
    fn no_kernel_writes_the_second_poison_by_accident() {
        fn value<T: Element>() -> f64 {
            T::read(&[SECOND_POISON_BYTE; 8]).to_f64()
        }
        assert_ne!(POISON_BYTE, SECOND_POISON_BYTE);
        for dtype in Dtype::ALL {
            let value = for_dtype!(dtype, value());
            match dtype {
                Dtype::Float16 | Dtype::Float8E4m3 | Dtype::Float8E5m2 => assert!(value.is_nan()),
                _ if dtype.is_float() => assert!(value > 1e38, "{dtype} {value}"),
                Dtype::Bool => assert!(value > 1.0),
                _ => assert!(value >= 127.0),
            }
        }
    }
}
