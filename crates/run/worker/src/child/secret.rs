//! Random choices that a submission cannot foresee.

use std::hash::{BuildHasher, RandomState};

/// A random stream with a key from the operating system.
///
/// A kernel must not know which launches are audited, which inputs they get, and which byte guard
/// bands hold. This needs no cryptographic generator: a kernel sees these numbers only through its
/// inputs.
pub(super) struct Secret {
    state: RandomState,
    next: u64,
}

impl Default for Secret {
    fn default() -> Self {
        Self::new()
    }
}

impl Secret {
    /// Returns a random stream with a new key.
    pub(super) fn new() -> Self {
        Self { state: RandomState::new(), next: 0 }
    }

    /// Returns the next 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.next += 1;
        // SipHash of a counter under a random key.
        self.state.hash_one(self.next)
    }

    /// Returns a number below `bound`, which is not 0. The bias is below 2⁻³² for bounds below 2³².
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Returns `count` different numbers below `bound`, ascending; all of them if `count` exceeds
    /// `bound`.
    pub(super) fn choose(&mut self, count: usize, bound: usize) -> Vec<usize> {
        // Floyd's algorithm (Bentley and Floyd, "A sample of brilliance", CACM 30(9), 1987).
        let mut chosen = std::collections::BTreeSet::new();
        for last in bound.saturating_sub(count)..bound {
            let drawn = self.below(last + 1);
            if !chosen.insert(drawn) {
                chosen.insert(last);
            }
        }
        chosen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_differ_from_stream_to_stream_and_keep_their_bounds() {
        let (mut a, mut b) = (Secret::new(), Secret::new());
        assert_ne!(a.bits(), b.bits());
        for count in 0..12 {
            let chosen = a.choose(count, 10);
            assert_eq!(chosen.len(), count.min(10));
            assert!(chosen.is_sorted() && chosen.iter().all(|&index| index < 10));
        }
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[a.below(10)] += 1;
            seen[a.choose(1, 10)[0]] += 1;
        }
        assert!(seen.iter().all(|&count| (1700..2300).contains(&count)), "{seen:?}");
    }
}
