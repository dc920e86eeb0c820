//! Remembers the configurations of kernels that have several, for later requests to compile one of
//! them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::cache::Key;
use crate::error::CompileError;
use crate::tunable::Tunable;

/// Maximum number of remembered kernels.
const MAX_KEPT: usize = 256;

/// Maximum number of configurations of a remembered kernel. For kernels with more, the interpreter
/// is queried again.
const MAX_CONFIGURATIONS: usize = 512;

/// Kernels with their configurations, the latest last.
#[derive(Default)]
pub(crate) struct Choices(Mutex<VecDeque<(Key, Box<Tunable>)>>);

impl Choices {
    /// Returns the configurations of a kernel that was queried recently.
    pub(crate) fn find(&self, key: &Key) -> Option<Box<Tunable>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, tunable)| tunable.clone())
    }

    /// Remembers the configurations, if a compilation returned any.
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

/// Content addresses of kernels that were compiled only to find out whether they have several
/// configurations. No caller has received the compilation yet. The latest is last.
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

    /// Removes a content address. Returns whether it was present.
    pub(crate) fn take(&self, key: &str) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|known| known == key);
        at.and_then(|at| kept.remove(at)).is_some()
    }
}
