//! Guesses how to run a kernel: a contract derived from its parameters, names and code. The main
//! function is [`contract()`].
//!
//! The compiler provides the types ([`CompiledParameter`]). Names and guards provide the sizes. The
//! result is not certain, so every guess is reported with its reason ([`Guess`]). The module calls
//! no compiler and reads no files.
//!
//! The work is bounded by the length of the source: every pass is linear, except the search from a
//! name to its definitions, which has a bounded depth.

mod body;
mod entries;
mod guess;
mod kinds;
mod launch;
mod launched;
mod lexer;
mod macros;
mod names;
mod objects;
mod pointers;
pub mod python;
mod shape;
mod upper;
mod wishes;
mod yaml;

pub use entries::{KernelEntry, entries, is_whole_program};
pub use guess::{CompiledParameter, Guess, contract};
pub use wishes::Wishes;
pub use yaml::text;
