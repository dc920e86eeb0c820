//! The Model Context Protocol: the interface of the service for agents, over any transport.
//!
//! - [`tools`] defines the tools: names, arguments, results. [`arguments`] parses the forms of
//!   arguments. [`answer`] reduces a report to the verdict, the three most useful facts, and links
//!   to the rest. [`resources`] provides the rest. All four are pure.
//! - [`JobBackend`] submits and reads jobs: a service in this process ([`ServiceBackend`]), or
//!   another implementation.
//! - [`AgentServer`] connects both to `rmcp`, which implements the protocol. `crates/server/api`
//!   serves it over HTTP, `warpgauge mcp` over standard input and output.

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

/// Maximum size of an accepted message, bytes. Larger tensors should be generated (`init`), or sent
/// to the HTTP API, which reads them without blocking other calls.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Maximum time for which one call waits for its job. The job continues afterwards, and further
/// calls can query it.
pub const MAX_WAIT: std::time::Duration = std::time::Duration::from_secs(45 * 60);
