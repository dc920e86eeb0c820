//! Counts recent events. The main type is [`Recent`].

use std::sync::atomic::{AtomicU64, Ordering};

/// The length of a slot, in seconds.
const SLOT_S: u64 = 5;

/// The number of slots in the window.
const SLOTS: usize = 60;

/// The events of the last five minutes, in slots of five seconds. A slot contains the number of its
/// interval (upper half) and the count (lower half), so that a single atomic exchange can restart
/// it.
#[derive(Debug)]
pub struct Recent {
    slots: [AtomicU64; SLOTS],
}

impl Default for Recent {
    fn default() -> Self {
        Self { slots: [const { AtomicU64::new(0) }; SLOTS] }
    }
}

impl Recent {
    /// The length of the window, in minutes.
    pub const MINUTES: f64 = (SLOT_S * SLOTS as u64) as f64 / 60.0;

    pub fn add(&self, now_s: u64) {
        let stretch = stretch(now_s);
        let slot = &self.slots[stretch as usize % SLOTS];
        let next = |old: u64| {
            let count = if old >> 32 == stretch { old & 0xffff_ffff } else { 0 };
            Some(stretch << 32 | (count + 1).min(0xffff_ffff))
        };
        // `next` always returns a value.
        let _ = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Returns the number of events in the five minutes before `now_s`, to within the length of a
    /// slot.
    pub fn count(&self, now_s: u64) -> u64 {
        let now = stretch(now_s);
        let slots = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed));
        let recent = slots.filter(|slot| {
            let age = now.wrapping_sub(slot >> 32);
            age < SLOTS as u64
        });
        recent.map(|slot| slot & 0xffff_ffff).sum()
    }
}

/// Returns the number of the interval, starting at 1, so that an empty slot belongs to no interval.
fn stretch(now_s: u64) -> u64 {
    now_s / SLOT_S + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let recent = Recent::default();
        assert_eq!(recent.count(0), 0);
        for now in [0, 0, 4, 5, 299] {
            recent.add(now);
        }
        assert_eq!(recent.count(299), 5);
        assert_eq!(recent.count(300), 2);
        assert_eq!(recent.count(10_000), 0);
        recent.add(300);
        assert_eq!(recent.count(300), 3);
        assert_eq!(Recent::MINUTES, 5.0);
    }
}
