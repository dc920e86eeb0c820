//! A warpgauge server, as its callers see it: the remote twin of the evaluation service. It blocks its
//! caller's thread, prints nothing and ends no process.
//!
//! - [`Client`] is one server: its checked address, the key, the certificates that it trusts. It has a
//!   method for each route that answers at once.
//! - What takes long is posted as a request with an idempotency key of its own ([`Attendant`] waits for
//!   it): by that key its job is found, so that its news are told and it is cancelled when the caller
//!   gives up; and where the connection breaks, the same request sent again is the same job again.
//! - [`Client::follow`] reads the event stream of a job, across connections that break and servers that
//!   restart.
//! - [`Patience`] says for how long it is worth asking again; how the pause is spent is the caller's.
//! - [`ClientError`] says what went wrong, where, and what to do.

#![forbid(unsafe_code)]

mod address;
mod attend;
mod call;
mod connection;
mod delivery;
mod error;
mod events;
mod follow;
mod gate;
mod patience;
mod refusal;
mod routes;
mod sweep;
mod tls;
mod unwaited;

pub use attend::{Attendant, Interrupt, Told};
pub use connection::{Client, Reply};
pub use error::{ClientError, EndedJob, Transport};
pub use patience::Patience;
pub use routes::JobFilter;
pub use tls::CertificateFileError;
pub use unwaited::Taken;
