//! Texts for the reasons of verdicts on times.

use warpgauge_statistics::paired::PairedReason;

/// Returns the text of a reason.
pub fn because(reason: PairedReason) -> &'static str {
    match reason {
        PairedReason::BeyondMargin => "the whole interval lies beyond the margin",
        PairedReason::WithinEquivalence => "the whole interval lies within the equivalence limit",
        PairedReason::DifferenceUnresolved => {
            "the interval includes relevant and irrelevant differences: try --preset ci or deep, \
             or a quieter device"
        }
        PairedReason::AllBlocksDropped => "every block was dropped",
        PairedReason::TooManyDropped => "too many blocks were dropped: the device is not quiet",
        PairedReason::SlotsApart => {
            "many blocks were dropped, but no disturbance was as large as the difference"
        }
        PairedReason::TooFewBlocks => {
            "fewer than 8 blocks are left: raise `measure.max_time`, or use --preset ci"
        }
        PairedReason::DependentBlocks => "successive blocks depended on one another",
        PairedReason::MeansCompared => {
            "means are compared: some launches of a kernel may do the work of other launches"
        }
        PairedReason::RatioDrifts => {
            "the ratio changed while it was measured, and its last third does not show the difference"
        }
        PairedReason::BlocksMerged => "successive blocks depended on one another and were merged",
        PairedReason::EstimatorsDisagree => "a few blocks move the mean out of the interval",
        PairedReason::EndedEarly => "the time limit was reached before the last planned look",
        PairedReason::SpreadTooWide => {
            "the times vary so much that no verdict was possible within the time limit: use a \
             quieter machine, or raise `measure.max_time`"
        }
        PairedReason::MarginFromResolution => "the margin is one tick of the clock",
        PairedReason::MarginFromFloor => {
            "the margin is the difference that the case showed when \
                                          compared with itself"
        }
        PairedReason::ClockInduced => "times and cycles disagree: the clock made the difference",
        PairedReason::ClockMasked => {
            "the cycles differ, but a change of the clock hid the \
                                      difference in time"
        }
        PairedReason::ClockUnknown => {
            "the clock was not known for all blocks: cycles are not \
                                       compared"
        }
    }
}
