//! The OpenAPI documents.
//!
//! - `described`: the API's description, without a service
//! - `document`: the documents, with their examples
//! - `generators`: what client generators can digest
//! - `rewrite`: what is put right in what poem-openapi writes

mod described;
pub(crate) mod document;
mod generators;
mod rewrite;

pub use document::{client_json, full, full_json, full_yaml};
