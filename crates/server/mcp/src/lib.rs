//! The Model Context Protocol: what agents see of the service, whatever carries the messages.
//!
//! - [`tools`] knows the tools: names, what they take, what they answer. [`arguments`] reads what an agent
//!   gives, in its several forms, [`answer`] makes of a report what an agent can use: the verdict, the three
//!   most useful facts, and where the rest is. [`resources`] is that rest. All four are pure.
//! - [`JobBackend`] is where jobs are handed in and asked about: a service in this process ([`ServiceBackend`]), or
//!   whatever else can do the same.
//! - [`AgentServer`] joins both under `rmcp`, which speaks the protocol. `crates/server/api` puts it behind HTTP,
//!   `warpgauge mcp` behind standard input and output.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod backend;
mod calls;
mod here;
mod news;
mod places;
mod report;
mod resources;
mod server;
mod stream;
mod tools;

pub use backend::{ArtifactBytes, JobBackend, JobBackendError, JobBackendFuture, JobOrder};
pub use here::{JobDurability, ServiceBackend};
pub use places::CallPermits;
pub use server::AgentServer;
pub use stream::{StreamError, serve};

/// Largest message that is taken, bytes. Data of tensors that do not fit are better generated (`init`), or
/// sent to the HTTP API, which reads them without holding others up.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Longest time that one call waits for its job. A job goes on after that, and is asked about again.
pub const MAX_WAIT: std::time::Duration = std::time::Duration::from_secs(45 * 60);
