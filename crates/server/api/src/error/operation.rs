//! Which errors an operation declares in the OpenAPI document.

use std::marker::PhantomData;

use poem_openapi::ApiResponse;
use poem_openapi::registry::{
    MetaHeader, MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};

use super::{ApiError, ErrorBody, JSON};
use crate::schema;

/// An [`ApiError`] of an operation that declares the statuses of `S`.
pub(crate) struct OperationError<S>(ApiError, PhantomData<S>);

/// A set of HTTP statuses.
pub(crate) trait Statuses: Send + Sync + 'static {
    const LIST: &'static [u16];
}

/// Errors of operations that take a body.
pub(crate) struct BodyErrors;
impl Statuses for BodyErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 408, 413, 415, 429, 500, 503];
}

/// Errors of uploads of tensors.
pub(crate) struct UploadErrors;
impl Statuses for UploadErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 408, 413, 415, 422, 429, 500, 503];
}

/// Errors of operations that take contracts, which may name what is kept: matrices, shared tensors, baselines.
pub(crate) struct ContractErrors;
impl Statuses for ContractErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 408, 409, 410, 413, 415, 429, 500, 503];
}

/// Errors of operations that take a body and make a job of it.
pub(crate) struct JobBodyErrors;
impl Statuses for JobBodyErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 408, 409, 413, 415, 429, 500, 503];
}

/// Errors of operations that look up a baseline.
pub(crate) struct BaselineErrors;
impl Statuses for BaselineErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 429, 500, 503];
}

/// Errors of operations that take a body with the name of something that is kept.
pub(crate) struct NamedBodyErrors;
impl Statuses for NamedBodyErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 503];
}

/// Errors of operations that watch a job.
pub(crate) struct WatchedJobErrors;
impl Statuses for WatchedJobErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 429, 500, 503];
}

/// Errors of operations that look up a job.
pub(crate) struct JobErrors;
impl Statuses for JobErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 429, 500, 503];
}

/// Errors of operations of administrators.
pub(crate) struct AdminErrors;
impl Statuses for AdminErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 429, 500, 503];
}

/// Errors of operations that look up what a job left.
pub(crate) struct ArtifactErrors;
impl Statuses for ArtifactErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 410, 429, 500, 503];
}

/// Errors of operations that look up a shared tensor.
pub(crate) struct TensorErrors;
impl Statuses for TensorErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 410, 429, 500, 503];
}

/// Errors of operations that take parameters at most.
pub(crate) struct KeyErrors;
impl Statuses for KeyErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 429, 500, 503];
}

/// Errors of operations that ask for no key.
pub(crate) struct OpenErrors;
impl Statuses for OpenErrors {
    const LIST: &'static [u16] = &[400, 403, 500];
}

impl<S, E: Into<ApiError>> From<E> for OperationError<S> {
    fn from(error: E) -> Self {
        Self(error.into(), PhantomData)
    }
}

impl<S> From<OperationError<S>> for poem::Error {
    fn from(failure: OperationError<S>) -> Self {
        failure.0.into()
    }
}

impl<S: Statuses> ApiResponse for OperationError<S> {
    fn meta() -> MetaResponses {
        MetaResponses { responses: S::LIST.iter().map(|status| describe(*status)).collect() }
    }

    fn register(registry: &mut Registry) {
        schema::register::<ErrorBody>(registry);
    }
}

fn describe(status: u16) -> MetaResponse {
    let (description, headers) = match status {
        400 => (
            "The request is not valid: `code` says why, `path`, `line` and `column` say where.",
            vec![],
        ),
        401 => (
            "No key, or a wrong one.",
            vec![header("WWW-AUTHENTICATE", "How to send a key.", "string")],
        ),
        403 => (
            "The request comes from a web page of another site, or was sent to a name that is not this \
             server's; or the operation is for administrators.",
            vec![],
        ),
        404 => (
            "There is no such thing, or it is not kept any more, or the job left none; of a contract, \
             `path` says what names it.",
            vec![],
        ),
        409 => (
            "The idempotency key was used for another request, or the job was cancelled while its \
             caller waited; or the device, driver or method is not what the baseline is for.",
            vec![],
        ),
        410 => ("It was there, and is not kept any more.", vec![]),
        408 => ("The body stopped coming, or came too slowly.", vec![]),
        413 => (
            "The body is larger than the server takes, or its data become more than may be unpacked.",
            vec![],
        ),
        415 => (
            "The body has no media type, or one that is not taken; the error lists those that are.",
            vec![],
        ),
        422 => (
            "The body does not have the form that is taken: a field is missing, unknown or of another type.",
            vec![],
        ),
        429 => (
            "The queue is full, or the caller has as many jobs as it may; or too many wrong keys came \
             from its address.",
            vec![header("RETRY-AFTER", "Seconds after which it is worth trying again.", "integer")],
        ),
        503 => {
            ("The server is shutting down, or this machine lacks what the request needs.", vec![])
        }
        _ => ("A fault of the server; `details` finds it in the log.", vec![]),
    };
    MetaResponse {
        description,
        status: Some(status),
        status_range: None,
        content: vec![MetaMediaType {
            content_type: JSON,
            schema: schema::reference::<ErrorBody>(),
        }],
        headers,
    }
}

fn header(name: &str, description: &str, ty: &'static str) -> MetaHeader {
    MetaHeader {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        required: true,
        deprecated: false,
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new(ty))),
    }
}
