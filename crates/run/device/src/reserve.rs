//! A reserve of freed device memory for the next job. An allocation takes more time than most
//! kernels.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Maximum size of all kept memory, bytes.
const MAX_BYTES: usize = 1 << 30;

/// Maximum number of kept pieces.
const MAX_PIECES: usize = 64;

/// A range of device memory: address and size in bytes.
pub(super) type Piece = (u64, usize);

/// Zeroed device memory that is not in use. Only pieces of the exact size are reused. A kernel that
/// accesses memory outside its buffer thus cannot rely on what it finds there, as with newly
/// allocated memory.
#[derive(Default)]
pub(super) struct Reserve {
    pieces: RefCell<VecDeque<Piece>>,
}

impl Reserve {
    /// Removes and returns the address of a piece of exactly `bytes` bytes, if the reserve has one.
    pub(super) fn take(&self, bytes: usize) -> Option<u64> {
        let mut pieces = self.pieces.borrow_mut();
        let index = pieces.iter().position(|&(_, size)| size == bytes)?;
        pieces.remove(index).map(|(address, _)| address)
    }

    /// Adds a zeroed piece. Returns the pieces that must be freed in exchange: the oldest pieces,
    /// or the piece itself if it is too large.
    pub(super) fn put(&self, piece: Piece) -> Vec<Piece> {
        if piece.1 > MAX_BYTES {
            return vec![piece];
        }
        let mut pieces = self.pieces.borrow_mut();
        pieces.push_back(piece);
        let mut held: usize = pieces.iter().map(|&(_, size)| size).sum();
        let mut gone = Vec::new();
        while pieces.len() > MAX_PIECES || held > MAX_BYTES {
            let Some(oldest) = pieces.pop_front() else { break };
            held -= oldest.1;
            gone.push(oldest);
        }
        gone
    }

    /// Removes and returns all pieces, so that the caller can free them.
    pub(super) fn drain(&self) -> Vec<Piece> {
        self.pieces.borrow_mut().drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_sizes_are_reused() {
        let reserve = Reserve::default();
        assert!(reserve.put((0x1000, 64)).is_empty());
        assert_eq!(reserve.take(63), None);
        assert_eq!(reserve.take(64), Some(0x1000));
        assert_eq!(reserve.take(64), None);
    }

    #[test]
    fn the_oldest_leave_when_it_is_full() {
        let reserve = Reserve::default();
        assert_eq!(reserve.put((1, MAX_BYTES + 1)), [(1, MAX_BYTES + 1)]);
        for address in 0..MAX_PIECES as u64 {
            assert!(reserve.put((address, 16)).is_empty());
        }
        assert_eq!(reserve.put((99, 16)), [(0, 16)]);
        assert_eq!(reserve.put((100, MAX_BYTES)).len(), MAX_PIECES);
        assert_eq!(reserve.drain(), [(100, MAX_BYTES)]);
    }
}
