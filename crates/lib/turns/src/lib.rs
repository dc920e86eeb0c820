//! Fair turns: permits that several owners request are divided among the owners, not among the
//! requests.
//!
//! [`OwnerAccounts`] determines the order: the owner with the fewest permits is next, and among
//! equals the owner that has held permits for the shortest time. [`Pool`] contains the permits and
//! the waiting requests. It has no concept of keys or jobs; an [`Owner`] is a number.
//!
//! A pool keeps no permit free while a request waits, so a single owner can get all permits. One of
//! two rules ([`PoolBounds`]) protects an owner that arrives later: it gets an extra permit
//! immediately (`extra`), or some permits are always kept for it (`shared`).

#![forbid(unsafe_code)]

mod accounts;
mod owner;
mod pool;
#[cfg(test)]
mod pool_tests;

pub use accounts::{OwnerAccounts, OwnerRank};
pub use owner::Owner;
pub use pool::{Pool, PoolBounds, PoolFull, PoolPermit};
