//! A warpgauge server, as its callers see it: the remote twin of the evaluation service. It blocks its
//! caller's thread, prints nothing and ends no process.
//!
//! - [`Client`] is one server: its checked address, the key, the certificates that it trusts.
//! - [`RemoteJobs`], [`RemoteBaselines`] and [`UnattendedRequests`] have a method for each route that is
//!   asked once and answers.
//! - [`AttendedRequests`] posts what takes long with a new idempotency key, and a [`JobWaiter`] waits for it. The
//!   key finds the job, so that the waiter receives its progress and cancels it when the caller gives up. Where the
//!   connection breaks, the same request sent again is the same job again.
//! - [`RemoteJobs::follow`] reads the event stream of a job, across connections that break and servers that
//!   restart.
//! - [`RetryPolicy`] says for how long it is worth asking again; how the pause is spent is the caller's.
//! - [`ClientError`] says what went wrong, where, and what to do.

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
