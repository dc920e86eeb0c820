//! The identities of owners. The main type is [`Owner`].

use serde::{Deserialize, Serialize};

/// The opaque identity of the owner of a piece of work. Equal identities belong to the same owner.
/// The default is the server itself.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Owner([u8; 16]);

impl Owner {
    /// The server itself, for work on behalf of all owners.
    pub const SERVER: Self = Self([0; 16]);

    /// Returns the owner with this name. Every process computes the same identity for a name
    /// (BLAKE3, 128 bits).
    pub fn named(name: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("warpgauge owner");
        hasher.update(name.as_bytes());
        let mut identity = [0; 16];
        hasher.finalize_xof().fill(&mut identity);
        Self(identity)
    }

    /// Returns the bytes of the identity.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
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
        assert_ne!(Owner::named("a").as_bytes(), Owner::SERVER.as_bytes());
    }
}
