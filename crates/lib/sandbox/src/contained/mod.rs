//! A foreign program with everything it starts: bounded, and ended as a whole.
//!
//! Profilers start launchers, agents and daemons, some of which leave their process group. So every
//! process of a tree carries a mark in its environment, by which it is found again: [`tree`]. What
//! the tree prints is kept up to a bound and drained beyond it: [`capture`]. [`process`] starts it.

mod capture;
mod process;
mod tree;

pub use capture::CapturedText;
pub use process::{ContainedProcess, ProcessEnd, ProcessLaunch, run, tool};
pub use tree::others_of_own_tree;
