//! Steps that every request passes before its operation, and every answer after it.
//!
//! - `auth`: API keys, and the owner of a request
//! - `envelope`: id, log span, errors, headers, compression
//! - `hidden_paths`: removes the data directory from answers
//! - `http_metrics`: counts of requests by operation
//! - `key_attempts`: wrong keys, by the address that sent them
//! - `origin`: requests that web pages of other sites send
//! - `query`: rejects query parameters that an operation does not support
//! - `route_table`: paths, and the methods of each

pub(crate) mod auth;
pub(crate) mod envelope;
pub(crate) mod hidden_paths;
pub(crate) mod http_metrics;
pub(crate) mod key_attempts;
pub(crate) mod origin;
pub(crate) mod query;
pub(crate) mod route_table;
