//! Decision rules of comparisons. The main type is [`ComparePolicy`].

use serde::{Deserialize, Serialize};

/// Maximum number of blocks of one comparison.
pub const MAX_BLOCKS: u32 = 1024;

/// Smallest equivalence limit, as a multiple of the margin, so that a confidence interval fits between margin and
/// limit.
const EQUIVALENCE_MARGINS: f64 = 2.0;

/// Widest relative equivalence limit for the verdict `same`, unless the caller requests a wider
/// one. A wider limit only shows that the device or clock is too coarse.
const WIDEST_SAME: f64 = 0.5;

/// Decision rule of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparePolicy {
    /// Numbers of blocks at which a verdict is sought, ascending, at most [`MAX_BLOCKS`].
    pub looks: Vec<u32>,
    /// Probability of an incorrect `slower` over all looks, and also of an incorrect `faster`.
    pub alpha: f64,
    /// Minimum relative margin τ; smaller differences are not reported.
    pub margin: f64,
    /// Minimum relative equivalence limit Δ: the verdict `same` means a difference within it.
    pub equivalence: f64,
    /// Resolution of one reported sample in milliseconds: the tick of the clock divided by the
    /// launches per sample; 0 if negligible.
    pub resolution_ms: f64,
    /// Relative difference measured when this case was compared with itself; 0 if not calibrated.
    pub floor: f64,
    /// Relative standard deviation of the difference between one arm's slots, if calibrated.
    pub calibrated_spread: Option<f64>,
    /// Maximum share of blocks that may be rejected.
    pub max_dropped: f64,
}

impl Default for ComparePolicy {
    /// Returns the default: looks at 16, 32, 64 and 128 blocks, 1 % of incorrect verdicts in either
    /// direction, 0.5 % margin, `same` within 1 %, and at most a fifth of the blocks rejected.
    fn default() -> Self {
        Self {
            looks: vec![16, 32, 64, 128],
            alpha: 0.01,
            margin: 0.005,
            equivalence: 0.01,
            resolution_ms: 0.0,
            floor: 0.0,
            calibrated_spread: None,
            max_dropped: 0.2,
        }
    }
}

impl ComparePolicy {
    /// Returns the error probability of one bound at one look: α, divided equally among the looks
    /// (Bonferroni).
    pub fn alpha_per_look(&self) -> f64 {
        self.alpha / self.looks.len().max(1) as f64
    }

    /// Returns the policy with an additional look, at half of the blocks of the first look. It suits blocks that take
    /// a long time and vary little. A policy with a single look stays unchanged.
    #[must_use]
    pub fn with_early_look(mut self) -> Self {
        if let [first, _, ..] = self.looks[..] {
            self.looks.insert(0, first.div_ceil(2));
        }
        self
    }

    /// Returns the policy for each of several `comparisons` that are judged together. It divides α
    /// equally, so that each verdict also holds after Holm's correction over all
    /// ([`super::holm_adjusted`]).
    pub fn for_family(&self, comparisons: usize) -> Self {
        Self { alpha: self.alpha / comparisons.max(1) as f64, ..self.clone() }
    }

    /// Returns the relative margin τ for kernels that take `typical_ms`: the largest of the
    /// policy's margin, the difference that one clock tick makes, and the difference of the case
    /// from itself.
    pub fn margin_for(&self, typical_ms: f64) -> f64 {
        self.margin.max(self.resolution_for(typical_ms)).max(self.floor)
    }

    /// Returns the relative difference that one clock tick makes.
    pub fn resolution_for(&self, typical_ms: f64) -> f64 {
        if typical_ms > 0.0 { self.resolution_ms / typical_ms } else { 0.0 }
    }

    /// Returns whether kernels within this relative equivalence limit may be reported as the same.
    pub(super) fn may_be_same(&self, equivalence: f64) -> bool {
        equivalence <= self.equivalence_for(self.margin).max(WIDEST_SAME)
    }

    /// Returns the relative equivalence limit Δ for a margin.
    pub fn equivalence_for(&self, margin: f64) -> f64 {
        self.equivalence.max(EQUIVALENCE_MARGINS * margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_the_largest_of_three() {
        let policy = ComparePolicy { resolution_ms: 0.0005, ..ComparePolicy::default() };
        assert_eq!(policy.margin_for(1.0), 0.005);
        assert_eq!(policy.margin_for(0.01), 0.05);
        assert_eq!(ComparePolicy { floor: 0.03, ..policy.clone() }.margin_for(1.0), 0.03);
        assert_eq!(policy.equivalence_for(0.005), 0.01);
        assert_eq!(policy.equivalence_for(0.05), 0.1);
        assert_eq!(policy.alpha_per_look(), 0.0025);
        assert_eq!(policy.for_family(10).alpha_per_look(), 0.00025);
    }

    #[test]
    fn an_early_look_takes_its_share_of_the_error_probability() {
        let policy = ComparePolicy::default().with_early_look();
        assert_eq!(policy.looks, [8, 16, 32, 64, 128]);
        assert_eq!(policy.alpha_per_look(), 0.002);
        let one = ComparePolicy { looks: vec![64], ..ComparePolicy::default() };
        assert_eq!(one.clone().with_early_look(), one, "the number of blocks is given");
    }
}
