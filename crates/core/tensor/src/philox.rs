//! Philox4x64-10, a random stream with access to any position. The main type is [`Philox`].
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The
//! word stream equals `numpy.random.Philox(key=[seed, fnv1a64(name)], counter=0)`, which increments
//! its counter before it generates, so block `i` uses counter `i + 1`.

const MULTIPLIER_0: u64 = 0xD2E7_470E_E14C_6C93;
const MULTIPLIER_1: u64 = 0xCA5A_8263_9512_1157;
const WEYL_0: u64 = 0x9E37_79B9_7F4A_7C15;
const WEYL_1: u64 = 0xBB67_AE85_84CA_A73B;
const ROUNDS: usize = 10;

/// Number of words that one counter value yields.
pub const WORDS_PER_BLOCK: u64 = 4;

/// Computes the 64-bit FNV-1a hash, which turns an argument's name into half of its key.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// One random stream, from which any word can be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Philox {
    key: [u64; 2],
}

impl Philox {
    /// Creates the stream of a tensor argument.
    pub fn for_argument(seed: u64, name: &str) -> Self {
        Self { key: [seed, fnv1a64(name.as_bytes())] }
    }

    /// Returns the key, in the form of `numpy.random.Philox(key=…)`.
    pub fn key(&self) -> [u64; 2] {
        self.key
    }

    /// Returns the words `4 * index` to `4 * index + 3` of the stream.
    #[inline]
    pub fn block(&self, index: u64) -> [u64; 4] {
        let (first, carry) = index.overflowing_add(1);
        let mut state = [first, u64::from(carry), 0, 0];
        let mut key = self.key;
        for round in 0..ROUNDS {
            if round > 0 {
                key = [key[0].wrapping_add(WEYL_0), key[1].wrapping_add(WEYL_1)];
            }
            let (high_0, low_0) = wide_multiply(MULTIPLIER_0, state[0]);
            let (high_1, low_1) = wide_multiply(MULTIPLIER_1, state[2]);
            state = [high_1 ^ state[1] ^ key[0], low_1, high_0 ^ state[3] ^ key[1], low_0];
        }
        state
    }
}

#[inline]
fn wide_multiply(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_matches_the_published_vectors() {
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn first_blocks_equal_numpys() {
        // numpy.random.Philox(key=[42, 0xaf63dc4c8601ec8c], counter=0).random_raw(8)
        let stream = Philox::for_argument(42, "a");
        assert_eq!(stream.key(), [42, 0xaf63_dc4c_8601_ec8c]);
        assert_eq!([stream.block(0), stream.block(1)].concat(), PHILOX_GOLDEN);
    }

    const PHILOX_GOLDEN: [u64; 8] = [
        0x1ef26054195b428a,
        0x41182818f28cbe9a,
        0xeac45beb5d026a8f,
        0xc70d99962b442afe,
        0xbc102a584bc0a5f5,
        0x667bc7d519bf498b,
        0x4f075cdcd5f75762,
        0x197f067f83cb6fee,
    ];
}
