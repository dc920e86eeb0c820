//! Idle processes that have run a call of a function and wait for another call. The next call must
//! have the same owner, name, device and limits. An idle process occupies a permit, and on a GPU
//! the device's lease. It ends as soon as another caller waits for either.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::builder::Serving;
use super::held::Held;
use super::runs::{Leash, Side};
use warpgauge_contract::functions::FunctionCall;
use warpgauge_torch::{FunctionRunner, Runner, RunnerPermit};
use warpgauge_worker::Fleet;

/// Properties that two calls must have in common to run in the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    owner: String,
    name: String,
    device: Option<String>,
    memory_bytes: Option<u64>,
    threads: Option<u32>,
    pickles: bool,
    stand_in: bool,
}

impl Terms {
    /// Returns the properties that a later call must share to run in this call's process. Returns
    /// `None` if the process should not wait for another call.
    pub(super) fn of(call: &FunctionCall) -> Option<Self> {
        let head = &call.head;
        Some(Self {
            owner: call.owner.clone(),
            name: head.again.clone()?,
            device: head.device.clone(),
            memory_bytes: head.memory_bytes,
            threads: head.threads,
            pickles: head.pickles,
            stand_in: head.stand_in,
        })
    }
}

/// A process that runs calls.
pub(super) enum Maker {
    /// A runner that has run no call so far.
    Fresh(Box<Runner>),
    /// A runner that has run a call.
    Ready(FunctionRunner),
}

/// A process with its resources. Dropping it ends the process first, and then releases the rest.
pub(super) struct Seated {
    pub(super) callee: Maker,
    pub(super) serving: Serving,
    pub(super) _leash: Leash,
    pub(super) held: Option<Held>,
    pub(super) _place: RunnerPermit,
}

impl Seated {
    /// Returns whether the process can run another call, and no other caller waits for its permit
    /// or device.
    fn is_usable(&self, side: &Side, fleet: &Fleet) -> bool {
        let Maker::Ready(callee) = &self.callee else { return false };
        let is_wanted = side.runners.is_wanted() || (self.held.is_some() && fleet.waiting() > 0);
        !is_wanted && callee.is_waiting()
    }
}

/// All processes that are idle and wait for another call.
#[derive(Default)]
pub(crate) struct WaitingFunctions {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    all: Vec<One>,
    /// Total number of processes that have become idle so far. The next idle process gets the
    /// following number.
    count: u64,
}

/// An idle process, with the properties of the calls that it can run.
struct One {
    number: u64,
    terms: Terms,
    seated: Seated,
    /// Ends the process at its idle limit, or when another caller needs its permit or device.
    timer: AbortHandle,
}

impl WaitingFunctions {
    /// Removes and returns an idle process for a call with these properties. Ends matching
    /// processes that are no longer usable, for example because another caller waits for their
    /// permit.
    pub(super) fn take(&self, terms: &Terms, side: &Side, fleet: &Fleet) -> Option<Seated> {
        loop {
            let found = {
                let all = &mut self.lock().all;
                // The process that was used most recently has the warmest caches.
                let place = all.iter().rposition(|one| one.terms == *terms)?;
                all.remove(place)
            };
            found.timer.abort();
            // The process may have been killed in the meantime, for example because memory ran out.
            if found.seated.is_usable(side, fleet) {
                return Some(found.seated);
            }
        }
    }

    /// Keeps a process idle for at most `idle`, or until another caller waits for its permit or
    /// device.
    pub(super) fn put(
        self: &Arc<Self>,
        terms: Terms,
        seated: Seated,
        side: &Arc<Side>,
        fleet: &Arc<Fleet>,
        idle: Duration,
    ) {
        if !seated.is_usable(side, fleet) {
            return;
        }
        let has_lease = seated.held.is_some();
        let (side, fleet, this) = (Arc::clone(side), Arc::clone(fleet), Arc::downgrade(self));
        let mut waiting = self.lock();
        waiting.count += 1;
        let number = waiting.count;
        let timer = tokio::spawn(async move {
            let device_is_wanted = async {
                match has_lease {
                    true => fleet.wanted().await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(idle) => {}
                () = device_is_wanted => {}
                () = side.runners.wanted() => {}
            }
            if let Some(this) = this.upgrade() {
                drop(this.removed(number));
            }
        });
        waiting.all.push(One { number, terms, seated, timer: timer.abort_handle() });
    }

    fn removed(&self, number: u64) -> Option<One> {
        let all = &mut self.lock().all;
        let place = all.iter().position(|one| one.number == number)?;
        Some(all.remove(place))
    }

    /// Ends all idle processes.
    pub(crate) fn end(&self) {
        let all = std::mem::take(&mut self.lock().all);
        all.iter().for_each(|one| one.timer.abort());
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_the_callers_the_name_and_the_bounds() {
        let terms = |owner: &str, head: serde_json::Value| {
            let head = serde_json::from_value(head).unwrap();
            Terms::of(&FunctionCall { owner: owner.to_owned(), head, program: Vec::new() })
        };
        let named = serde_json::json!({"format": 1, "again": "f"});
        assert_eq!(terms("a", serde_json::json!({"format": 1})), None);
        assert_eq!(terms("a", named.clone()), terms("a", named.clone()));
        // The timeout is no part of the terms.
        let longer = serde_json::json!({"format": 1, "again": "f", "timeout": 3});
        assert_eq!(terms("a", named.clone()), terms("a", longer));
        assert_ne!(terms("a", named.clone()), terms("b", named.clone()));
        for (field, value) in [
            ("again", serde_json::json!("g")),
            ("device", serde_json::json!("GPU-1")),
            ("memory_bytes", serde_json::json!(7)),
            ("threads", serde_json::json!(1)),
            ("pickles", serde_json::json!(true)),
            ("stand_in", serde_json::json!(true)),
        ] {
            let mut other = named.clone();
            other[field] = value;
            assert_ne!(terms("a", named.clone()), terms("a", other), "{field}");
        }
    }
}
