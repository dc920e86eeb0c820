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

/// Permits for calls. All servers that use a clone share them.
#[derive(Clone)]
pub struct CallPermits {
    all: Arc<Semaphore>,
    by_owner: Arc<Mutex<HashMap<String, usize>>>,
}

impl Default for CallPermits {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_CALLS)), by_owner: Arc::default() }
    }
}

impl CallPermits {
    /// Waits at most `patience` until no call is in progress. Returns whether no call is in
    /// progress.
    pub async fn ended(&self, patience: Duration) -> bool {
        let all = self.all.acquire_many(MAX_CALLS as u32);
        matches!(tokio::time::timeout(patience, all).await, Ok(Ok(_)))
    }

    /// Takes a permit for another call of this owner.
    pub(crate) fn begin(&self, owner: &str) -> Result<Place, JobBackendError> {
        let full = |most: usize, whose: &str| {
            let message = format!(
                "{most} calls{whose} are already in progress; wait for one of them, or retry later"
            );
            JobBackendError::new("too_many_calls", message)
        };
        let permit = Arc::clone(&self.all).try_acquire_owned();
        let permit = permit.map_err(|_| full(MAX_CALLS, ""))?;
        let mut by_owner = self.lock();
        let own = by_owner.entry(owner.to_owned()).or_default();
        if *own >= MAX_CALLS_EACH {
            return Err(full(MAX_CALLS_EACH, " of yours"));
        }
        *own += 1;
        Ok(Place { calls: self.clone(), owner: owner.to_owned(), _permit: permit })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.by_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress.
pub(crate) struct Place {
    calls: CallPermits,
    owner: String,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_owner = self.calls.lock();
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
        assert!(calls.begin("a").is_ok() && calls.lock().is_empty());
        assert!(calls.ended(Duration::ZERO).await);
    }
}
