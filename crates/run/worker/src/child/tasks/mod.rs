//! The tasks of judges and workers.
//!
//! - `evaluation`: launches, times and verifies a program
//! - `paired`: times two kernels side by side, block by block
//! - `prepared_sets`: inputs of sealed launches that the judge prepares ahead
//! - `sealed_share`: judges the sealed launches of a kernel
//! - `serving`: makes launches for a judge

pub(crate) mod evaluation;
pub(crate) mod paired;
mod prepared_sets;
pub(crate) mod sealed_share;
pub(crate) mod serving;
