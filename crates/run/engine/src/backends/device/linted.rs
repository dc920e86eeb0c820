//! Known weaknesses of contracts, so that each contract is examined only once. The main type is
//! [`LintedContracts`].

use super::MOST_CONTRACTS;
use crate::remembered::Remembered;
use warpgauge_contract::EvaluateRequest;
use warpgauge_tensor::set_apart;
use warpgauge_turns::Owner;
use warpgauge_validate::Weakness;
use warpgauge_worker::protocol::{EvaluatedRun, RunOutcome};

/// Known weaknesses, by the hash of the contract. A search sends thousands of kernels with the same
/// contract.
#[derive(Default)]
pub(crate) struct LintedContracts {
    known: Remembered<Vec<Weakness>, MOST_CONTRACTS>,
}

/// Returns a hash of an owner's contract that is independent of the kernel. Returns `None` if the
/// contract has no expectation. Blocking: it reads all of the contract's data in pieces.
pub(crate) fn identity(request: &EvaluateRequest, owner: Owner) -> Option<blake3::Hash> {
    if request.expected.is_empty() {
        return None;
    }
    let described = (owner, &request.kernel.io, &request.expected, &request.tolerance);
    let (text, payloads) = set_apart(|| serde_json::to_vec(&described));
    let mut hasher = blake3::Hasher::new();
    hasher.update(&text.ok()?);
    for payload in payloads {
        // The lengths make the boundaries between payloads unambiguous.
        hasher.update(&payload.decoded_len().ok()?.to_le_bytes());
        match payload.on_device() {
            // The id is unique to this copy of the content, so a contract with such content is
            // examined each time.
            Some(content) => hasher.update(content.id.as_bytes()),
            None => hasher.update_reader(payload.reader()).ok()?,
        };
    }
    Some(hasher.finalize())
}

/// Says whether a run must examine its contract for weaknesses.
#[derive(Debug, PartialEq)]
pub(crate) enum Look {
    /// The contract has no expectation, so there is nothing to examine.
    Needless,
    /// The contract was examined before, with these weaknesses.
    Known(Vec<Weakness>),
    /// The next run must examine the contract.
    Wanted(blake3::Hash),
}

impl Look {
    /// Returns whether the run must examine the contract.
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(self, Look::Wanted(_))
    }
}

impl LintedContracts {
    /// Returns whether a run must examine a contract with this hash (see [`identity`]).
    pub(crate) fn look(&self, contract: Option<blake3::Hash>) -> Look {
        let Some(contract) = contract else { return Look::Needless };
        match self.known.get(contract) {
            Some(known) => Look::Known(known),
            None => Look::Wanted(contract),
        }
    }

    /// Adds known weaknesses of the contract to the outcome of a run, or stores those that the run
    /// found.
    pub(crate) fn settle(&self, look: Look, outcome: &mut RunOutcome<EvaluatedRun>) {
        match look {
            Look::Known(known) => outcome.told.weaknesses = known,
            // A run that failed, or whose checks did not all pass, may not have examined the
            // contract.
            Look::Wanted(contract) if outcome.failure.is_none() && outcome.told.all_passed() => {
                self.known.put(contract, outcome.told.weaknesses.clone());
            }
            Look::Wanted(_) | Look::Needless => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_model::FailureCode;
    use warpgauge_tensor::Dtype;
    use warpgauge_validate::{WeaknessCode, compare, resolve};
    use warpgauge_worker::protocol::{Blame, OutputCheck, RunFailure};

    #[test]
    fn contracts_are_told_apart_by_what_they_expect_however_large_that_is() {
        let contract = |kernel: &str, elements: usize, last: u8| {
            let mut data = vec![7; elements];
            data[elements - 1] = last;
            let text = serde_json::json!({
                "kernel": {"source_code": kernel, "kernel_type": "cuda", "io": {"args": [
                    {"name": "y", "type": "tensor", "role": "output",
                     "tensor_spec": {"shape": [elements], "dtype": "uint8"}}]}},
                "expected": {"y": {"data": {"data_b64": base64(&data)}}},
            });
            let read = warpgauge_contract::from_value::<EvaluateRequest>(text).unwrap();
            identity(&read, Owner::SERVER).unwrap()
        };
        for elements in [8, 1 << 17, 3 << 20] {
            let one = contract("a", elements, 1);
            assert_eq!(one, contract("b", elements, 1), "whatever the kernel");
            assert_ne!(one, contract("a", elements, 2));
            assert_ne!(one, contract("a", elements + 1, 1));
        }
    }

    fn base64(bytes: &[u8]) -> String {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    #[test]
    fn a_contract_is_looked_at_until_a_run_has_seen_all_of_it() {
        let contracts = LintedContracts::default();
        let contract = blake3::hash(b"contract");
        let tolerance = resolve(None, Dtype::Uint8, &[]);
        let right = compare(Dtype::Uint8, &[1], &[0], &[0], None, &tolerance);
        let found = Weakness {
            code: WeaknessCode::ZerosPass,
            output: "y".to_owned(),
            message: "zeros pass".to_owned(),
            blocks: true,
        };
        let mut outcome = RunOutcome {
            told: EvaluatedRun {
                weaknesses: vec![found.clone()],
                checks: vec![OutputCheck { buffer: 0, comparison: right }],
                ..EvaluatedRun::default()
            },
            failure: Some(RunFailure {
                code: FailureCode::Timeout,
                message: String::new(),
                blame: Blame::Candidate,
            }),
            ..RunOutcome::default()
        };
        contracts.settle(contracts.look(Some(contract)), &mut outcome);
        assert!(contracts.look(Some(contract)).is_wanted(), "the run ended early");
        outcome.failure = None;
        contracts.settle(contracts.look(Some(contract)), &mut outcome);
        let mut next = RunOutcome::default();
        let look = contracts.look(Some(contract));
        assert!(!look.is_wanted());
        contracts.settle(look, &mut next);
        assert_eq!(next.told.weaknesses, [found]);
        assert_eq!(contracts.look(None), Look::Needless);
    }
}
