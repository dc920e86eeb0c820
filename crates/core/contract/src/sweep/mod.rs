//! Sweeps: one contract, evaluated at every point of the product of its axes.
//!
//! **Axes.** `axes` gives each axis a name (letters, digits, `_`) and a list of values: integers,
//! other numbers, booleans, strings, and ranges.
//!
//! ```text
//! range  := number ".." number ["by" step]     both ends included; the default step is 1
//! step   := number                             added
//! | ("x" | "*") integer                multiplied, by 2 or more
//! number := ["-"] digits ["." digits]  |  ["-"] digits "^" digits
//! ```
//!
//! A string that starts with a digit or a sign and contains `..` is a range, and a string such as
//! `2^20` is an integer. All other strings are used as they are. Points are in the order of the
//! axes' names, with the last name varying fastest, because a JSON object is unordered.
//!
//! **References.** `$name` and `${name}` refer to an axis's value in every string of the contract,
//! except source code and encoded data. `$$` is a dollar sign. A string that consists of one
//! reference becomes the value itself, with its type; below `metadata` all values become strings. A
//! string in place of a number is an integer expression ([`super::expr`]): `shape: ["$n * 2"]`.
//!
//! The result is an ordinary contract, parsed and checked like any other.

mod axes;
mod numbers;
mod plan;
mod range;
mod substitute;

pub use axes::{AxisValue, SweepAxis};
pub use plan::{SweepPlan, SweepRequest};
pub use substitute::axes_in;

#[cfg(test)]
mod tests;
