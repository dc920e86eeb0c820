//! Sweeps: one contract, evaluated at every point of the product of its axes.
//!
//! **Axes.** `axes` gives each axis a name (letters, digits, `_`) and a list of values: integers,
//! other numbers, booleans, texts, and ranges.
//!
//! ```text
//! range  := number ".." number ["by" step]     both ends included; step 1 where it is left out
//! step   := number                             added
//!         | ("x" | "*") integer                multiplied, by 2 or more
//! number := ["-"] digits ["." digits]  |  ["-"] digits "^" digits
//! ```
//!
//! A text that starts with a digit or a sign and holds `..` is a range, and one such as `2^20` is
//! an integer; all other texts are themselves. Points follow each other in the order of the axes'
//! names, the last name fastest: a JSON object has no order of its own.
//!
//! **References.** In every text of the contract, except source code and encoded data, `$name` and
//! `${name}` stand for the axis' value; `$$` is a dollar sign. A text that is nothing but one
//! reference becomes the value itself, with its type; below `metadata` all values are texts. Where
//! the contract takes a number, a text is then an integer expression ([`super::expr`]):
//! `shape: ["$n * 2"]`.
//!
//! The result is an ordinary contract, parsed and checked as every other.

mod axes;
mod numbers;
mod plan;
mod range;
mod substitute;

pub use axes::{AxisValue, SweepAxis};
pub use plan::{SweepPlan, SweepRequest};

#[cfg(test)]
mod tests;
