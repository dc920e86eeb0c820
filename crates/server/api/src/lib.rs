//! The HTTP API: operations over the [`Services`], described by OpenAPI documents.
//!
//! A request passes `server`, then `middleware` (`envelope`: id, errors, headers; `origin`:
//! requests of web pages; `auth`; `query`), then `routes`. This crate does not depend on devices,
//! and the crates below it do not depend on HTTP.
//!
//! - `connection/`: connections, their deadlines, and how they end
//! - `middleware/`: steps that every request and every answer passes
//! - `request/`: reads bodies, forms, and parameters that accompany a contract
//! - `routes/`: the operations, a folder for each group
//! - `response/`: answers that several groups of operations return
//! - `error/`: errors, and the errors that each operation declares
//! - `openapi/`: the documents; `schema.rs` adds the schemas of wire types to them
//! - `mcp/`: the Model Context Protocol over HTTP; `pages.rs`: pages for people
//! - `app.rs` assembles the application, and `server.rs` serves it
//!
//! [`Services`]: warpgauge_service::Services

#![forbid(unsafe_code)]

mod app;
mod blocking;
mod connection;
mod error;
mod mcp;
mod middleware;
pub mod openapi;
mod pages;
mod paths;
mod phase;
mod request;
mod response;
mod routes;
mod schema;
mod server;
mod tree;

pub use error::{ErrorBody, ErrorStatus, ValidationError};
pub use response::accepted::Accepted;
pub use routes::gate::operations::{BaselineRemoved, Baselines};
pub use routes::jobs::batch::{Batch, BatchAccepted, BatchItem};
pub use routes::jobs::legacy::LegacyJob;
pub use routes::machine::capabilities::{Capabilities, CompileCapability, DeviceCapabilities};
pub use routes::machine::cleanup::Cleaned;
pub use routes::machine::stats::{
    CompilationMetrics, GpuUtilization, ProfilingMetrics, Stats, Throughput,
};
pub use routes::machine::views::{
    CudaDevice, CudaInfo, Devices, GpuManager, Health, HealthStatus, Info, JobStats, Live,
};
pub use server::{ServeError, serve};
