//! Ranks of several candidates from their paired comparisons. The main function is [`rank`].

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::holm::holm_adjusted;
use super::report::{PairedComparison, PairedVerdict};

/// Maximum number of candidates of one ranking. The number of pairs grows with the square.
const MAX_CANDIDATES: usize = 32;

/// Comparison of two candidates.
#[derive(Debug, Clone, Copy)]
pub struct PairOutcome<'a> {
    /// Index of the reference of the pair.
    pub reference: usize,
    /// Index of the candidate of the pair.
    pub candidate: usize,
    pub comparison: &'a PairedComparison,
}

/// Ranking of several candidates and their reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// Kernels by rank; kernels of the same rank by index.
    pub candidates: Vec<RankedCandidate>,
    /// Pairs of kernels, each with its verdict after correction.
    pub pairs: Vec<RankedPair>,
}

/// Rank of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedCandidate {
    /// Index of the kernel: 0 for the reference, from 1 for the candidates.
    pub index: u32,
    /// 1 + the number of faster kernels. Kernels without a significant difference share a rank.
    pub rank: u32,
    /// Time of the kernel divided by that of the reference, from their comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_time: Option<f64>,
}

/// Verdict on one of several pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedPair {
    /// Index of the pair's reference.
    pub reference: u32,
    /// Index of the pair's candidate.
    pub candidate: u32,
    /// Verdict on the candidate. `faster` and `slower` are significant after Holm's correction over all pairs.
    pub verdict: PairedVerdict,
    /// p-value after the correction; 1 if the comparison has no p-value.
    pub p_adjusted: f64,
    /// Time of the reference divided by the time of the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
}

/// Reason why pairs cannot be ranked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RankError {
    /// There are too many candidates.
    #[error("cannot rank {count} candidates: at most {MAX_CANDIDATES}; compare fewer at a time")]
    TooMany {
        /// Number of candidates.
        count: usize,
    },
    /// A pair contains an unknown index, equal indices, or repeats an earlier pair.
    #[error(
        "cannot rank {count} candidates: pair ({reference}, {candidate}) is out of range or repeated"
    )]
    Pair {
        /// Number of candidates.
        count: usize,
        /// Index of the reference.
        reference: usize,
        /// Index of the candidate.
        candidate: usize,
    },
}

/// Ranks `count` candidates by the pairs that were compared. The probability of any incorrect
/// `faster`, and of any incorrect `slower`, is at most `alpha` (Holm's correction of the p-values).
/// A missing or inconclusive pair ranks neither candidate before the other.
///
/// # Errors
///
/// There are more than 32 candidates, or a pair is out of range or repeated.
pub fn rank(count: usize, pairs: &[PairOutcome], alpha: f64) -> Result<Ranking, RankError> {
    check(count, pairs)?;
    let p_values: Vec<f64> =
        pairs.iter().map(|pair| pair.comparison.p_value.unwrap_or(1.0)).collect();
    let ranked: Vec<RankedPair> =
        pairs.iter().zip(holm_adjusted(&p_values)).map(|(pair, p)| judge(pair, p, alpha)).collect();
    let mut ranks = vec![1; count];
    for (pair, ranked) in pairs.iter().zip(&ranked) {
        match ranked.verdict {
            PairedVerdict::Faster => ranks[pair.reference] += 1,
            PairedVerdict::Slower => ranks[pair.candidate] += 1,
            PairedVerdict::Same | PairedVerdict::Inconclusive => {}
        }
    }
    let mut candidates: Vec<RankedCandidate> = ranks
        .into_iter()
        .enumerate()
        .map(|(index, rank)| RankedCandidate {
            index: index as u32,
            rank,
            relative_time: relative_time(index, pairs),
        })
        .collect();
    candidates.sort_by_key(|candidate| candidate.rank);
    Ok(Ranking { candidates, pairs: ranked })
}

fn check(count: usize, pairs: &[PairOutcome]) -> Result<(), RankError> {
    if count > MAX_CANDIDATES {
        return Err(RankError::TooMany { count });
    }
    let mut seen = BTreeSet::new();
    for pair in pairs {
        let (reference, candidate) = (pair.reference, pair.candidate);
        let key = (reference.min(candidate), reference.max(candidate));
        if reference == candidate || key.1 >= count || !seen.insert(key) {
            return Err(RankError::Pair { count, reference, candidate });
        }
    }
    Ok(())
}

fn judge(pair: &PairOutcome, p_adjusted: f64, alpha: f64) -> RankedPair {
    let comparison = pair.comparison;
    let verdict = match comparison.verdict {
        PairedVerdict::Faster | PairedVerdict::Slower if p_adjusted > alpha => {
            PairedVerdict::Inconclusive
        }
        verdict => verdict,
    };
    RankedPair {
        reference: pair.reference as u32,
        candidate: pair.candidate as u32,
        verdict,
        p_adjusted,
        speedup: comparison.speedup,
    }
}

fn relative_time(index: usize, pairs: &[PairOutcome]) -> Option<f64> {
    if index == 0 {
        return Some(1.0);
    }
    pairs.iter().find_map(|pair| match (pair.reference, pair.candidate) {
        (0, candidate) if candidate == index => Some(pair.comparison.time?.ratio),
        (reference, 0) if reference == index => Some(1.0 / pair.comparison.time?.ratio),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{TYPICAL, compare, compare_with};
    use super::super::{ComparePolicy, PairedReason};
    use super::*;

    #[test]
    fn three_candidates_in_order() {
        // With times 1, 1.05 and 1, the first and the last share a rank.
        let policy = ComparePolicy::default().for_family(3);
        let slower = compare_with(TYPICAL, 1.05, 1, &policy);
        let same = compare_with(TYPICAL, 1.0, 2, &policy);
        let faster = compare_with(TYPICAL, 1.0 / 1.05, 3, &policy);
        let pairs = [(0, 1, &slower), (0, 2, &same), (1, 2, &faster)].map(
            |(reference, candidate, comparison)| PairOutcome { reference, candidate, comparison },
        );
        let ranking = rank(3, &pairs, 0.01).expect("valid pairs");
        let places: Vec<_> = ranking.candidates.iter().map(|c| (c.index, c.rank)).collect();
        assert_eq!(places, [(0, 1), (2, 1), (1, 3)]);
        let relative = ranking.candidates[2].relative_time.expect("compared with 0");
        assert!((relative - 1.05).abs() < 0.01, "{relative}");
        assert!(ranking.pairs.iter().all(|pair| pair.p_adjusted <= 1.0));
    }

    #[test]
    fn what_is_called_alone_may_not_stand_among_many() {
        let comparison = compare(TYPICAL, 1.02, 5);
        assert_eq!(comparison.verdict, PairedVerdict::Slower);
        let pair = PairOutcome { reference: 0, candidate: 1, comparison: &comparison };
        let judged = judge(&pair, 0.02, 0.01);
        assert_eq!(judged.verdict, PairedVerdict::Inconclusive);
        let ranking = rank(2, &[pair], 0.01).expect("valid pair");
        assert_eq!(ranking.pairs[0].verdict, PairedVerdict::Slower);
        assert_eq!(comparison.reasons[0], PairedReason::BeyondMargin);
    }

    #[test]
    fn pairs_that_are_none_are_refused() {
        let comparison = compare(TYPICAL, 1.0, 1);
        let pair =
            |reference, candidate| PairOutcome { reference, candidate, comparison: &comparison };
        assert!(matches!(rank(33, &[], 0.01), Err(RankError::TooMany { count: 33 })));
        for bad in [vec![pair(0, 0)], vec![pair(0, 2)], vec![pair(0, 1), pair(1, 0)]] {
            assert!(matches!(rank(2, &bad, 0.01), Err(RankError::Pair { .. })));
        }
    }
}
