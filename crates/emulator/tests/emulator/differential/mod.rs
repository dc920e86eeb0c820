//! The emulator against a GPU, instruction by instruction.

mod coverage;
mod golden;
mod refusals;
mod suite;
