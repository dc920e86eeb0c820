//! What a comparison is to decide, and how surely.

use serde::{Deserialize, Serialize};

/// Most blocks of one comparison.
pub const MAX_BLOCKS: u32 = 1024;

/// Equivalence is never asked more finely than this many margins: between them must be room for an
/// interval.
const EQUIVALENCE_MARGINS: f64 = 2.0;

/// The widest equivalence, relative, within which two kernels are called the same where nobody asked for a wider
/// one: a device or clock too coarse to tell more shows nothing.
const WIDEST_SAME: f64 = 0.5;

/// The decision rule of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparePolicy {
    /// Numbers of blocks at which a verdict is sought, ascending, [`MAX_BLOCKS`] at most.
    pub looks: Vec<u32>,
    /// Probability of a wrong `slower` over all looks, and as much of a wrong `faster`.
    pub alpha: f64,
    /// Least margin τ, relative: smaller differences are not called.
    pub margin: f64,
    /// Least equivalence limit Δ, relative: `same` means within it.
    pub equivalence: f64,
    /// Resolution of one reported sample, milliseconds: the clock's tick over the launches per
    /// sample; 0 if negligible.
    pub resolution_ms: f64,
    /// Difference found when this case was compared with itself, relative; 0 if not calibrated.
    pub floor: f64,
    /// Standard deviation of the difference between one arm's slots, relative, if calibrated.
    pub calibrated_spread: Option<f64>,
    /// Share of blocks that may be dropped.
    pub max_dropped: f64,
}

impl Default for ComparePolicy {
    /// Looks at 16, 32, 64 and 128 blocks, 1 % of wrong verdicts either way, 0.5 % margin, `same`
    /// within 1 %, a fifth of the blocks dropped at most.
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
    /// The error probability of one bound at one look: α, split equally over the looks (Bonferroni).
    pub fn alpha_per_look(&self) -> f64 {
        self.alpha / self.looks.len().max(1) as f64
    }

    /// The policy with a look at half of the first look's blocks before it, where several looks are sought: for blocks
    /// that take long and vary little.
    #[must_use]
    pub fn with_early_look(mut self) -> Self {
        if let [first, _, ..] = self.looks[..] {
            self.looks.insert(0, first.div_ceil(2));
        }
        self
    }

    /// The policy of each of `comparisons` that are judged together: α split equally, so that what
    /// one of them calls stands after Holm's correction over all ([`super::holm_adjusted`]) too.
    pub fn for_family(&self, comparisons: usize) -> Self {
        Self { alpha: self.alpha / comparisons.max(1) as f64, ..self.clone() }
    }

    /// The margin τ for kernels that take `typical_ms`, relative: the policy's, the difference that
    /// one tick of the clock makes, or that of the case with itself, whichever is most.
    pub fn margin_for(&self, typical_ms: f64) -> f64 {
        self.margin.max(self.resolution_for(typical_ms)).max(self.floor)
    }

    /// The difference that one tick of the clock makes, relative.
    pub fn resolution_for(&self, typical_ms: f64) -> f64 {
        if typical_ms > 0.0 { self.resolution_ms / typical_ms } else { 0.0 }
    }

    /// Whether kernels that differ by no more than this, relative, may be called the same.
    pub(super) fn may_be_same(&self, equivalence: f64) -> bool {
        equivalence <= self.equivalence_for(self.margin).max(WIDEST_SAME)
    }

    /// The equivalence limit Δ that goes with a margin, relative.
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
