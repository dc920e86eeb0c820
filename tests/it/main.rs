//! Integration tests: one binary, a file per behaviour.

mod contracts;
mod server;
mod support;

mod bad_input;
mod cli;
mod cli_remote;
mod evaluate;
mod faults;
mod lifecycle;
