//! Words for verdicts of comparisons, and the tone in which verdicts are shown.

use warpgauge_statistics::CountedVerdict;
use warpgauge_statistics::paired::PairedVerdict;

use crate::KernelVerdict;

/// Tone of a statement. A terminal shows it by a colour, and a page by a colour and a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Favourable, for example correct or faster.
    Good,
    /// Inconclusive, or with a reservation.
    Doubt,
    /// Unfavourable to the kernel.
    Bad,
    /// Neutral: a terminal shows the word without a colour.
    Plain,
}

impl Tone {
    /// Returns the tone of a verdict on a kernel.
    pub fn of_verdict(verdict: KernelVerdict) -> Self {
        match verdict {
            KernelVerdict::Correct => Tone::Good,
            KernelVerdict::NotChecked | KernelVerdict::Weak | KernelVerdict::Error => Tone::Doubt,
            KernelVerdict::Wrong | KernelVerdict::Failed | KernelVerdict::NotCompiled => Tone::Bad,
        }
    }
}

/// Returns the tone and the word for the verdict of a comparison of times.
pub fn word_of_times(verdict: PairedVerdict) -> (Tone, &'static str) {
    match verdict {
        PairedVerdict::Faster => (Tone::Good, "faster"),
        PairedVerdict::Slower => (Tone::Bad, "slower"),
        PairedVerdict::Same => (Tone::Good, "same"),
        PairedVerdict::Inconclusive => (Tone::Doubt, "inconclusive"),
    }
}

/// Returns the tone and the words for the verdict of a comparison of counts.
pub fn word_of_counts(verdict: CountedVerdict) -> (Tone, &'static str) {
    match verdict {
        CountedVerdict::LessWork => (Tone::Good, "less work"),
        CountedVerdict::SameWork => (Tone::Good, "same work"),
        CountedVerdict::MoreWork => (Tone::Bad, "more work"),
        CountedVerdict::Mixed => (Tone::Doubt, "mixed work"),
    }
}
