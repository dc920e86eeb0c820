//! The OpenAPI documents.
//!
//! - `described`: the API's description, without a service
//! - `document`: the documents
//! - `examples`: examples of requests and answers
//! - `generators`: the reduced document for client generators
//! - `rewrite`: corrections of poem-openapi's output

mod described;
pub(crate) mod document;
mod examples;
mod generators;
mod rewrite;

pub(crate) use document::full;
pub use document::{client_json, client_yaml, full_json, full_yaml};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Value;
    use warpgauge_contract::{BodyFormat, parse};

    #[test]
    fn the_documents_are_the_same_in_json_and_yaml() {
        for (json, yaml) in [(full_json(), full_yaml()), (client_json(), client_yaml())] {
            let of_yaml: Value = parse(BodyFormat::Yaml, yaml.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string_pretty(&of_yaml).unwrap(), json.trim_end());
        }
    }
}
