//! Verification of a launch's outputs.
//!
//! - `arranged`: outputs that are correct in more than one order
//! - `comparison`: comparison of an output with its expectation
//! - `counted_launch`: the launch that the emulator counts
//! - `expectations`: expected outputs
//! - `explanation`: the cause of a wrong result
//! - `lint`: detection of contracts that a kernel can pass without doing the work
//! - `on_device`: comparison on the device, if that suffices
//! - `oracle`: selects the time of verification, and reports wrong launches
//! - `outputs`: outputs copied to the host and hashed
//! - `references`: the reference kernels, which compute expectations
//! - `surroundings`: guard bands and inputs that a launch must not change
//! - `ties`: indices that differ only among equal keys
//! - `tolerance`: tolerances that the caller does not specify
//! - `verdicts`: verdicts on the outputs of launches
//! - `written`: proof that outputs were not written

pub(crate) mod arranged;
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
