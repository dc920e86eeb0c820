//! The tasks of judges and workers.
//!
//! - `evaluation`: a program launched, timed and verified
//! - `paired`: two kernels side by side, block by block
//! - `sealed_share`: the sealed launches of a kernel, judged
//! - `serving`: launches made for a judge

pub(crate) mod evaluation;
pub(crate) mod paired;
pub(crate) mod sealed_share;
pub(crate) mod serving;
