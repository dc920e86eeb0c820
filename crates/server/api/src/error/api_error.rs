//! Errors of the API, and the HTTP status of each: [`ApiError`].

use std::time::Duration;

use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_contract::ContractError;
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_service::{ExecError, Problem, ServiceError};
use warpgauge_telemetry::{Reject, telemetry};

/// Media type of all answers except pages and the YAML specification.
pub(crate) const JSON: &str = "application/json";

/// Error of a request. The fields `success`, `error`, `status`, `validation_errors`, `job_id` and
/// `details` also exist in the servers that warpgauge is compatible with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Always false, as in the Remote GPU Execution Service.
    #[serde(default)]
    pub success: bool,
    /// Party that caused the error: the caller (`client_error`) or the server (`error`).
    pub status: ErrorStatus,
    /// Stable code that programs can test.
    pub code: ErrorCode,
    /// Description of the error, with its place and a remedy, for people.
    pub error: String,
    /// Copy of `error`, under the field name of the GPU Tensor Server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// JSON path of the field that caused the error. Absent if no field did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line in the body, from 1. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Column in the body, from 1. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// All problems that were found in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_errors: Vec<ValidationError>,
    /// Id of the job. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Further details, e.g. the id of an internal error in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// Party that caused the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorStatus {
    /// The caller.
    ClientError,
    /// The server or its operator.
    Error,
}

/// Problem of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationError {
    /// JSON path of the field.
    pub field: String,
    /// Description of the problem: what was expected, what was received, and a remedy.
    pub message: String,
    /// Error code. Unlike the message, it is stable.
    #[serde(rename = "type")]
    pub kind: FailureCode,
}

/// A failed request: its HTTP status and its body.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", body.error)]
pub(crate) struct ApiError {
    status: StatusCode,
    retry_after_s: Option<u64>,
    body: Box<ErrorBody>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: ErrorCode, error: impl Into<String>) -> Self {
        Self {
            status,
            retry_after_s: None,
            body: Box::new(ErrorBody {
                success: false,
                status: if status.is_client_error() && status != StatusCode::NOT_FOUND {
                    ErrorStatus::ClientError
                } else {
                    ErrorStatus::Error
                },
                code,
                error: error.into(),
                detail: None,
                path: None,
                line: None,
                column: None,
                validation_errors: Vec::new(),
                job_id: None,
                details: None,
            }),
        }
    }

    /// Returns the error for a request without a key.
    pub(crate) fn without_key() -> Self {
        let text = "this server needs an API key: send X-API-Key, or Authorization: Bearer";
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, text)
    }

    /// Returns the error for one invalid field of a request.
    pub(crate) fn field(path: &str, code: FailureCode, error: impl Into<String>) -> Self {
        let mut this = Self::new(StatusCode::BAD_REQUEST, code.clone().into(), error);
        this.body.path = Some(path.to_owned());
        this.body.validation_errors = vec![ValidationError {
            field: path.to_owned(),
            message: this.body.error.clone(),
            kind: code,
        }];
        this
    }

    /// Adds the position of the problem in the body, counted from 1.
    pub(crate) fn at(mut self, line: Option<u64>, column: Option<u64>) -> Self {
        self.body.line = line;
        self.body.column = column;
        self
    }

    /// Replaces status 400 by 422, the status that the GPU Tensor Server returns for malformed
    /// bodies.
    pub(crate) fn unprocessable(mut self) -> Self {
        if self.status == StatusCode::BAD_REQUEST {
            self.status = StatusCode::UNPROCESSABLE_ENTITY;
        }
        self
    }

    /// Returns the body of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn body(&self) -> &ErrorBody {
        &self.body
    }

    /// Sets the time after which a caller should retry, seconds.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds.max(1));
        self
    }

    /// Adds the job that the error concerns.
    fn of_job(mut self, job_id: String) -> Self {
        self.body.job_id = Some(job_id);
        self
    }

    /// Returns the error for a bug in the server. The log line with this `id` contains the cause.
    pub(crate) fn internal(id: &str, error: impl Into<String>) -> Self {
        let mut this = Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, error);
        this.body.details = Some(format!("the server's log has details under id {id}"));
        this
    }

    /// Returns the error during a shutdown.
    pub(crate) fn shutting_down() -> Self {
        ServiceError::shutting_down().into()
    }

    /// Returns the error for several invalid fields.
    pub(crate) fn problems(problems: Vec<ContractError>) -> Self {
        Self::invalid(problems.into_iter().map(Problem::from).collect())
    }

    fn invalid(problems: Vec<Problem>) -> Self {
        let message = ServiceError::invalid(problems.clone()).to_string();
        let (status, code) = match problems.first() {
            Some(first) if first.code == FailureCode::TooMuchData => {
                (StatusCode::PAYLOAD_TOO_LARGE, first.code.clone().into())
            }
            _ => (StatusCode::BAD_REQUEST, ErrorCode::InvalidContract),
        };
        let mut this = Self::new(status, code, message);
        this.body.path = problems.first().map(|problem| problem.path.clone());
        this.body.validation_errors = problems
            .into_iter()
            .map(|problem| ValidationError {
                field: problem.path,
                message: problem.message,
                kind: problem.code,
            })
            .collect();
        this
    }

    fn of_executor(error: ExecError, text: String) -> Self {
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        match error {
            ExecError::Invalid(problems) => Self::invalid(problems),
            ExecError::QueueFull { retry_after, .. } => Self::queue_full(retry_after, text),
            ExecError::ConditionsDiffer(_) => {
                Self::new(StatusCode::CONFLICT, ErrorCode::ConditionsDiffer, text)
            }
            ExecError::ShuttingDown => Self::new(unavailable, ErrorCode::ShuttingDown, text),
            ExecError::NotOffered(_) => Self::new(unavailable, ErrorCode::UnmetRequirements, text),
            ExecError::Unavailable(_) | ExecError::RunnersLost(_) => {
                Self::new(unavailable, ErrorCode::Unavailable, text)
            }
            ExecError::Internal { id, .. } => Self::internal(&id, text),
        }
    }

    fn queue_full(retry_after: Duration, text: String) -> Self {
        let seconds = retry_after.as_secs_f64().ceil() as u64;
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::QueueFull, text).retry_after(seconds)
    }
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        let text = error.to_string();
        match error {
            ServiceError::Exec(error) => Self::of_executor(error, text),
            ServiceError::QueueFull { retry_after, .. } => Self::queue_full(retry_after, text),
            ServiceError::QuotaExceeded { retry_after, .. } => {
                let seconds = retry_after.as_secs_f64().ceil() as u64;
                Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::QuotaExceeded, text)
                    .retry_after(seconds)
            }
            ServiceError::IdempotencyConflict { job_id } => {
                Self::new(StatusCode::CONFLICT, ErrorCode::IdempotencyConflict, text).of_job(job_id)
            }
            ServiceError::Cancelled { job_id } => {
                Self::new(StatusCode::CONFLICT, ErrorCode::Cancelled, text).of_job(job_id)
            }
            ServiceError::JobFailed { job_id, code, .. } => {
                let status = status_of_failure(&code);
                let mut this = Self::new(status, code, text).of_job(job_id);
                if status == StatusCode::TOO_MANY_REQUESTS {
                    this = this.retry_after(1);
                }
                this
            }
            ServiceError::Forbidden(_) => {
                Self::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, text)
            }
            ServiceError::NoSuchBaseline(_) => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::NoSuchBaseline, text)
            }
            ServiceError::NoSuchMatrix(_) => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::NoSuchMatrix, text)
            }
            ServiceError::NoSuchTensor(_) => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::NoSuchTensor, text)
            }
            ServiceError::TensorGone { code, .. } => Self::new(StatusCode::GONE, code, text),
            ServiceError::Named { path, error } => {
                let mut this = Self::from(*error);
                (this.body.path, this.body.error) = (Some(path), text);
                this
            }
            ServiceError::NoSuchLease(_) => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::NoSuchLease, text)
            }
            ServiceError::Conflict { code, .. } => Self::new(StatusCode::CONFLICT, code, text),
            ServiceError::NoSuchJob(_) => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::NoSuchJob, text)
            }
            ServiceError::NoArtifact { .. } => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::NoSuchArtifact, text)
            }
            ServiceError::ArtifactGone { .. } => {
                Self::new(StatusCode::GONE, ErrorCode::ArtifactGone, text)
            }
        }
    }
}

/// Returns the HTTP status for a job that failed earlier: the status that its first caller
/// received.
fn status_of_failure(code: &ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidContract => StatusCode::BAD_REQUEST,
        ErrorCode::NoSuchBaseline => StatusCode::NOT_FOUND,
        ErrorCode::ConditionsDiffer => StatusCode::CONFLICT,
        ErrorCode::QueueFull => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Unavailable | ErrorCode::UnmetRequirements => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the reason under which the metrics count a rejection. A missing resource does not count
/// as a rejection.
fn reject(status: StatusCode, code: &ErrorCode) -> Option<Reject> {
    Some(match (status.as_u16(), code) {
        (404 | 410, _) => return None,
        (401, _) => Reject::Unauthorized,
        (403, _) => Reject::Forbidden,
        (413, _) => Reject::BodyTooLarge,
        (429, ErrorCode::TooManyWrongKeys) => Reject::Unauthorized,
        (429, ErrorCode::QuotaExceeded) => Reject::Quota,
        (429, ErrorCode::TooManyLargeBodies) => Reject::LargeBodies,
        (429, ErrorCode::TooManyWatchers | ErrorCode::TooManySessions) => Reject::Watchers,
        (429, _) => Reject::QueueFull,
        (503, ErrorCode::ShuttingDown) => Reject::ShuttingDown,
        (503, _) => Reject::Unavailable,
        (500.., _) => Reject::Internal,
        _ => Reject::Invalid,
    })
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Some(why) = reject(self.status, &self.body.code) {
            telemetry().rejected(why);
        }
        let body = ErrorBody { detail: Some(self.body.error.clone()), ..*self.body };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = Response::builder().status(self.status).content_type(JSON).body(body);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::REQUEST_TIMEOUT {
            // The server does not read the rest of the body.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"warpgauge\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl From<ApiError> for poem::Error {
    fn from(error: ApiError) -> Self {
        poem::Error::from_response(error.into_response())
    }
}

/// Converts an error of poem or poem-openapi, of which only the text is available.
pub(crate) fn framework_error(
    status: StatusCode,
    text: &str,
    method: &str,
    path: &str,
) -> ApiError {
    match status {
        StatusCode::NOT_FOUND => ApiError::new(
            status,
            ErrorCode::NotFound,
            format!("there is nothing at {path}; /docs lists all operations"),
        ),
        StatusCode::METHOD_NOT_ALLOWED => ApiError::new(
            status,
            ErrorCode::MethodNotAllowed,
            format!(
                "{path} does not support {method}; the Allow header lists the supported methods"
            ),
        ),
        StatusCode::BAD_REQUEST => {
            let name = text.split('`').nth(1).unwrap_or("request");
            let message = reason(text).map(|reason| format!("{name}: {reason}"));
            let message = message.unwrap_or_else(|| text.to_owned());
            ApiError::field(name, FailureCode::InvalidParameter, message)
        }
        status => {
            let code = status.canonical_reason().unwrap_or("error").to_lowercase();
            ApiError::new(status, code.replace([' ', '-'], "_").into(), text)
        }
    }
}

/// Returns what is wrong with a parameter, from an error of poem-openapi that also names the type.
fn reason(text: &str) -> Option<&str> {
    let (_, named) = text.split_once("failed to parse \"")?;
    Some(named.split_once("\": ")?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_parameter_names_no_type() {
        let text = "failed to parse parameter `verdict`: failed to parse \"KernelVerdict\": unknown \
                    variant `x`, expected `correct`";
        let error = framework_error(StatusCode::BAD_REQUEST, text, "GET", "/jobs");
        let json = serde_json::to_value(error.body()).unwrap();
        assert_eq!(json["error"], "verdict: unknown variant `x`, expected `correct`");
        let other = framework_error(StatusCode::BAD_REQUEST, "parameter `a` is absent", "GET", "/");
        let json = serde_json::to_value(other.body()).unwrap();
        assert_eq!(json["error"], "parameter `a` is absent");
    }

    #[test]
    fn an_error_of_the_executor_has_a_status_and_a_code_of_its_cause() {
        let text = || "m".to_owned();
        let problem = Problem { path: "p".into(), code: "bad_shape".into(), message: text() };
        let full = ExecError::QueueFull { waiting: 1, retry_after: Duration::from_millis(1500) };
        for (error, status, code, retry_after_s) in [
            (ExecError::Invalid(vec![problem]), 400, ErrorCode::InvalidContract, None),
            (full, 429, ErrorCode::QueueFull, Some(2)),
            (ExecError::ConditionsDiffer(text()), 409, ErrorCode::ConditionsDiffer, None),
            (ExecError::NotOffered(text()), 503, ErrorCode::UnmetRequirements, None),
            (ExecError::ShuttingDown, 503, ErrorCode::ShuttingDown, None),
            (ExecError::Unavailable(text()), 503, ErrorCode::Unavailable, None),
            (ExecError::RunnersLost(text()), 503, ErrorCode::Unavailable, None),
            (ExecError::Internal { id: text(), message: text() }, 500, ErrorCode::Internal, None),
        ] {
            let message = error.to_string();
            let error = ApiError::from(ServiceError::from(error));
            assert_eq!((error.status.as_u16(), &error.body.code), (status, &code), "{message}");
            assert_eq!((error.retry_after_s, &error.body.error), (retry_after_s, &message));
        }
    }

    /// Later callers receive the same status as the first.
    #[test]
    fn a_failure_keeps_its_status() {
        let status = |code: ErrorCode| {
            let (job_id, message) = ("j".to_owned(), "m".to_owned());
            let error = ServiceError::JobFailed { job_id, code: code.clone(), message };
            let error = ApiError::from(error);
            assert_eq!((&error.body.code, error.body.job_id.as_deref()), (&code, Some("j")));
            (error.status.as_u16(), error.retry_after_s.is_some())
        };
        assert_eq!(status(ErrorCode::Unavailable), (503, false));
        assert_eq!(status(ErrorCode::UnmetRequirements), (503, false));
        assert_eq!(status(ErrorCode::QueueFull), (429, true));
        assert_eq!(status(ErrorCode::InvalidContract), (400, false));
        assert_eq!(status(ErrorCode::Internal), (500, false));
        assert_eq!(status(ErrorCode::AttemptsExhausted), (500, false));
    }
}
