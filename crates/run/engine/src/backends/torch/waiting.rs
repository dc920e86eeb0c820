//! Processes that have made a call of a function and wait for another one: of the same caller's, under the
//! same name and with the same bounds. They have a place, or a GPU's lease, and give it up as soon as somebody
//! waits for one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::builder::Serving;
use super::held::Held;
use super::runs::{Leash, Side};
use warpgauge_contract::functions::FunctionCall;
use warpgauge_torch::{FunctionRunner, Runner, RunnerPermit};
use warpgauge_worker::Fleet;

/// What two calls have in common that one process may make.
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
    /// Those of a call whose process is to wait.
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

/// A process for calls.
pub(super) enum Maker {
    /// Nobody has asked it anything.
    Fresh(Box<Runner>),
    /// It has made a call.
    Ready(FunctionRunner),
}

/// A process with all that it has. Dropping it ends the process, and then gives the rest back.
pub(super) struct Seated {
    pub(super) callee: Maker,
    pub(super) serving: Serving,
    pub(super) _leash: Leash,
    pub(super) held: Option<Held>,
    pub(super) _place: RunnerPermit,
}

impl Seated {
    /// Whether it can make another call, and nobody waits for what it has.
    fn is_usable(&self, side: &Side, fleet: &Fleet) -> bool {
        let Maker::Ready(callee) = &self.callee else { return false };
        let is_wanted = side.runners.is_wanted() || (self.held.is_some() && fleet.waiting() > 0);
        !is_wanted && callee.is_waiting()
    }
}

/// All that wait.
#[derive(Default)]
pub(crate) struct WaitingFunctions {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    all: Vec<One>,
    /// How many there ever were.
    count: u64,
}

/// One of those that wait.
struct One {
    number: u64,
    terms: Terms,
    seated: Seated,
    /// Ends it where nobody comes for it.
    timer: AbortHandle,
}

impl WaitingFunctions {
    /// One for a call on these terms. Nobody is overtaken: those that others wait for end.
    pub(super) fn take(&self, terms: &Terms, side: &Side, fleet: &Fleet) -> Option<Seated> {
        loop {
            let found = {
                let all = &mut self.lock().all;
                // The last one that came has the warmest caches.
                let place = all.iter().rposition(|one| one.terms == *terms)?;
                all.remove(place)
            };
            found.timer.abort();
            // Where memory ran out it may have been ended.
            if found.seated.is_usable(side, fleet) {
                return Some(found.seated);
            }
        }
    }

    /// Has one wait, for so long, and as long as nobody else waits for what it has.
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

    /// Ends all.
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
        // How long a call may take is its own.
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
