//! The emulator against a GPU, instruction by instruction.
#![allow(missing_docs)]

mod coverage;
mod golden;
mod refusals;
mod suite;
