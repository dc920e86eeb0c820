//! Fair turns: places that several owners want are shared between the owners, and not between requests.
//!
//! [`OwnerAccounts`] has the order: the owner that holds the fewest places is next, then the one that had the
//! least time in them. [`Pool`] has a number of places, and those who wait for one. It knows no keys and
//! no jobs: an [`Owner`] is a number.
//!
//! A pool keeps no place free while somebody waits, so an owner that is alone has all of them. What
//! protects another owner that comes later is one of two rules ([`PoolBounds`]): it gets a place beside the
//! others at once (`extra`), or it finds some that are left (`shared`).

#![forbid(unsafe_code)]

mod accounts;
mod owner;
mod pool;
#[cfg(test)]
mod pool_tests;

pub use accounts::{OwnerAccounts, OwnerRank};
pub use owner::Owner;
pub use pool::{Pool, PoolBounds, PoolFull, PoolPermit};
