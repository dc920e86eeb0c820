//! The Model Context Protocol: the interface through which agents use the service, over any
//! transport.
//!
//! - [`tools`] defines the tools: names, arguments and results. [`arguments`] parses the arguments
//!   in all accepted forms. [`answer`] reduces a report to the verdict, the three most useful
//!   facts, and links to the rest. [`resources`] provides the rest. All four are pure.
//! - [`imports`] reads output of NVIDIA's profilers, which an agent sends as text. It uses no job.
//! - [`JobBackend`] submits and reads jobs. [`ServiceBackend`] implements it for a service in this
//!   process.
//! - [`AgentServer`] connects these to `rmcp`, which implements the protocol. `crates/server/api`
//!   serves it over HTTP, and `warpgauge mcp` over standard input and output.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod backend;
mod calls;
mod here;
mod imports;
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

/// Maximum time for which a call waits for its job. The job continues afterwards, and later calls
/// can query it.
pub const MAX_WAIT: std::time::Duration = std::time::Duration::from_secs(45 * 60);
