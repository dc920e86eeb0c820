//! Integration tests: one binary, a file per behaviour.

mod bad_input;
mod cli;
mod contracts;
mod evaluate;
mod faults;
mod lifecycle;
mod server;
