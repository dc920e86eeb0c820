//! Answers of operations that create a job: the job's report or, with `wait=false`, the job's
//! address.

use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{MetaHeader, MetaMediaType, MetaResponse, MetaResponses, Registry};
use poem_openapi::types::Type;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::JsonReply;
use crate::error::{ApiError, JSON};
use crate::schema;
use warpgauge_model::{FailureCode, JobState};
use warpgauge_service::{JobRequest, JobSubmission, Services, SubmittedJob};

/// Returns the default of `wait`.
pub(crate) fn yes() -> bool {
    true
}

/// Job that was accepted. The server did not wait for its end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// Id of the job.
    pub job_id: String,
    /// State of the job: `submitted`, unless the job existed before.
    pub status: JobState,
    /// Path from which the job's state and its report can be fetched.
    pub status_url: String,
    /// Whether an earlier job with the same idempotency key is returned.
    pub existing: bool,
}

impl Accepted {
    pub(crate) fn new(job: SubmittedJob) -> Self {
        let SubmittedJob { job_id, state, existing } = job;
        let status_url = format!("/jobs/{job_id}");
        Self { job_id, status: state, status_url, existing }
    }
}

/// Address of an accepted job for which the caller does not wait, with status 202.
pub(crate) struct AcceptedReply {
    reply: JsonReply<Accepted>,
    status_url: String,
}

impl AcceptedReply {
    /// Submits a job to the service.
    pub(crate) async fn of(
        service: &Services,
        request: JobRequest,
        submission: JobSubmission,
    ) -> Result<Self, ApiError> {
        let accepted = Accepted::new(service.evaluations.submit(request, submission).await?);
        Ok(Self { reply: JsonReply::new(&accepted)?, status_url: accepted.status_url })
    }

    /// Returns the description of the answer in the document.
    pub(crate) fn described() -> MetaResponse {
        let location = MetaHeader {
            name: "LOCATION".to_owned(),
            description: Some("Path of the job.".to_owned()),
            required: true,
            deprecated: false,
            schema: String::schema_ref(),
        };
        MetaResponse {
            description: "The job was accepted (`wait=false`) and can be watched.",
            status: Some(202),
            status_range: None,
            content: vec![MetaMediaType {
                content_type: JSON,
                schema: schema::reference::<Accepted>(),
            }],
            headers: vec![location],
        }
    }
}

impl IntoResponse for AcceptedReply {
    fn into_response(self) -> Response {
        let mut response = self.reply.into_response();
        response.set_status(StatusCode::ACCEPTED);
        if let Ok(location) = HeaderValue::from_str(&self.status_url) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

/// Returns the error for `wait=false` together with a form of the report: such an answer contains
/// no report.
pub(crate) fn form_without_report(parameter: &str, asked: &str) -> ApiError {
    let message = format!(
        "{parameter}: {asked} is a form of the report, and with wait=false the answer contains no report; \
         leave out one of the two (the report of a job is at /jobs/{{job_id}}, its events at \
         /jobs/{{job_id}}/events)"
    );
    ApiError::field(parameter, FailureCode::ContradictoryParameters, message)
}

/// Answers of an operation that creates a job and returns its report in JSON.
pub(crate) enum ReportOrAccepted<T> {
    Report(JsonReply<T>),
    Accepted(AcceptedReply),
}

impl<T> IntoResponse for ReportOrAccepted<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Report(reply) => reply.into_response(),
            Self::Accepted(accepted) => accepted.into_response(),
        }
    }
}

impl<T: JsonSchema> ApiResponse for ReportOrAccepted<T> {
    fn meta() -> MetaResponses {
        let report = MetaResponse {
            description: "Report of the job, which has ended.",
            status: Some(200),
            status_range: None,
            content: vec![MetaMediaType { content_type: JSON, schema: schema::reference::<T>() }],
            headers: vec![],
        };
        MetaResponses { responses: vec![report, AcceptedReply::described()] }
    }

    fn register(registry: &mut Registry) {
        schema::register::<T>(registry);
        schema::register::<Accepted>(registry);
    }
}
