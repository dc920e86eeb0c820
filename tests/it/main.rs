//! Integration tests: one binary, a file per behaviour.

mod cli;
