//! Kinds of jobs. Each kind defines the types of its request and its response.

use crate::error::{self, ServiceError};
use crate::submission::JobRequest;
use warpgauge_contract::{CompareRequest, EvaluateRequest, SweepRequest};
use warpgauge_executor::JobOutcome;
use warpgauge_gate::GateRequest;
use warpgauge_gate::report::GateReport;
use warpgauge_report::{CompareResponse, EvaluateResponse, SweepResponse};

/// A kind of job. Each variant of [`JobRequest`] has one implementation.
pub(crate) trait TypedKind {
    type Request;
    type Response;

    /// Wraps the request.
    fn request(request: Self::Request) -> JobRequest;

    /// Returns the response if the outcome is of this kind.
    fn response(outcome: JobOutcome) -> Option<Self::Response>;
}

/// Returns the response of a job of this kind.
///
/// # Errors
/// The job is of another kind. This indicates a bug, because requests of different kinds never have
/// the same hash.
pub(crate) fn response_of<K: TypedKind>(outcome: JobOutcome) -> Result<K::Response, ServiceError> {
    K::response(outcome).ok_or_else(|| {
        let error = std::io::Error::other("the stored job is of another kind than the request");
        error::internal("reading a report", &error)
    })
}

macro_rules! typed_kinds {
    ($($kind:ident: $request:ty => $response:ty, $outcome:ident;)*) => {$(
        pub(crate) enum $kind {}

        impl TypedKind for $kind {
            type Request = $request;
            type Response = $response;

            fn request(request: $request) -> JobRequest {
                JobRequest::$kind(Box::new(request))
            }

            fn response(outcome: JobOutcome) -> Option<$response> {
                match outcome {
                    JobOutcome::$outcome(response) => Some(*response),
                    _ => None,
                }
            }
        }
    )*};
}

typed_kinds! {
    Evaluate: EvaluateRequest => EvaluateResponse, Evaluated;
    Execute: EvaluateRequest => EvaluateResponse, Evaluated;
    Compare: CompareRequest => CompareResponse, Compared;
    Sweep: SweepRequest => SweepResponse, Swept;
    Gate: GateRequest => GateReport, Gated;
}
