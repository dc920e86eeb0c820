//! Fair turns: permits that several owners request are divided between the owners, not between
//! requests.
//!
//! [`OwnerAccounts`] determines the order: the owner with the fewest permits is next, then the
//! owner that held permits for the least time. [`Pool`] contains the permits and the waiting
//! requests. It knows no keys and no jobs; an [`Owner`] is a number.
//!
//! A pool keeps no permit free while a request waits, so a single owner gets all permits. One of
//! two rules ([`PoolBounds`]) protects another owner that arrives later. Either it gets an extra
//! permit at once (`extra`), or some permits are always left for it (`shared`).

#![forbid(unsafe_code)]

mod accounts;
mod owner;
mod pool;
#[cfg(test)]
mod pool_tests;

pub use accounts::{OwnerAccounts, OwnerRank};
pub use owner::Owner;
pub use pool::{Pool, PoolBounds, PoolFull, PoolPermit};
