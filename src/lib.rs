//! The program: its command line ([`cli`]) and its exit codes ([`exit`]). Everything else is in the
//! crates below it (`crates/`; ARCHITECTURE.md has the order).

#![forbid(unsafe_code)]

pub mod cli;
pub mod exit;
