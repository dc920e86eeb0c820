//! Records about a range of memory: four numbers for each word.

use std::io;
use std::sync::atomic::AtomicU64;

use super::mapping::Mapping;

/// Four numbers for each word of a memory range, initially zero. Untouched parts use no memory.
pub(crate) struct Cells {
    cells: Mapping,
}

impl Cells {
    /// Creates the records of `words` words, all zero.
    pub(crate) fn new(words: usize) -> io::Result<Self> {
        Ok(Self { cells: Mapping::new(words * size_of::<[AtomicU64; 4]>())? })
    }

    /// Returns the numbers of a word, or `None` beyond the last word.
    pub(crate) fn at(&self, word: usize) -> Option<&[AtomicU64; 4]> {
        let offset = word.checked_mul(size_of::<[AtomicU64; 4]>())?;
        if offset >= self.cells.len() {
            return None;
        }
        // SAFETY: the four numbers are within the mapping, whose length is a multiple of theirs and
        // which lives as long as `self`; a page begins at a multiple of their alignment, its bytes
        // are initialised, and nothing but these atomics accesses them.
        Some(unsafe { &*((self.cells.base() as usize + offset) as *const [AtomicU64; 4]) })
    }
}
