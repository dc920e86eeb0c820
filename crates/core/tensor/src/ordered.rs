//! Permutations and rising sequences of which each element can be computed separately
//! (docs/seeded-data.md). The main types are [`Permutation`] and [`Rising`].

use crate::philox::Philox;

/// Largest number of values that a permutation or a rising sequence covers.
pub const MAX_SPAN: u64 = 1 << 63;

/// Number of rounds of the Feistel network.
const ROUNDS: u64 = 6;

/// Returns the random word of a node. It is the SplitMix64 hash (Steele, Lea, Flood, OOPSLA 2014)
/// of the node's number and both halves of the stream's key.
#[inline]
pub(crate) fn node_word(key: [u64; 2], node: u64) -> u64 {
    let mut x = key[0].wrapping_add(node.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ key[1];
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A permutation of 0 … span − 1: a Feistel network over the next power of four, applied until the result is in range
/// (Black, Rogaway, CT-RSA 2002).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permutation {
    key: [u64; 2],
    span: u64,
    /// Bits of half a block.
    half: u32,
}

impl Permutation {
    /// Creates the permutation that belongs to a stream. `span` is 1 to [`MAX_SPAN`].
    pub(crate) fn new(stream: &Philox, span: u64) -> Self {
        let bits = u64::BITS - (span - 1).leading_zeros();
        Self { key: stream.key(), span, half: bits.max(2).div_ceil(2) }
    }

    /// Returns the image of `index`, which must be below the span.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let mut x = index;
        loop {
            let (mut left, mut right) = (x >> self.half, x & mask);
            for round in 1..=ROUNDS {
                let word = node_word(self.key, round << 32 | right) >> 32;
                (left, right) = (right, left ^ (word & mask));
            }
            x = left << self.half | right;
            if x < self.span {
                return x;
            }
        }
    }
}

/// A non-decreasing sequence of `points + 1` integers from 0 to `top`. The value at the middle
/// index of a range is drawn around the mean of the values at its ends. Its spread equals that of
/// sorted independent uniform numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rising {
    key: [u64; 2],
    points: u64,
    top: u64,
}

/// A range of indices, with the values at its ends.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u64,
    last: u64,
    low: u64,
    high: u64,
}

impl Rising {
    /// Creates the sequence that belongs to a stream. `points` is at least 1, and `top` at most [`MAX_SPAN`].
    pub(crate) fn new(stream: &Philox, points: u64, top: u64) -> Self {
        Self { key: stream.key(), points, top }
    }

    fn whole(&self) -> Range {
        Range { first: 0, last: self.points, low: 0, high: self.top }
    }

    /// Splits a range of two or more steps at its middle index.
    #[inline]
    fn split(&self, range: Range) -> (Range, Range) {
        let steps = range.last - range.first;
        let middle = range.first + steps / 2;
        let height = range.high - range.low;
        // The middle one of `steps` sorted uniform numbers deviates by some `height / sqrt(steps)`.
        let width = height >> (steps.ilog2() / 2);
        let offset = (u128::from(node_word(self.key, middle)) * u128::from(width + 1)) >> 64;
        let value = range.low + (height - width) / 2 + offset as u64;
        (Range { last: middle, high: value, ..range }, Range { first: middle, low: value, ..range })
    }

    /// Replaces the content of `out` with the values at the indices `first` … `first + count - 1`.
    /// Indices beyond the end of the sequence are omitted.
    /// - 1` that exist.
    pub(crate) fn values(&self, first: u64, count: usize, out: &mut Vec<u64>) {
        out.clear();
        let end = first.saturating_add(count as u64);
        self.collect(self.whole(), (first, end), out);
        out.extend((first <= self.points && self.points < end).then_some(self.top));
    }

    /// Appends the values at the wanted indices of a range, without the last index of the range.
    fn collect(&self, range: Range, wanted: (u64, u64), out: &mut Vec<u64>) {
        if range.last <= wanted.0 || range.first >= wanted.1 {
            return;
        }
        if range.last - range.first == 1 {
            return out.push(range.low);
        }
        let (below, above) = self.split(range);
        self.collect(below, wanted, out);
        self.collect(above, wanted, out);
    }

    /// Returns the index of the last value that is at most `value`, which must be below the top.
    #[inline]
    pub(crate) fn segment_of(&self, value: u64) -> u64 {
        let mut range = self.whole();
        while range.last - range.first > 1 {
            let (below, above) = self.split(range);
            range = if value < above.low { below } else { above };
        }
        range.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_each_value_once_and_differs_by_seed_and_name() {
        let of = |seed, name, span| {
            let permutation = Permutation::new(&Philox::for_argument(seed, name), span);
            (0..span).map(|index| permutation.at(index)).collect::<Vec<_>>()
        };
        for span in [1, 2, 3, 4, 5, 16, 17, 1000, 65_536, 65_537] {
            let mut values = of(7, "p", span);
            values.sort_unstable();
            assert!(values.iter().copied().eq(0..span), "{span}");
        }
        assert_ne!(of(1, "p", 1000), of(2, "p", 1000));
        assert_ne!(of(1, "p", 1000), of(1, "q", 1000));
        let fixed =
            of(1, "p", 65_536).iter().zip(0..).filter(|(value, index)| **value == *index).count();
        assert!(fixed < 10, "{fixed} of 65,536 are where they were");
    }

    #[test]
    fn all_orders_of_four_values_occur_about_as_often() {
        let mut seen = std::collections::BTreeMap::<Vec<u64>, u32>::new();
        for seed in 0..24_000 {
            let permutation = Permutation::new(&Philox::for_argument(seed, "p"), 4);
            *seen.entry((0..4).map(|index| permutation.at(index)).collect()).or_default() += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|&count| (700..1400).contains(&count)), "{seen:?}");
    }

    #[test]
    fn rising_values_never_fall_and_can_be_computed_alone() {
        for (points, top) in
            [(1, 0), (1, 9), (2, 1), (10, 0), (1000, 30), (1000, 1 << 63), (7, 70_000)]
        {
            let rising = Rising::new(&Philox::for_argument(3, "r"), points, top);
            let mut all = Vec::new();
            rising.values(0, points as usize + 1, &mut all);
            assert_eq!((all[0], all[points as usize], all.len()), (0, top, points as usize + 1));
            assert!(all.is_sorted(), "{points} {top}");
            let mut part = Vec::new();
            for first in 0..=points.min(20) {
                rising.values(first, 1, &mut part);
                assert_eq!(part, all[first as usize..=first as usize], "{points} {top}");
            }
        }
    }

    #[test]
    fn gaps_are_those_of_sorted_uniform_numbers() {
        let points = 4096;
        let mut empty = 0;
        for seed in 0..50 {
            let rising = Rising::new(&Philox::for_argument(seed, "r"), points, points);
            let mut all = Vec::new();
            rising.values(0, points as usize + 1, &mut all);
            empty += all.windows(2).filter(|pair| pair[0] == pair[1]).count();
            let gap = all.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            assert!((4..40).contains(&gap), "{gap}");
        }
        // Independent ones would leave 1/e of the gaps empty.
        let share = empty as f64 / 50.0 / points as f64;
        assert!((0.3..0.5).contains(&share), "{share}");
    }

    #[test]
    fn a_segment_is_the_one_that_has_the_value() {
        let rising = Rising::new(&Philox::for_argument(5, "r"), 300, 1000);
        let mut all = Vec::new();
        rising.values(0, 301, &mut all);
        for value in 0..1000 {
            let segment = rising.segment_of(value) as usize;
            assert!(all[segment] <= value && value < all[segment + 1], "{value}");
        }
    }
}
