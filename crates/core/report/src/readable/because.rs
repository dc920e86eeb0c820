//! Texts for the reasons of verdicts on times.

use warpgauge_statistics::paired::PairedReason;

/// Returns the text of a reason.
pub fn because(reason: PairedReason) -> &'static str {
    match reason {
        PairedReason::BeyondMargin => "the whole interval lies beyond the margin",
        PairedReason::WithinEquivalence => "the whole interval lies within the equivalence limit",
        PairedReason::DifferenceUnresolved => {
            "the interval reaches from what matters to what does not: try --preset ci or deep, \
             or a quieter device"
        }
        PairedReason::AllBlocksDropped => "every block was dropped",
        PairedReason::TooManyDropped => "too many blocks were dropped: the device is not quiet",
        PairedReason::SlotsApart => {
            "many blocks were dropped, but no disturbance was as large as the difference"
        }
        PairedReason::TooFewBlocks => {
            "fewer than 8 blocks are left: give `measure.max_time` more, or --preset ci"
        }
        PairedReason::DependentBlocks => "successive blocks depended on one another",
        PairedReason::MeansCompared => {
            "means are compared: some launches of one kernel may bear the work of others"
        }
        PairedReason::RatioDrifts => {
            "the ratio changed while it was measured, and its last third does not show the difference"
        }
        PairedReason::BlocksMerged => "successive blocks depended on one another and were merged",
        PairedReason::EstimatorsDisagree => "a few blocks move the mean out of the interval",
        PairedReason::EndedEarly => "the time was up before the last look",
        PairedReason::SpreadTooWide => {
            "the times vary so much that more blocks would not have decided it in the time: quieten the machine, or \
             raise `measure.max_time`"
        }
        PairedReason::MarginFromResolution => "the margin is one tick of the clock",
        PairedReason::MarginFromFloor => "the margin is what the case showed against itself",
        PairedReason::ClockInduced => "times and cycles disagree: the clock made the difference",
        PairedReason::ClockMasked => "the cycles differ and the clock made up for it",
        PairedReason::ClockUnknown => "the clock was not known throughout: cycles not compared",
    }
}
