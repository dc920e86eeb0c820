//! What every request passes on its way to its operation, and every answer on its way back.
//!
//! - `auth`: API keys, and whose a request is
//! - `envelope`: id, log span, errors, headers, compression
//! - `hidden_paths`: where the server keeps its data, which answers do not show
//! - `http_metrics`: requests, counted by operation
//! - `key_attempts`: wrong keys, by the address that they come from
//! - `origin`: what web pages of other sites may send
//! - `query`: query parameters that an operation does not know
//! - `route_table`: which paths there are, and which methods each takes

pub(crate) mod auth;
pub(crate) mod envelope;
pub(crate) mod hidden_paths;
pub(crate) mod http_metrics;
pub(crate) mod key_attempts;
pub(crate) mod origin;
pub(crate) mod query;
pub(crate) mod route_table;
