//! Integration tests: one binary, a file per behaviour.

mod support;

mod api;
mod bad_input;
mod cli;
mod cli_remote;
mod compare;
mod contracts;
mod evaluate;
mod exploits;
mod faults;
mod gate;
mod lifecycle;
mod profile;
mod server;
mod sweep;
