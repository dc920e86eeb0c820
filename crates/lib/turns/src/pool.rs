//! Places, and those who wait for one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, oneshot};

use super::{Owner, OwnerAccounts};

/// How many may have what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolBounds {
    /// Places.
    pub places: usize,
    /// Places beside those: while all are taken, an owner that has none gets one of these.
    pub extra: usize,
    /// Most that wait.
    pub waiting: usize,
    /// Whether there may be more than one owner. Then one takes by [`Pool::try_take`], or has wait, at
    /// most as many as it leaves for others.
    pub shared: bool,
    /// Places that an owner may take in any case, while they are free.
    pub least: usize,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolFull {
    /// All are taken.
    #[error("all {0} are taken")]
    All(usize),
    /// The owner has its share.
    #[error("this caller has {0}, which is its share while others may come")]
    Share(usize),
}

/// A number of places. Clones are the same pool.
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

/// Places that are held. Dropping it gives them back.
#[derive(Debug)]
pub struct PoolPermit {
    pool: Option<Pool>,
    owner: Owner,
    places: usize,
}

/// One who waits, until it gets its turn or goes away.
struct Waiting {
    pool: Pool,
    owner: Owner,
    answer: oneshot::Receiver<PoolPermit>,
}

impl Pool {
    /// All places are free.
    pub fn new(bounds: PoolBounds) -> Self {
        let (state, begun_to_wait) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { bounds, state, begun_to_wait }))
    }

    /// Waits for a place. Owners take turns by what they hold and had; within one, who came first is first.
    /// Dropping the future leaves the queue.
    ///
    /// # Errors
    /// As many wait as may, of all owners or of this one.
    pub async fn take(&self, owner: Owner) -> Result<PoolPermit, PoolFull> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = Waiting { pool: self.clone(), owner, answer };
        if self.enqueue(owner, sender)? {
            self.0.begun_to_wait.notify_waiters();
        }
        // The pool keeps the other end until it answers.
        (&mut waiting.answer).await.map_err(|_| PoolFull::All(self.0.bounds.places))
    }

    /// Takes so many places, if they are free and within the owner's share.
    ///
    /// # Errors
    /// They are not.
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

    /// Places that are held, extra ones included.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    /// Places that an owner holds.
    pub fn held_by(&self, owner: Owner) -> usize {
        self.lock().accounts.held(owner)
    }

    /// Places that are free.
    pub fn free(&self) -> usize {
        self.0.bounds.places.saturating_sub(self.held())
    }

    /// The bounds.
    pub fn bounds(&self) -> PoolBounds {
        self.0.bounds
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Comes back when somebody waits.
    pub async fn wanted(&self) {
        let begun = self.0.begun_to_wait.notified();
        tokio::pin!(begun);
        // Whoever begins from here on is noticed.
        begun.as_mut().enable();
        if self.waiting() == 0 {
            begun.await;
        }
    }

    /// Puts a waiter into its queue and hands out what is free; whether it has to wait.
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

    /// Gives places to those who wait, in their order.
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
                // It went away. It gives nothing back by itself, since the lock is ours.
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
    /// Of those who wait, the owner whose turn it is.
    fn next(&self, now: Instant) -> Option<Owner> {
        let first = |(owner, queue): (&Owner, &VecDeque<Waiter>)| {
            let arrival = queue.front()?.arrival;
            Some((self.accounts.rank(*owner, now), arrival, *owner))
        };
        self.queues.iter().filter_map(first).min().map(|(_, _, owner)| owner)
    }

    /// The first of an owner's waiters. The accounts still have it wait.
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
