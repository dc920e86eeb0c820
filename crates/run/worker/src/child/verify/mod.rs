//! What a launch left, and whether that is right.
//!
//! - `comparison`: an output beside what is expected of it
//! - `counted_launch`: the launch that the emulator counts
//! - `expectations`: what is expected
//! - `explanation`: what is wrong, for people
//! - `lint`: what would pass without doing the work
//! - `on_device`: comparing on the device, where that suffices
//! - `oracle`: which launches are verified, when, and what is reported of those that are wrong
//! - `outputs`: outputs, copied and hashed
//! - `references`: the reference kernels, and what they expect
//! - `surroundings`: guard bands and inputs that a launch must not touch
//! - `ties`: indices that differ between equal keys alone
//! - `tolerance`: how close is close enough, where the caller leaves it open
//! - `verdicts`: what launches left beside what is expected of them
//! - `written`: what launches left of their outputs' fillings

pub(crate) mod comparison;
pub(crate) mod counted_launch;
pub(crate) mod expectations;
pub(crate) mod explanation;
pub(crate) mod lint;
pub(crate) mod on_device;
pub(crate) mod oracle;
pub(crate) mod outputs;
pub(crate) mod references;
pub(crate) mod surroundings;
pub(crate) mod ties;
pub(crate) mod tolerance;
pub(crate) mod verdicts;
pub(crate) mod written;
