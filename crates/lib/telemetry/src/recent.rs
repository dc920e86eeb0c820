//! How much happened of late.

use std::sync::atomic::{AtomicU64, Ordering};

/// Seconds of one slot.
const SLOT_S: u64 = 5;

/// Slots of the window.
const SLOTS: usize = 60;

/// Events of the last five minutes, in slots of five seconds. A slot packs which stretch of time it
/// counts (upper half) and how much (lower half), so that one exchange starts it anew.
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
    /// Length of the window, minutes.
    pub const MINUTES: f64 = (SLOT_S * SLOTS as u64) as f64 / 60.0;

    /// Counts one event, `now_s` seconds after the start.
    pub fn add(&self, now_s: u64) {
        let stretch = stretch(now_s);
        let slot = &self.slots[stretch as usize % SLOTS];
        let next = |old: u64| {
            let count = if old >> 32 == stretch { old & 0xffff_ffff } else { 0 };
            Some(stretch << 32 | (count + 1).min(0xffff_ffff))
        };
        // `next` always has a value.
        let _ = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Events of the five minutes before `now_s`.
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

/// The first is 1: an empty slot is of no stretch.
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
