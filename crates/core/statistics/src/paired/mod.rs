//! Paired comparison, which decides whether the candidate is faster or slower than the reference.
//! The main functions are [`decide_at_look`] and [`decide_at_end`].
//!
//! Both kernels run side by side in blocks of four slots, ABBA or BAAB. A linear drift within a
//! block affects both arms alike. Buffers and modules are set up anew for every block, so that
//! their placement is noise, not bias. Each block gives one number, the logarithm of the ratio of
//! the times; the blocks are the sample. A difference is reported if it exceeds both a margin *and*
//! chance. If neither a difference nor equality can be shown, the verdict is inconclusive.

mod apart;
mod block;
mod drops;
mod estimate;
mod fdr;
mod holm;
mod policy;
mod processes;
mod ranking;
mod report;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod verdict;

pub use block::{Arm, BlockOrder, PairedBlock};
pub use drops::{DropReason, drop_reasons};
pub use estimate::{Estimate, hodges_lehmann, t_quantile};
pub use fdr::benjamini_hochberg;
pub use holm::holm_adjusted;
pub use policy::{ComparePolicy, MAX_BLOCKS};
pub use processes::{AcrossProcesses, across_processes};
pub use ranking::{PairOutcome, RankError, RankedCandidate, RankedPair, Ranking, rank};
pub use report::{
    BlockReport, DropCount, PairedComparison, PairedReason, PairedVerdict, RatioEstimate,
};
pub use verdict::{
    LookOutcome, MIN_BLOCKS_HOPELESS, conclude, decide_at_end, decide_at_look, is_hopeless,
};
