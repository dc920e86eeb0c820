//! API keys. Whatever is not listed as open needs one, if any is configured.

use poem::http::{HeaderMap, Method, StatusCode, header};
use poem::{Endpoint, Request, Response};
use subtle::ConstantTimeEq;

use super::body;
use super::error::ApiError;

/// What is served without a key, to be read only.
const OPEN: [&str; 6] =
    ["/", "/health", "/docs", "/openapi.json", "/openapi.yaml", "/openapi-client.json"];

/// The configured keys, hashed: equal lengths compare in constant time, and memory dumps and logs
/// cannot give the keys away.
#[derive(Clone)]
pub(super) struct Keys(Vec<blake3::Hash>);

impl Keys {
    pub(super) fn new(keys: &[String]) -> Self {
        let given = keys.iter().filter(|key| !key.is_empty());
        Self(given.map(|key| blake3::hash(key.as_bytes())).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Looks at every key whatever the outcome, so that time tells nothing.
    fn contain(&self, candidate: &[u8]) -> bool {
        let candidate = blake3::hash(candidate);
        let mut found = subtle::Choice::from(0);
        for key in &self.0 {
            found |= key.as_bytes().ct_eq(candidate.as_bytes());
        }
        found.into()
    }

    fn admit(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let key = headers.get("x-api-key").map(|value| value.as_bytes());
        let bearer =
            headers.get(header::AUTHORIZATION).and_then(|value| bearer_token(value.as_bytes()));
        let mut given = [key, bearer].into_iter().flatten().peekable();
        if given.peek().is_none() {
            return Err(unauthorized(
                "this server needs an API key: send X-API-Key, or Authorization: Bearer",
            ));
        }
        if given.any(|candidate| self.contain(candidate)) {
            Ok(())
        } else {
            Err(unauthorized("the API key is not one of this server's"))
        }
    }
}

fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

/// Lets through what carries a key or is open.
pub(super) struct Guard<E> {
    pub(super) keys: Keys,
    pub(super) inner: E,
}

impl<E: Endpoint<Output = Response>> Endpoint for Guard<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let open = OPEN.contains(&request.uri().path())
            && matches!(*request.method(), Method::GET | Method::HEAD);
        if !self.keys.is_empty()
            && !open
            && let Err(error) = self.keys.admit(request.headers())
        {
            body::linger(request.take_body());
            return Err(error.into());
        }
        self.inner.call(request).await
    }
}
