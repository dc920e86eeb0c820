//! What is known of the weaknesses of contracts, so that each is looked at once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::contract::EvaluateRequest;
use crate::validate::Weakness;

/// Contracts that are remembered.
const MAX_CONTRACTS: usize = 1024;

/// Weaknesses by contract. A search sends thousands of kernels with one contract.
#[derive(Default)]
pub(super) struct LintedContracts {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    known: HashMap<blake3::Hash, Vec<Weakness>>,
    /// Oldest first.
    order: VecDeque<blake3::Hash>,
}

/// Identifies what a contract expects, whatever the kernel. `None`: there is nothing to look at.
pub(super) fn identity(request: &EvaluateRequest) -> Option<blake3::Hash> {
    if request.expected.is_empty() {
        return None;
    }
    let io = &request.kernel.io;
    let described = serde_json::to_vec(&(io, &request.expected, &request.tolerance)).ok()?;
    Some(blake3::hash(&described))
}

impl LintedContracts {
    /// The weaknesses of a contract that was looked at.
    pub(super) fn get(&self, contract: &blake3::Hash) -> Option<Vec<Weakness>> {
        self.lock().known.get(contract).cloned()
    }

    /// Remembers the weaknesses of a contract, in place of the oldest.
    pub(super) fn put(&self, contract: blake3::Hash, weaknesses: Vec<Weakness>) {
        let mut inner = self.lock();
        if inner.known.insert(contract, weaknesses).is_none() {
            inner.order.push_back(contract);
        }
        while inner.order.len() > MAX_CONTRACTS {
            let Some(oldest) = inner.order.pop_front() else { break };
            inner.known.remove(&oldest);
        }
    }

    /// Held for look-ups and moves only; a panic inside leaves it consistent.
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let contracts = LintedContracts::default();
        let hash = |index: usize| blake3::hash(&index.to_le_bytes());
        for index in 0..=MAX_CONTRACTS {
            contracts.put(hash(index), Vec::new());
            contracts.put(hash(index), Vec::new());
        }
        assert_eq!(contracts.get(&hash(0)), None);
        assert_eq!(contracts.get(&hash(1)), Some(Vec::new()));
        assert_eq!(contracts.lock().known.len(), MAX_CONTRACTS);
    }
}
