//! The instruction forms that the emulator and a GPU are compared on, and the formats in which
//! results are kept.
//!
//! Everything follows from one seed: texts and operands are the same on every machine, so that
//! results are all that has to be stored.
#![allow(dead_code)]

pub mod compare;
pub mod dump;
pub mod emulate;
pub mod form;
pub mod forms;
pub mod golden;
pub mod module;
pub mod set;
pub mod value;
