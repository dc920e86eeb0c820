//! Limits the number of calls in progress, because each uses memory while its job runs. The main
//! type is [`CallPermits`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::backend::JobBackendError;

/// Maximum number of concurrent calls by all agents. `MAX_CALLS_EACH` is the maximum for one owner,
/// so that the calls of one owner do not block those of all others.
const MAX_CALLS: usize = 256;
const MAX_CALLS_EACH: usize = 64;

/// Maximum number of reports that are parsed at once. Each takes a core, and several times the
/// memory of its text.
const MAX_IMPORTS: usize = 2;

/// Maximum number of reports that are parsed or wait for it, of all agents and of one owner.
const MAX_QUEUED: usize = 32;
const MAX_QUEUED_EACH: usize = 8;

/// Permits for calls. All servers that use a clone share them.
#[derive(Clone)]
pub struct CallPermits {
    calls: OwnerPermits,
    queued: OwnerPermits,
    importing: Arc<Semaphore>,
}

impl Default for CallPermits {
    fn default() -> Self {
        Self {
            calls: OwnerPermits::of("calls", MAX_CALLS, MAX_CALLS_EACH),
            queued: OwnerPermits::of("imports", MAX_QUEUED, MAX_QUEUED_EACH),
            importing: Arc::new(Semaphore::new(MAX_IMPORTS)),
        }
    }
}

impl CallPermits {
    /// Waits at most `patience` until no call is in progress. Returns whether no call is in
    /// progress.
    pub async fn ended(&self, patience: Duration) -> bool {
        let all = self.calls.all.acquire_many(MAX_CALLS as u32);
        matches!(tokio::time::timeout(patience, all).await, Ok(Ok(_)))
    }

    /// Takes a permit for another call of this owner.
    pub(crate) fn begin(&self, owner: &str) -> Result<Place, JobBackendError> {
        self.calls.begin(owner)
    }

    /// Waits until a report of this owner may be parsed. The permit is held until parsing ends,
    /// even if the call ends earlier.
    pub(crate) async fn import(&self, owner: &str) -> Result<ImportPermit, JobBackendError> {
        let place = self.queued.begin(owner)?;
        let permit = Arc::clone(&self.importing).acquire_owned().await;
        let closed = |_| JobBackendError::new("shutting_down", "the server shuts down");
        Ok(ImportPermit { _permit: permit.map_err(closed)?, _place: place })
    }
}

/// Permit to parse a report.
pub(crate) struct ImportPermit {
    _permit: OwnedSemaphorePermit,
    _place: Place,
}

/// Permits of which each owner can have a part.
#[derive(Clone)]
struct OwnerPermits {
    /// What the permits are for, in messages.
    what: &'static str,
    most: usize,
    most_each: usize,
    all: Arc<Semaphore>,
    by_owner: Arc<Mutex<HashMap<String, usize>>>,
}

impl OwnerPermits {
    fn of(what: &'static str, most: usize, most_each: usize) -> Self {
        let all = Arc::new(Semaphore::new(most));
        Self { what, most, most_each, all, by_owner: Arc::default() }
    }

    fn begin(&self, owner: &str) -> Result<Place, JobBackendError> {
        let full = |most: usize, whose: &str| {
            let message = format!(
                "{most} {}{whose} are already in progress; wait for one of them, or retry later",
                self.what
            );
            JobBackendError::new("too_many_calls", message)
        };
        let permit = Arc::clone(&self.all).try_acquire_owned();
        let permit = permit.map_err(|_| full(self.most, ""))?;
        let mut by_owner = self.lock();
        let own = by_owner.entry(owner.to_owned()).or_default();
        if *own >= self.most_each {
            return Err(full(self.most_each, " of yours"));
        }
        *own += 1;
        Ok(Place { permits: self.clone(), owner: owner.to_owned(), _permit: permit })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.by_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call or an import in progress.
pub(crate) struct Place {
    permits: OwnerPermits,
    owner: String,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_owner = self.permits.lock();
        if let Some(own) = by_owner.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_owner_cannot_keep_others_out() {
        let calls = CallPermits::default();
        let mut places: Vec<Place> =
            (0..MAX_CALLS_EACH).map(|_| calls.begin("a").expect("a place")).collect();
        let refusal = calls.begin("a").err().expect("a refusal");
        assert!(refusal.message.starts_with("64 calls of yours"), "{}", refusal.message);
        for owner in ["b", "c", "d"] {
            places.extend((0..MAX_CALLS_EACH).map(|_| calls.begin(owner).expect("a place")));
        }
        assert!(calls.begin("e").is_err());
        assert!(!calls.ended(Duration::ZERO).await);
        drop(places);
        assert!(calls.begin("a").is_ok() && calls.calls.lock().is_empty());
        assert!(calls.ended(Duration::ZERO).await);
    }

    #[tokio::test]
    async fn imports_wait_for_each_other_and_one_owner_has_few() {
        let permits = CallPermits::default();
        let first = permits.import("a").await.expect("a permit");
        let second = permits.import("a").await.expect("a permit");
        let mut waiting: Vec<_> =
            (2..MAX_QUEUED_EACH).map(|_| Box::pin(permits.import("a"))).collect();
        for import in &mut waiting {
            assert!(import.as_mut().now_or_never().is_none(), "two are parsed at once");
        }
        let refusal = permits.import("a").await.err().expect("a refusal");
        assert!(refusal.message.starts_with("8 imports of yours"), "{}", refusal.message);
        let mut other = Box::pin(permits.import("b"));
        assert!(other.as_mut().now_or_never().is_none());
        drop(first);
        assert!(waiting[0].as_mut().now_or_never().is_some_and(|permit| permit.is_ok()));
        // Calls that no longer wait leave the queue.
        drop((second, waiting));
        assert!(other.await.is_ok() && permits.queued.lock().is_empty());
    }
}
