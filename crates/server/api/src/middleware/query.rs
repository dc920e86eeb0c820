//! Rejects query parameters that an operation does not support, or that occur twice
//! ([`QueryGuard`]). Otherwise a misspelt parameter would be ignored, and the caller would receive
//! the answer to another question.

use std::collections::BTreeMap;
use std::sync::Arc;

use poem::http::Method;
use poem::{Endpoint, Request, Response};

use super::route_table::RouteTable;
use crate::error::ApiError;
use crate::response::html::wants_page;
use crate::tree::{Mapping, Value};
use warpgauge_model::{FailureCode, nearest};

/// Maximum length of a name that an error quotes, characters.
const MAX_QUOTED: usize = 64;

/// Parameters that the operations in a document accept.
pub(crate) struct KnownParameters(BTreeMap<(String, String), Parameters>);

/// Parameters of one operation.
#[derive(Debug, Default)]
struct Parameters {
    /// Names in the query string, and whether each may be repeated.
    query: Vec<(String, bool)>,
    headers: Vec<String>,
}

impl KnownParameters {
    /// Reads the parameters from the full document, by method and path template.
    pub(crate) fn new(document: &Value) -> Self {
        let paths = document.get("paths").and_then(Value::as_mapping);
        let operations = paths.into_iter().flatten().flat_map(|(path, operations)| {
            let operations = operations.as_mapping().into_iter().flatten();
            operations.map(move |(method, operation)| (method, path, operation))
        });
        let known = operations.map(|(method, path, operation)| {
            let parameters = operation.get("parameters").and_then(Value::as_sequence);
            let mut of = Parameters::default();
            parameters.into_iter().flatten().for_each(|parameter| of.add(parameter));
            ((method.to_uppercase(), path.clone()), of)
        });
        Self(known.collect())
    }

    /// Rejects parameters that the operation of this method and path template would ignore. Unknown
    /// operations are rejected elsewhere, and pages accept any parameter.
    fn check(
        &self,
        method: &Method,
        template: &str,
        query: &[(String, String)],
    ) -> Result<(), ApiError> {
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        let Some(known) = self.0.get(&(method.to_owned(), template.to_owned())) else {
            return Ok(());
        };
        check_names(query, &known.query, |name| known.refuse(name, &format!("{method} {template}")))
    }
}

/// Rejects parameters of a query that are not known, with the error of `unknown`, and those that
/// occur twice. `known` contains the names, and whether each may be repeated.
pub(crate) fn check_names(
    query: &[(String, String)],
    known: &[(impl AsRef<str>, bool)],
    unknown: impl Fn(&str) -> ApiError,
) -> Result<(), ApiError> {
    for (at, (name, _)) in query.iter().enumerate() {
        let Some((_, repeatable)) = known.iter().find(|(known, _)| known.as_ref() == name) else {
            return Err(unknown(name));
        };
        if !repeatable && query[..at].iter().any(|(earlier, _)| earlier == name) {
            let message = format!("{name}: given several times; give it once");
            return Err(ApiError::field(name, FailureCode::RepeatedParameter, message));
        }
    }
    Ok(())
}

impl Parameters {
    fn add(&mut self, parameter: &Value) {
        let name = text(parameter.get("name"));
        match parameter.get("in").and_then(Value::as_str) {
            Some("query") => {
                let schema = parameter.get("schema").and_then(Value::as_mapping);
                let array = schema.and_then(|schema: &Mapping| schema.get("type"));
                self.query.push((name, array.and_then(Value::as_str) == Some("array")));
            }
            Some("header") => self.headers.push(name),
            _ => {}
        }
    }

    fn refuse(&self, name: &str, operation: &str) -> ApiError {
        let names = || self.query.iter().map(|(name, _)| name.as_str());
        let shown: String = name.chars().take(MAX_QUOTED).collect();
        let plain = |name: &str| name.to_lowercase().replace('-', "_");
        let header = self.headers.iter().find(|header| plain(header) == plain(name));
        let meant = match (header, nearest(&plain(name), names())) {
            (Some(header), _) => format!(" (send it as the header `{header}`)"),
            (None, Some(near)) => format!(" (did you mean `{near}`?)"),
            (None, None) => String::new(),
        };
        let takes = if self.query.is_empty() {
            "it has no query parameters".to_owned()
        } else {
            format!("known: {}", names().collect::<Vec<_>>().join(", "))
        };
        let message = format!("{operation} has no query parameter `{shown}`{meant}; {takes}");
        ApiError::field(&shown, FailureCode::UnknownParameter, message)
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Accepts only requests whose parameters all have an effect.
pub(crate) struct QueryGuard<E> {
    pub(crate) routes: Arc<RouteTable>,
    pub(crate) known: KnownParameters,
    pub(crate) inner: E,
}

impl<E> QueryGuard<E> {
    fn check(&self, request: &Request) -> Result<(), ApiError> {
        let (uri, method) = (request.uri(), request.method());
        let Some(template) = uri.query().and_then(|_| self.routes.template(uri.path())) else {
            return Ok(());
        };
        let query: Vec<(String, String)> = request.params().map_err(|error| {
            ApiError::field("query", FailureCode::InvalidParameter, format!("the query: {error}"))
        })?;
        self.known.check(method, template, &query)
    }
}

impl<E: Endpoint<Output = Response>> Endpoint for QueryGuard<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        // A page has other parameters than the operation at its path.
        if !wants_page(request.method(), request.uri().path(), request.headers()) {
            self.check(&request)?;
        }
        self.inner.call(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "
        paths:
          /jobs/{id}:
            get:
              parameters:
                - {name: id, in: path, schema: {type: string}}
            post:
              parameters:
                - {name: state, in: query, schema: {type: array}}
                - {name: wait, in: query, schema: {type: boolean}}
                - {name: Idempotency-Key, in: header, schema: {type: string}}";

    fn refused(method: Method, query: &[&str]) -> Option<String> {
        let known = KnownParameters::new(&crate::tree::parsed(DOCUMENT));
        let query: Vec<_> = query.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        let error = known.check(&method, "/jobs/{id}", &query).err()?;
        Some(error.body().error.clone())
    }

    #[test]
    fn what_would_be_ignored_is_refused_with_what_is_known() {
        for (method, query, part) in [
            (
                Method::GET,
                "id",
                "GET /jobs/{id} has no query parameter `id`; it has no query parameters",
            ),
            (Method::HEAD, "x", "it has no query parameters"),
            (Method::POST, "wiat", "`wiat` (did you mean `wait`?); known: state, wait"),
            (Method::POST, "Wait", "did you mean `wait`?"),
            (Method::POST, "idempotency_key", "the header `Idempotency-Key`"),
            (Method::POST, "colour", "`colour`; known"),
            (Method::POST, "", "``; known"),
        ] {
            let error = refused(method, &[query]).unwrap();
            assert!(error.contains(part), "{error}");
        }
        let long = refused(Method::POST, &["ä".repeat(5000).as_str()]).unwrap();
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn only_lists_come_several_times() {
        assert_eq!(refused(Method::POST, &["state", "wait", "state"]), None);
        let error = refused(Method::POST, &["wait", "state", "wait"]).unwrap();
        assert!(error.starts_with("wait: given several times"), "{error}");
        // Unknown operations are reported elsewhere.
        assert_eq!(refused(Method::PUT, &["wait", "wait"]), None);
    }
}
