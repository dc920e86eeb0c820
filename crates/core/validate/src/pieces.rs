//! Parallel work on the pieces of buffers.

use rayon::prelude::*;

/// Number of elements in a piece. The number is fixed, so that partial results are the same on every machine.
pub(crate) const CHUNK: usize = 1 << 15;

/// Returns the result of `work` for each piece of `bytes`, in order. `size` is the size of an
/// element, bytes.
pub(crate) fn of_one<R: Send>(
    bytes: &[u8],
    size: usize,
    work: &(dyn Fn(&[u8]) -> R + Sync),
) -> Vec<R> {
    in_order(bytes.len().div_ceil(CHUNK * size), &|index| work(piece(bytes, index, size)))
}

/// Returns the result of `work` for each pair of pieces of two buffers, in order, up to the end of the shorter
/// buffer. `work` receives the index of the first element of each pair.
pub(crate) fn of_two<R: Send>(
    [a, b]: [&[u8]; 2],
    size: usize,
    work: &(dyn Fn(u64, [&[u8]; 2]) -> R + Sync),
) -> Vec<R> {
    in_order(a.len().min(b.len()).div_ceil(CHUNK * size), &|index| {
        work((index * CHUNK) as u64, [a, b].map(|bytes| piece(bytes, index, size)))
    })
}

/// `work` is called through a pointer, so that the parallel iterator is compiled once per type of result.
/// Otherwise it would be compiled for each type of element and each use.
fn in_order<R: Send>(count: usize, work: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    (0..count).into_par_iter().map(work).collect()
}

fn piece(bytes: &[u8], index: usize, size: usize) -> &[u8] {
    let start = index * CHUNK * size;
    &bytes[start..bytes.len().min(start + CHUNK * size)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_all_there_and_in_order() {
        for elements in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let bytes: Vec<u8> = (0..2 * elements).map(|at| (at % 251) as u8).collect();
            assert_eq!(of_one(&bytes, 2, &<[u8]>::to_vec).concat(), bytes);
            let (other, expected) = (&bytes[..elements], &bytes[..elements.min(bytes.len())]);
            let pairs =
                of_two([&bytes, other], 1, &|first, [a, b]| (first, a.to_vec(), b.to_vec()));
            let firsts: Vec<u64> = pairs.iter().map(|(first, ..)| *first).collect();
            assert!(firsts.iter().enumerate().all(|(at, first)| *first == (at * CHUNK) as u64));
            let right: Vec<u8> = pairs.iter().flat_map(|(_, _, b)| b.clone()).collect();
            assert_eq!(right, expected);
        }
    }
}
