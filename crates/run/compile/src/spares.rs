//! Spare children that have imported Triton and wait for a kernel, so that a compilation starts at
//! once.
//!
//! Each child compiles one kernel and ends, so that a submission cannot affect the interpreter of
//! another.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::protocol::TritonWork;
use super::supervisor::Waiting;

/// The children that wait for a kernel.
#[derive(Default)]
pub(crate) struct Spares {
    wanted: AtomicUsize,
    waiting: Mutex<VecDeque<(TritonWork, Waiting)>>,
}

impl Spares {
    /// Sets the number of children to keep.
    pub(crate) fn want(&self, count: usize) {
        self.wanted.store(count, Ordering::Relaxed);
    }

    /// Returns a running child that has been prepared for this work.
    pub(crate) fn take(&self, work: &TritonWork) -> Option<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(at) = waiting.iter().position(|(ready, _)| ready == work) {
            let (_, mut spare) = waiting.remove(at)?;
            if spare.is_alive() {
                return Some(spare);
            }
        }
        None
    }

    /// Returns whether there are fewer children than intended.
    pub(crate) fn is_short(&self, work: &TritonWork) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = waiting.iter().filter(|(ready, _)| ready == work).count();
        ready < self.wanted.load(Ordering::Relaxed)
    }

    /// Stores a waiting child. If there are too many, children that were prepared for other work
    /// are dropped first.
    pub(crate) fn keep(&self, work: TritonWork, spare: Waiting) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back((work, spare));
        while waiting.len() > wanted {
            let newest = waiting.back().map(|(work, _)| work.clone());
            let other = waiting.iter().position(|(work, _)| Some(work) != newest.as_ref());
            waiting.remove(other.unwrap_or(0));
        }
    }
}
