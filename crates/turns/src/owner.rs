//! Who wants something.

use serde::{Deserialize, Serialize};

/// Whose a piece of work is: a number that stands for a name. Two names with one number share their turns,
/// and nothing else. The default is the server itself.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Owner(u64);

impl Owner {
    /// The server itself, for what it does for all.
    pub const SERVER: Self = Self(0);

    /// The owner of this name, in every process the same (FNV-1a, 64 bits).
    pub fn named(name: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_owners_and_none_is_the_server() {
        assert_eq!(Owner::named("a"), Owner::named("a"));
        assert_ne!(Owner::named("a"), Owner::named("b"));
        assert_ne!(Owner::named(""), Owner::SERVER);
        assert_eq!(Owner::named("a"), Owner(0xaf63_dc4c_8601_ec8c));
    }
}
