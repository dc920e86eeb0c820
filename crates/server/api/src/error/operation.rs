//! The errors that an operation declares in the OpenAPI document.

use std::marker::PhantomData;

use poem_openapi::ApiResponse;
use poem_openapi::registry::{
    MetaHeader, MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};

use super::{ApiError, ErrorBody, JSON};
use crate::schema;

/// An [`ApiError`] of an operation that declares the statuses in `S`.
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

/// Errors of operations that upload tensors.
pub(crate) struct UploadErrors;
impl Statuses for UploadErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 408, 413, 415, 422, 429, 500, 503];
}

/// Errors of operations that take contracts. A contract may refer to stored matrices, shared
/// tensors and baselines.
pub(crate) struct ContractErrors;
impl Statuses for ContractErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 408, 409, 410, 413, 415, 429, 500, 503];
}

/// Errors of operations that create a job from a body.
pub(crate) struct JobBodyErrors;
impl Statuses for JobBodyErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 408, 409, 413, 415, 429, 500, 503];
}

/// Errors of operations that look up a baseline.
pub(crate) struct BaselineErrors;
impl Statuses for BaselineErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 429, 500, 503];
}

/// Errors of operations whose body refers to a stored object.
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

/// Errors of operations for administrators.
pub(crate) struct AdminErrors;
impl Statuses for AdminErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 429, 500, 503];
}

/// Errors of operations that look up an artifact of a job.
pub(crate) struct ArtifactErrors;
impl Statuses for ArtifactErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 410, 429, 500, 503];
}

/// Errors of operations that look up a shared tensor.
pub(crate) struct TensorErrors;
impl Statuses for TensorErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 404, 410, 429, 500, 503];
}

/// Errors of operations that take no body.
pub(crate) struct KeyErrors;
impl Statuses for KeyErrors {
    const LIST: &'static [u16] = &[400, 401, 403, 429, 500, 503];
}

/// Errors of operations that require no key.
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
            "The request is not valid. `code` gives the reason; `path`, `line` and `column` give the place.",
            vec![],
        ),
        401 => (
            "The request has no API key, or an unknown one.",
            vec![header("WWW-AUTHENTICATE", "Scheme by which the key is sent.", "string")],
        ),
        403 => (
            "The request comes from a web page of another site, or its `Host` is not a name of this \
             server. Or the key lacks the permission for this operation.",
            vec![],
        ),
        404 => (
            "The object does not exist, is no longer stored, or was not produced by the job. For a \
             reference in a contract, `path` is the field.",
            vec![],
        ),
        409 => (
            "The idempotency key belongs to another request, or the job was cancelled while its caller \
             waited. Or the baseline is for another device, driver or method.",
            vec![],
        ),
        410 => ("The object existed, and is no longer stored.", vec![]),
        408 => ("The body did not arrive in time.", vec![]),
        413 => ("The body, or its decompressed data, exceeds the server's limit.", vec![]),
        415 => (
            "The body has no media type, or one that is not accepted. The error lists the accepted ones.",
            vec![],
        ),
        422 => ("A field of the body is missing, unknown or of another type.", vec![]),
        429 => (
            "The queue is full, or the caller has its maximum number of jobs. Or too many requests with \
             wrong keys came from the caller's address.",
            vec![header(
                "RETRY-AFTER",
                "Time after which a retry may succeed, seconds.",
                "integer",
            )],
        ),
        503 => (
            "The server is shutting down, or the machine lacks something that the request needs.",
            vec![],
        ),
        _ => (
            "The server has an internal error. `details` has the id of its entry in the log.",
            vec![],
        ),
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
