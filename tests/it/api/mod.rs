//! The HTTP API over a service without devices, through real sockets.

mod auth;
mod bodies;
mod connections;
mod envelope;
mod errors;
mod fake;
mod gate;
mod http;
mod jobs;
mod lifetime;
mod machine;
mod mcp;
mod metrics;
mod origins;
mod pages;
mod query;
mod schemas;
mod specification;
mod sweep;
mod turns;
