//! Whole programs: untrusted executables, which run unchanged. The main type is [`WholeProgram`].
//!
//! A program is started through a hidden subcommand of warpgauge ([`child`]). The child gives up
//! all rights except those that the program needs, and then becomes the program. [`run`] starts a
//! child, limits the captured output, and reports how the program ended. It does not judge the
//! result.

pub mod child;
pub mod counted;
mod listening;
mod run;

pub use run::{NotRun, ProgramDevice, ProgramEnd, WholeProgram};
