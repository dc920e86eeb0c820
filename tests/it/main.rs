//! Integration tests: one binary, a file per behaviour.

mod support;

mod cli;
mod cli_remote;
