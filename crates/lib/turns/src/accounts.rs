//! Accounts of the permits that each owner holds and has held, which determine the order of the
//! owners. The main type is [`OwnerAccounts`].

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Owner;

/// The rank of an owner. The owner with the lowest rank is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerRank {
    /// The number of permits that the owner holds.
    pub held: usize,
    /// The time for which the owner has held permits, added up over all permits.
    pub served: Duration,
}

/// The accounts of the owners that hold a permit, wait for one, or recently held permits for more
/// time than others. Callers pass the current time.
///
/// An owner that returns after it had neither a permit nor a waiting request is assigned at least
/// the time of the virtual clock (start-time fair queueing). Idleness therefore earns no credit.
#[derive(Debug, Default)]
pub struct OwnerAccounts {
    accounts: HashMap<Owner, Account>,
    /// The virtual clock: the largest value of `served` that an owner had when it received permits.
    clock: Duration,
}

#[derive(Debug)]
struct Account {
    held: usize,
    waiting: usize,
    served: Duration,
    /// The time until which held permits are included in `served`.
    counted: Instant,
}

impl Account {
    fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting == 0
    }

    fn served(&self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.counted);
        let held = u32::try_from(self.held).unwrap_or(u32::MAX);
        self.served.saturating_add(since.saturating_mul(held))
    }

    fn count(&mut self, now: Instant) {
        self.served = self.served(now);
        self.counted = now;
    }
}

impl OwnerAccounts {
    /// Returns the rank of an owner.
    pub fn rank(&self, owner: Owner, now: Instant) -> OwnerRank {
        match self.accounts.get(&owner) {
            Some(account) => OwnerRank { held: account.held, served: account.served(now) },
            None => OwnerRank { held: 0, served: self.clock },
        }
    }

    /// Returns the number of permits that an owner holds.
    pub fn held(&self, owner: Owner) -> usize {
        self.accounts.get(&owner).map_or(0, |account| account.held)
    }

    /// Returns the number of waiting requests of an owner.
    pub fn waiting(&self, owner: Owner) -> usize {
        self.accounts.get(&owner).map_or(0, |account| account.waiting)
    }

    /// Records that a request from an owner starts to wait.
    pub fn wait(&mut self, owner: Owner, now: Instant) {
        self.account(owner, now).waiting += 1;
    }

    /// Records that a request from an owner stops waiting.
    pub fn leave(&mut self, owner: Owner) {
        if let Some(account) = self.accounts.get_mut(&owner) {
            account.waiting = account.waiting.saturating_sub(1);
        }
        self.forget(owner);
    }

    /// Records that an owner receives `places` permits.
    pub fn begin(&mut self, owner: Owner, places: usize, now: Instant) {
        let account = self.account(owner, now);
        account.count(now);
        account.held += places;
        let served = account.served;
        self.clock = self.clock.max(served);
        // Idle owners that are not ahead of the clock are removed.
        let clock = self.clock;
        self.accounts.retain(|_, account| !account.is_idle() || account.served > clock);
    }

    /// Records that an owner returns `places` permits.
    pub fn end(&mut self, owner: Owner, places: usize, now: Instant) {
        if let Some(account) = self.accounts.get_mut(&owner) {
            account.count(now);
            account.held = account.held.saturating_sub(places);
        }
        self.forget(owner);
    }

    fn account(&mut self, owner: Owner, now: Instant) -> &mut Account {
        let clock = self.clock;
        let new = || Account { held: 0, waiting: 0, served: clock, counted: now };
        let account = self.accounts.entry(owner).or_insert_with(new);
        if account.is_idle() {
            account.served = account.served.max(clock);
        }
        account
    }

    fn forget(&mut self, owner: Owner) {
        let clock = self.clock;
        let even = |account: &Account| account.is_idle() && account.served <= clock;
        if self.accounts.get(&owner).is_some_and(even) {
            self.accounts.remove(&owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_fewest_places_come_first_and_then_the_least_time() {
        let (a, b, start) = (Owner::named("a"), Owner::named("b"), Instant::now());
        let mut accounts = OwnerAccounts::default();
        accounts.begin(a, 1, start);
        assert!(accounts.rank(b, start) < accounts.rank(a, start));
        accounts.begin(b, 2, start);
        assert!(accounts.rank(a, start) < accounts.rank(b, start));
        accounts.end(b, 1, start + SECOND);
        // Two permits for a second count more than one.
        assert_eq!(accounts.rank(a, start + SECOND).served, SECOND);
        assert_eq!(accounts.rank(b, start + SECOND).served, 2 * SECOND);
        assert!(accounts.rank(a, start + SECOND) < accounts.rank(b, start + SECOND));
    }

    #[test]
    fn idleness_earns_no_credit_and_is_forgotten() {
        let (a, b, start) = (Owner::named("a"), Owner::named("b"), Instant::now());
        let mut accounts = OwnerAccounts::default();
        accounts.begin(a, 1, start);
        accounts.end(a, 1, start + 10 * SECOND);
        // The owner had more time than others, which is remembered.
        assert!(accounts.rank(b, start) < accounts.rank(a, start));
        let later = start + 20 * SECOND;
        accounts.begin(a, 1, later);
        accounts.end(a, 1, later);
        accounts.wait(b, later);
        assert_eq!(accounts.rank(b, later), accounts.rank(a, later));
        accounts.leave(b);
        assert!(accounts.accounts.is_empty(), "{accounts:?}");
    }
}
