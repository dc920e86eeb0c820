//! Detection of differences that exceed every disturbance.

use super::block::{Arm, PairedBlock};

/// Returns whether every slot of one arm was slower, by more than `ln_margin`, than every slot of
/// the other. Rejected blocks are included. If the result is true, no disturbance of the device was
/// as large as the difference, and the rejected blocks support the same verdict as the others.
pub(super) fn are_apart(blocks: &[PairedBlock], ln_margin: f64) -> bool {
    let mut ranges = [(f64::INFINITY, f64::NEG_INFINITY); 2];
    for block in blocks {
        for (arm, (least, most)) in [Arm::A, Arm::B].into_iter().zip(&mut ranges) {
            let Some(slots) = block.ln_medians(arm) else { return false };
            *least = slots.into_iter().fold(*least, f64::min);
            *most = slots.into_iter().fold(*most, f64::max);
        }
    }
    let [a, b] = ranges;
    b.0 - a.1 > ln_margin || a.0 - b.1 > ln_margin
}
