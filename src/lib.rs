//! The program: its command line ([`cli`]) and its exit codes ([`exit`]). The crates below
//! `crates/` contain everything else; ARCHITECTURE.md describes their order.

#![forbid(unsafe_code)]

pub mod cli;
pub mod exit;
