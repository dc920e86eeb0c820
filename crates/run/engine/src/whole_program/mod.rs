//! Whole programs: a stranger's file, run as it is.
//!
//! A program is started through this program's own hidden command ([`child`]), which gives up all but what
//! it may touch and then becomes it. [`run`] starts one, keeps what it prints within bounds, and tells how
//! it ended. It judges nothing.

pub mod child;
pub mod counted;
mod listening;
mod run;

pub use run::{NotRun, ProgramDevice, ProgramEnd, WholeProgram};
