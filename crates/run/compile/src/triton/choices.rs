//! Kernels with several configurations, for whoever asks for one of them again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::cache::Key;
use crate::error::CompileError;
use crate::tunable::Tunable;

/// Most kernels that are remembered.
const MAX_KEPT: usize = 256;

/// Most configurations of a kernel that is remembered: those with more are asked for again.
const MAX_CONFIGURATIONS: usize = 512;

/// What there is to choose from, the latest last.
#[derive(Default)]
pub(crate) struct Choices(Mutex<VecDeque<(Key, Box<Tunable>)>>);

impl Choices {
    /// The configurations of a kernel, if it was asked for lately.
    pub(crate) fn find(&self, key: &Key) -> Option<Box<Tunable>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, tunable)| tunable.clone())
    }

    /// Remembers them, if that is what came of a compilation.
    pub(crate) fn note(&self, key: &Key, error: &CompileError) {
        let CompileError::Tunable(tunable) = error else { return };
        if tunable.configurations.len() > MAX_CONFIGURATIONS {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != key);
        kept.push_back((key.clone(), tunable.clone()));
        while kept.len() > MAX_KEPT {
            kept.pop_front();
        }
    }
}

/// Content addresses of what was compiled to see whether there is a choice, and whose compilation nobody
/// was told of yet; the latest last.
#[derive(Default)]
pub(crate) struct Untold(Mutex<VecDeque<String>>);

impl Untold {
    pub(crate) fn put(&self, key: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(key.to_owned());
        while kept.len() > MAX_KEPT {
            kept.pop_front();
        }
    }

    /// Whether it was there; it is no more.
    pub(crate) fn take(&self, key: &str) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|known| known == key);
        at.and_then(|at| kept.remove(at)).is_some()
    }
}
