//! Remembers sources whose compilation exceeded a limit. They are not compiled again for some time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::cache::Key;
use super::error::{CompileError, CompileFailure};

/// Maximum number of remembered sources.
const MAX_KEPT: usize = 64;

/// Time for which a source is remembered, because a busy machine may be idle later.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The remembered sources, the latest last. Without them one request could compile such a source
/// several times, each time up to the limit. A comparison does so, to check whether two images are
/// the same.
#[derive(Default)]
pub(super) struct Refused(Mutex<VecDeque<Entry>>);

struct Entry {
    key: Key,
    /// Time limit that applied to the compilation.
    limit: Duration,
    at: Instant,
    failure: CompileFailure,
}

impl Refused {
    /// Returns a source's recent error. Returns `None` if the caller's time limit is longer than
    /// the limit that applied then, so that the source is compiled again.
    pub(super) fn find(&self, key: &Key, limit: Duration, now: Instant) -> Option<CompileError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|entry| now.saturating_duration_since(entry.at) < KEPT_FOR);
        let fits = |entry: &&Entry| entry.key == *key && entry.limit >= limit;
        let found = kept.iter().find(fits)?;
        Some(CompileError::Rejected(Box::new(found.failure.clone())))
    }

    /// Remembers a source's error if the compilation exceeded a limit or crashed.
    pub(super) fn note(&self, key: &Key, limit: Duration, error: &CompileError, now: Instant) {
        if matches!(error, CompileError::Rejected(failure) if failure.is_exceeded()) {
            self.keep(key, limit, error, now);
        }
    }

    /// Remembers a source's error, whatever the reason of the rejection.
    pub(super) fn keep(&self, key: &Key, limit: Duration, error: &CompileError, now: Instant) {
        let CompileError::Rejected(failure) = error else { return };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|entry| entry.key != *key);
        let failure = CompileFailure::clone(failure);
        kept.push_back(Entry { key: key.clone(), limit, at: now, failure });
        while kept.len() > MAX_KEPT {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::key;
    use warpgauge_model::FailureCode;

    #[test]
    fn a_limit_is_remembered_for_a_while_and_for_no_more_time() {
        let (refused, now) = (Refused::default(), Instant::now());
        let error = |code| CompileError::rejected(code, "m");
        let seconds = Duration::from_secs;
        refused.note(&key("a"), seconds(10), &error(FailureCode::CompilerTimeout), now);
        refused.note(&key("b"), seconds(10), &error(FailureCode::CompilationFailed), now);
        let found = |name: &str, limit, at| refused.find(&key(name), seconds(limit), at).is_some();
        assert!(found("a", 10, now) && found("a", 5, now));
        assert!(!found("a", 11, now), "it may have more time");
        assert!(!found("b", 10, now), "an error of the source is cheap to find again");
        assert!(!found("a", 10, now + KEPT_FOR));
        for number in 0..2 * MAX_KEPT {
            let error = error(FailureCode::CompilerCrashed);
            refused.note(&key(&number.to_string()), seconds(1), &error, now);
        }
        assert_eq!(refused.0.lock().unwrap().len(), MAX_KEPT);
    }
}
