//! What a kernel's own code says of how to run it: a contract guessed from parameters, names and code.
//!
//! The compiler tells the types ([`CompiledParameter`]); names and guards tell sizes ([`contract()`]). Nothing
//! here is certain, so everything that was guessed is told, with its reason ([`Guess`]). Pure: no
//! compiler is called, and no file is read.
//!
//! The work is bounded by the length of the source: every pass is linear, but for the walk from a name
//! to what it is made of, whose depth is bounded.

mod body;
mod entries;
mod guess;
mod launch;
mod lexer;
mod macros;
mod names;
mod upper;
mod yaml;

pub use entries::{KernelEntry, entries, is_whole_program};
pub use guess::{CompiledParameter, Guess, contract};
pub use yaml::text;
