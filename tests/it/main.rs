//! Integration tests: one binary, a file per behaviour.

mod support;

mod api;
mod artifacts;
mod at_server;
mod bad_input;
mod cli;
mod cli_remote;
mod compare;
mod contracts;
mod counters;
mod crash;
mod disk;
mod durable;
mod evaluate;
mod exploits;
mod faults;
mod gate;
mod import;
mod jobs;
mod lifecycle;
mod not_emulated;
mod openmetrics;
mod profile;
mod server;
mod shares;
mod stores;
mod sweep;
mod terminal;
mod traced;
mod webhooks;
