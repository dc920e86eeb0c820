//! The HTTP API: OpenAPI-described operations over an [`EvaluationService`].
//!
//! A request passes `server` (connections) → `envelope` (id, errors, headers) → `origin` (what web pages
//! may send) → `auth` → `query` → `routes`, whose bodies `payload` and `body` read. Nothing here knows
//! devices, and nothing below knows HTTP.
//!
//! [`EvaluationService`]: warpgauge_service::EvaluationService

#![forbid(unsafe_code)]

mod accepted;
mod allow;
mod app;
mod artifacts;
mod aside;
mod auth;
mod batch;
mod body;
mod capabilities;
mod cleanup;
mod connections;
mod deadlines;
mod described;
mod envelope;
mod error;
mod events;
mod exposition;
mod failure;
mod form;
mod functions;
mod gate;
mod gate_reply;
mod generators;
mod guesses;
mod http_metrics;
mod jobs;
mod linger;
mod machine;
mod matrix_file;
mod mcp;
mod metered;
mod metrics;
mod origin;
mod pages;
mod payload;
mod places;
mod query;
mod rewrite;
mod routes;
mod schema;
mod server;
pub mod spec;
mod spmv;
mod spool;
mod stats;
mod submission;
mod sweep;
mod tags;
mod tensor_data;
mod tensor_upload;
mod tensors;
mod uploads;
mod views;

pub use batch::{Batch, BatchAccepted, BatchItem};
pub use capabilities::{Capabilities, CompileCapability, DeviceCapabilities};
pub use cleanup::Cleaned;
pub use error::{ErrorBody, ErrorStatus, ValidationError};
pub use gate::{BaselineRemoved, Baselines};
pub use server::{ServeError, serve};
pub use stats::{CompilationMetrics, GpuUtilization, ProfilingMetrics, Stats, Throughput};
pub use views::{
    Accepted, CudaDevice, CudaInfo, Devices, GpuManager, Health, HealthStatus, Info, JobStats,
    LegacyJob, Live,
};
