//! The program: its command line ([`cli`]) and its exit codes ([`exit`]). The crates in `crates/`
//! contain everything else. ARCHITECTURE.md describes how they depend on each other.

#![forbid(unsafe_code)]

pub mod cli;
pub mod exit;
