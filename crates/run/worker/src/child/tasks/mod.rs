//! The tasks of judges and workers.
//!
//! - `evaluation`: launches, times and verifies a program
//! - `paired`: times two kernels side by side, block by block
//! - `sealed_share`: judges the sealed launches of a kernel
//! - `serving`: makes launches for a judge

pub(crate) mod evaluation;
pub(crate) mod paired;
pub(crate) mod sealed_share;
pub(crate) mod serving;
