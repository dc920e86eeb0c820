//! External programs together with all processes that they start. Their resources are limited, and
//! they are ended as a whole. The main type is [`ContainedProcess`].
//!
//! Profilers start launchers, agents and daemons, some of which leave their process group.
//! Therefore every process of a tree has a mark in its environment, which [`tree`] uses to find it.
//! Output is kept up to a limit, and read and discarded beyond it: [`capture`]. [`process`] starts
//! the program.

mod capture;
mod process;
mod tree;

pub use capture::CapturedText;
pub use process::{ContainedProcess, ProcessEnd, ProcessLaunch, run, tool};
pub use tree::others_of_own_tree;
