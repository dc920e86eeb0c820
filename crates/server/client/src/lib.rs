//! Client of a warpgauge server: the remote counterpart of the evaluation service. It blocks the
//! calling thread, prints nothing, and never ends the process.
//!
//! - [`Client`] is a client of one server. It stores the checked URL, the key, and the trusted
//!   certificates.
//! - [`RemoteJobs`], [`RemoteBaselines`] and [`UnattendedRequests`] provide a method for each route
//!   with a single response.
//! - [`AttendedRequests`] posts long requests with a new idempotency key, and a [`JobWaiter`] waits
//!   for the answer. The key identifies the job. So the waiter receives the job's progress, and the
//!   job is cancelled if the caller gives up. After a broken connection, the same request refers to
//!   the same job.
//! - [`RemoteJobs::follow`] reads the event stream of a job across broken connections and restarts
//!   of the server.
//! - [`RetryPolicy`] decides how long to retry. Its caller decides what happens during the pauses.
//! - [`ClientError`] describes the problem, its place and a remedy.

#![forbid(unsafe_code)]

mod address;
mod attend;
mod baselines;
mod call;
mod client;
mod connection;
mod delivery;
mod error;
mod events;
mod follow;
mod gate;
mod jobs;
mod patience;
mod refusal;
mod routes;
mod sweep;
mod tls;
mod unattended;

pub use attend::{Interrupt, JobWaiter, WaitEvent};
pub use baselines::RemoteBaselines;
pub use client::Client;
pub use connection::Reply;
pub use delivery::AttendedRequests;
pub use error::{ClientError, EndedJob, Transport};
pub use jobs::{JobListQuery, RemoteJobs};
pub use patience::RetryPolicy;
pub use tls::CertificateFileError;
pub use unattended::{SubmitOptions, UnattendedRequests};
