//! A bounded cache of results by key. The oldest entry is removed first. The main type is
//! [`Remembered`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A cache of at most `MOST` values, by hash.
pub(crate) struct Remembered<V, const MOST: usize> {
    inner: Mutex<Inner<V>>,
}

struct Inner<V> {
    known: HashMap<blake3::Hash, V>,
    /// Keys in the order of their insertion, the oldest first.
    order: VecDeque<blake3::Hash>,
}

impl<V, const MOST: usize> Default for Remembered<V, MOST> {
    fn default() -> Self {
        Self { inner: Mutex::new(Inner { known: HashMap::new(), order: VecDeque::new() }) }
    }
}

impl<V: Clone, const MOST: usize> Remembered<V, MOST> {
    pub(crate) fn get(&self, key: blake3::Hash) -> Option<V> {
        self.lock().known.get(&key).cloned()
    }

    /// Stores a value, and removes the oldest key if there are too many.
    pub(crate) fn put(&self, key: blake3::Hash, value: V) {
        let mut inner = self.lock();
        if inner.known.insert(key, value).is_none() {
            inner.order.push_back(key);
        }
        while inner.order.len() > MOST {
            let Some(oldest) = inner.order.pop_front() else { break };
            inner.known.remove(&oldest);
        }
    }

    /// Locks the cache. The lock is held only for look-ups and moves, so the cache is consistent
    /// even after a panic.
    fn lock(&self) -> MutexGuard<'_, Inner<V>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let remembered = Remembered::<usize, 3>::default();
        let hash = |index: usize| blake3::hash(&index.to_le_bytes());
        for index in 0..=3 {
            remembered.put(hash(index), index);
            remembered.put(hash(index), index + 1);
        }
        assert_eq!(remembered.get(hash(0)), None);
        assert_eq!(remembered.get(hash(1)), Some(2));
        assert_eq!(remembered.lock().known.len(), 3);
    }
}
