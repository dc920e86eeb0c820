//! Pools of permits with waiting requests. The main type is [`Pool`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, oneshot};

use super::{Owner, OwnerAccounts};

/// The limits of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolBounds {
    /// The number of permits in the pool.
    pub places: usize,
    /// The number of extra permits. An owner without a permit gets one of them if all others are
    /// taken.
    pub extra: usize,
    /// The maximum number of waiting requests.
    pub waiting: usize,
    /// Whether there may be more than one owner. If so, an owner may take with [`Pool::try_take`]
    /// at most as many permits as it leaves for others. The same applies to its waiting requests.
    pub shared: bool,
    /// The number of permits that an owner may take regardless of its share, if they are free.
    pub least: usize,
}

/// Reasons why no permit is available, with the number of permits or of waiting requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolFull {
    /// All permits are taken, or the maximum number of requests is waiting.
    #[error("all {0} places are taken")]
    All(usize),
    /// The owner has taken its share.
    #[error("this caller has {0} places, its share while other callers may arrive")]
    Share(usize),
}

/// A pool of permits. Clones refer to the same pool.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bounds: PoolBounds,
    state: Mutex<State>,
    begun_to_wait: Notify,
}

#[derive(Debug, Default)]
struct State {
    accounts: OwnerAccounts,
    held: usize,
    queues: HashMap<Owner, VecDeque<Waiter>>,
    waiting: usize,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiter {
    arrival: u64,
    answer: oneshot::Sender<PoolPermit>,
}

/// The permits of an owner, which are returned on drop.
#[derive(Debug)]
pub struct PoolPermit {
    pool: Option<Pool>,
    owner: Owner,
    places: usize,
}

/// A request that waits until it gets a permit or is dropped.
struct Waiting {
    pool: Pool,
    owner: Owner,
    answer: oneshot::Receiver<PoolPermit>,
}

impl Pool {
    /// Creates a pool in which all permits are free.
    pub fn new(bounds: PoolBounds) -> Self {
        let (state, begun_to_wait) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { bounds, state, begun_to_wait }))
    }

    /// Waits for a permit. Owners are served in order of their rank, and the requests of an owner
    /// in order of arrival. Dropping the future removes the request from the queue.
    ///
    /// # Errors
    /// Too many requests are waiting, of all owners or of this owner.
    pub async fn take(&self, owner: Owner) -> Result<PoolPermit, PoolFull> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = Waiting { pool: self.clone(), owner, answer };
        if self.enqueue(owner, sender)? {
            self.0.begun_to_wait.notify_waiters();
        }
        // The pool keeps the other end until it answers.
        (&mut waiting.answer).await.map_err(|_| PoolFull::All(self.0.bounds.places))
    }

    /// Takes `places` permits, if they are free and within the owner's share.
    ///
    /// # Errors
    /// The permits are not free, or exceed the owner's share.
    pub fn try_take(&self, owner: Owner, places: usize) -> Result<PoolPermit, PoolFull> {
        let bounds = self.0.bounds;
        let mut state = self.lock();
        let free = bounds.places.saturating_sub(state.held);
        let Some(left) = free.checked_sub(places) else { return Err(PoolFull::All(bounds.places)) };
        let has = state.accounts.held(owner);
        if bounds.shared && has + places > left.max(bounds.least) {
            return Err(PoolFull::Share(has));
        }
        Ok(self.granted(&mut state, owner, places, Instant::now()))
    }

    /// Returns the number of permits that are held, including extra permits.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    /// Returns the number of permits that an owner holds.
    pub fn held_by(&self, owner: Owner) -> usize {
        self.lock().accounts.held(owner)
    }

    /// Returns the number of free permits.
    pub fn free(&self) -> usize {
        self.0.bounds.places.saturating_sub(self.held())
    }

    /// Returns the limits of the pool.
    pub fn bounds(&self) -> PoolBounds {
        self.0.bounds
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Waits until at least one request is waiting.
    pub async fn wanted(&self) {
        let begun = self.0.begun_to_wait.notified();
        tokio::pin!(begun);
        // The pool reports every request that starts to wait after this call.
        begun.as_mut().enable();
        if self.waiting() == 0 {
            begun.await;
        }
    }

    /// Adds a request to the queue of its owner and grants free permits. Returns whether the
    /// request must wait.
    fn enqueue(&self, owner: Owner, answer: oneshot::Sender<PoolPermit>) -> Result<bool, PoolFull> {
        let (bounds, now) = (self.0.bounds, Instant::now());
        let mut state = self.lock();
        let arrival = state.arrivals;
        state.arrivals += 1;
        state.accounts.wait(owner, now);
        state.waiting += 1;
        state.queues.entry(owner).or_default().push_back(Waiter { arrival, answer });
        self.hand_out(&mut state, now);
        let queue = state.queues.get(&owner).and_then(|queue| queue.back());
        if queue.is_none_or(|last| last.arrival != arrival) {
            return Ok(false);
        }
        let own = state.accounts.waiting(owner);
        let refused = match bounds.waiting.checked_sub(state.waiting) {
            None => PoolFull::All(state.waiting - 1),
            Some(left) if bounds.shared && own > left.max(1) => PoolFull::Share(own - 1),
            Some(_) => return Ok(true),
        };
        state.remove(owner, |waiter| waiter.arrival == arrival);
        Err(refused)
    }

    /// Grants free permits to waiting requests, in order.
    fn hand_out(&self, state: &mut State, now: Instant) {
        while let Some(owner) = state.next(now) {
            let all = self.0.bounds.places;
            let extra = if state.accounts.held(owner) == 0 { self.0.bounds.extra } else { 0 };
            if state.held >= all.saturating_add(extra) {
                return;
            }
            let Some(waiter) = state.pop(owner) else { return };
            let turn = self.granted(state, owner, 1, now);
            state.accounts.leave(owner);
            if let Err(mut turn) = waiter.answer.send(turn) {
                // The request was dropped. The permit must not return itself on drop, because this
                // function holds the lock.
                turn.pool = None;
                state.given_back(owner, 1, now);
            }
        }
    }

    fn granted(&self, state: &mut State, owner: Owner, places: usize, now: Instant) -> PoolPermit {
        state.held += places;
        state.accounts.begin(owner, places, now);
        PoolPermit { pool: Some(self.clone()), owner, places }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the next owner with waiting requests.
    fn next(&self, now: Instant) -> Option<Owner> {
        let first = |(owner, queue): (&Owner, &VecDeque<Waiter>)| {
            let arrival = queue.front()?.arrival;
            Some((self.accounts.rank(*owner, now), arrival, *owner))
        };
        self.queues.iter().filter_map(first).min().map(|(_, _, owner)| owner)
    }

    /// Removes the first waiting request of an owner. The owner's account still counts the request
    /// as waiting.
    fn pop(&mut self, owner: Owner) -> Option<Waiter> {
        let queue = self.queues.get_mut(&owner)?;
        let waiter = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&owner);
        }
        self.waiting -= 1;
        Some(waiter)
    }

    fn remove(&mut self, owner: Owner, leaves: impl Fn(&Waiter) -> bool) {
        let Some(queue) = self.queues.get_mut(&owner) else { return };
        let before = queue.len();
        queue.retain(|waiter| !leaves(waiter));
        let gone = before - queue.len();
        if queue.is_empty() {
            self.queues.remove(&owner);
        }
        self.waiting -= gone;
        (0..gone).for_each(|_| self.accounts.leave(owner));
    }

    fn given_back(&mut self, owner: Owner, places: usize, now: Instant) {
        self.held -= places;
        self.accounts.end(owner, places, now);
    }
}

impl Drop for PoolPermit {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        let now = Instant::now();
        let mut state = pool.lock();
        state.given_back(self.owner, self.places, now);
        pool.hand_out(&mut state, now);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.answer.close();
        self.pool.lock().remove(self.owner, |waiter| waiter.answer.is_closed());
    }
}
