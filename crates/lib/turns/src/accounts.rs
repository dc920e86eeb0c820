//! What each owner has and had, and who is next.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Owner;

/// How an owner stands: the least is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerRank {
    /// Places that it holds.
    pub held: usize,
    /// Time that it had in places, each counted.
    pub served: Duration,
}

/// The accounts of all owners that hold a place, wait for one, or had more than others lately. It is told
/// the time.
///
/// An owner that comes back after having had nothing is taken to have had as much as the one whose turn
/// it was last (start-time fair queueing), so that idleness earns no credit.
#[derive(Debug, Default)]
pub struct OwnerAccounts {
    accounts: HashMap<Owner, Account>,
    /// What the owner had whose turn it was last.
    clock: Duration,
}

#[derive(Debug)]
struct Account {
    held: usize,
    waiting: usize,
    served: Duration,
    /// Until when places are counted in `served`.
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
    /// How an owner stands.
    pub fn rank(&self, owner: Owner, now: Instant) -> OwnerRank {
        match self.accounts.get(&owner) {
            Some(account) => OwnerRank { held: account.held, served: account.served(now) },
            None => OwnerRank { held: 0, served: self.clock },
        }
    }

    /// Places that an owner holds.
    pub fn held(&self, owner: Owner) -> usize {
        self.accounts.get(&owner).map_or(0, |account| account.held)
    }

    /// How many of an owner's wait.
    pub fn waiting(&self, owner: Owner) -> usize {
        self.accounts.get(&owner).map_or(0, |account| account.waiting)
    }

    /// One more of an owner's waits.
    pub fn wait(&mut self, owner: Owner, now: Instant) {
        self.account(owner, now).waiting += 1;
    }

    /// One of an owner's waits no more.
    pub fn leave(&mut self, owner: Owner) {
        if let Some(account) = self.accounts.get_mut(&owner) {
            account.waiting = account.waiting.saturating_sub(1);
        }
        self.forget(owner);
    }

    /// An owner gets so many places.
    pub fn begin(&mut self, owner: Owner, places: usize, now: Instant) {
        let account = self.account(owner, now);
        account.count(now);
        account.held += places;
        let served = account.served;
        self.clock = self.clock.max(served);
        // Those that had more than others only lately are even now.
        let clock = self.clock;
        self.accounts.retain(|_, account| !account.is_idle() || account.served > clock);
    }

    /// An owner gives so many places back.
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
        // Two places for a second are more than one for a second.
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
        // It had more than others, which is remembered.
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
