//! Integration tests: one binary, a file per behaviour.

#[macro_use]
#[path = "../support/needs.rs"]
mod needs;
mod support;

mod api;
mod artifacts;
mod at_server;
mod autotune;
mod bad_input;
mod children;
mod cli;
mod cli_remote;
mod compare;
mod compile_bombs;
mod contracts;
mod counters;
mod crash;
mod disk;
mod durable;
mod evaluate;
mod examples;
mod exploits;
mod faults;
mod functions;
mod gate;
mod import;
mod jobs;
mod lifecycle;
mod mcp;
mod not_emulated;
mod openmetrics;
mod private;
mod profile;
mod readiness;
mod regime;
mod requires;
mod sealed;
mod selftest;
mod server;
mod shares;
mod skipped;
mod spmv;
mod stores;
mod sweep;
mod tensors;
mod terminal;
mod tls;
mod torch;
mod traced;
mod triton;
mod triton_examples;
mod triton_hostile;
mod waits;
mod watch;
mod webhooks;
