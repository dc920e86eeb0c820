//! The in-memory level of the cache: recently used artifacts, up to a maximum number of bytes.

use std::collections::HashMap;
use std::sync::Arc;

use super::key::Key;
use crate::artifact::CompiledModule;

/// Number of bytes that are counted for an entry in addition to its image and texts.
const ENTRY_OVERHEAD: u64 = 4096;

pub(super) struct Front {
    entries: HashMap<Key, Entry>,
    bytes: u64,
    max_bytes: u64,
    clock: u64,
}

struct Entry {
    artifact: Arc<CompiledModule>,
    used: u64,
    bytes: u64,
}

impl Front {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { entries: HashMap::new(), bytes: 0, max_bytes, clock: 0 }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<Arc<CompiledModule>> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(Arc::clone(&entry.artifact))
    }

    pub(super) fn put(&mut self, key: Key, artifact: Arc<CompiledModule>) {
        let stages = artifact.stages.iter().map(|(_, text)| text.len()).sum::<usize>();
        let bytes = ENTRY_OVERHEAD + (artifact.image.len() + artifact.log.len() + stages) as u64;
        self.remove(&key);
        // A single image must not evict all others.
        if bytes > self.max_bytes / 4 {
            return;
        }
        self.clock += 1;
        self.bytes += bytes;
        self.entries.insert(key, Entry { artifact, used: self.clock, bytes });
        while self.bytes > self.max_bytes {
            let oldest =
                self.entries.iter().min_by_key(|(_, e)| e.used).map(|(key, _)| key.clone());
            match oldest {
                Some(key) => self.remove(&key),
                None => break,
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{artifact, key};
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut front = Front::new(64 << 10);
        for name in ["a", "b", "c", "d"] {
            front.put(key(name), Arc::new(artifact(10_000)));
        }
        assert!(front.get(&key("a")).is_some());
        front.put(key("e"), Arc::new(artifact(10_000)));
        assert!(front.get(&key("a")).is_some());
        assert!(front.get(&key("b")).is_none());
        assert!(front.bytes <= front.max_bytes);
    }

    #[test]
    fn an_image_too_large_is_not_kept() {
        let mut front = Front::new(64 << 10);
        front.put(key("a"), Arc::new(artifact(60_000)));
        assert!(front.get(&key("a")).is_none());
        assert_eq!(front.bytes, 0);
    }

    #[test]
    fn replacing_an_entry_does_not_count_it_twice() {
        let mut front = Front::new(64 << 10);
        for _ in 0..100 {
            front.put(key("a"), Arc::new(artifact(1000)));
        }
        assert_eq!(front.bytes, ENTRY_OVERHEAD + 1000);
    }
}
