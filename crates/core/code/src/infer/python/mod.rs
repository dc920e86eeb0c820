//! Guesses the contract of a Triton kernel from the text of its module, without an interpreter. The
//! main function is [`contract`].
//!
//! - `lexer`: logical lines and tokens of Python
//! - `module`: kernels, how they use their parameters, and their launches
//! - `host`: meaning of the launch arguments in the host code
//! - `sizes`: shapes and values
//! - `reach`: sizes that no name gives
//! - `guess`: arguments and the grid

mod guess;
mod host;
mod lexer;
mod module;
mod reach;
mod sizes;
#[cfg(test)]
mod tests;

pub use guess::{TritonGuess, contract};
