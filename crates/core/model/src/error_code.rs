//! Codes of rejected requests, and of jobs that ended without a report. The main type is
//! [`ErrorCode`].

use crate::codes::codes;
use crate::failure::FailureCode;

codes! {
    /// Reason why a request was rejected, or a job ended without a report. Codes are never renamed.
    ErrorCode {
        // Requests that cannot be parsed or are not allowed.
        /// The contract has mistakes, which the response lists.
        InvalidContract = "invalid_contract",
        /// The request has no API key, or its key is invalid.
        Unauthorized = "unauthorized",
        /// Too many invalid API keys were sent from the caller's address.
        TooManyWrongKeys = "too_many_wrong_keys",
        /// The API key does not have the required permission.
        Forbidden = "forbidden",
        /// A web page of another origin sent the request.
        ForeignOrigin = "foreign_origin",
        /// The `Host` header is malformed.
        InvalidHost = "invalid_host",
        /// The `Host` header names an unknown host.
        UnknownHost = "unknown_host",
        /// The path does not support the HTTP method.
        MethodNotAllowed = "method_not_allowed",
        /// The body's media type is not supported.
        UnsupportedMediaType = "unsupported_media_type",
        /// The body's encoding is not supported.
        UnsupportedEncoding = "unsupported_encoding",
        /// The body exceeds the size limit.
        BodyTooLarge = "body_too_large",
        /// The body did not arrive in time.
        BodyTimeout = "body_timeout",
        // Things that do not exist.
        /// Nothing exists at this path.
        NotFound = "not_found",
        /// There is no job with this id, or its report is no longer stored.
        NoSuchJob = "no_such_job",
        /// The agent session does not exist.
        NoSuchSession = "no_such_session",
        /// There is no baseline with this name.
        NoSuchBaseline = "no_such_baseline",
        /// There is no matrix with this name.
        NoSuchMatrix = "no_such_matrix",
        /// There is no tensor with this id.
        NoSuchTensor = "no_such_tensor",
        /// The shared tensor expired, or was evicted in favour of another.
        TensorGone = "tensor_gone",
        /// The process that held the shared tensor has died.
        HolderDied = "holder_died",
        /// The lease of a shared tensor does not exist, or has ended.
        NoSuchLease = "no_such_lease",
        /// The job does not have the requested artifact.
        NoSuchArtifact = "no_such_artifact",
        /// The artifact was removed.
        ArtifactGone = "artifact_gone",
        // Conflicts with the existing state.
        /// The idempotency key was used before with a different request.
        IdempotencyConflict = "idempotency_conflict",
        /// The conditions differ from those of a baseline or calibration.
        ConditionsDiffer = "conditions_differ",
        /// The job cannot become a baseline.
        NotPromotable = "not_promotable",
        // Temporary limits of the server.
        /// The queue for devices is full.
        QueueFull = "queue_full",
        /// The caller has reached a quota.
        QuotaExceeded = "quota_exceeded",
        /// The server does not have enough memory for another large request body.
        TooManyLargeBodies = "too_many_large_bodies",
        /// The server has reached its limit on callers that watch jobs.
        TooManyWatchers = "too_many_watchers",
        /// The server has reached its limit on agent sessions.
        TooManySessions = "too_many_sessions",
        /// The server does not have enough memory for the request body.
        OutOfMemory = "out_of_memory",
        /// No server meets the requirements.
        UnmetRequirements = "unmet_requirements",
        /// This machine lacks a resource that the request needs.
        Unavailable = "unavailable",
        /// The server is shutting down.
        ShuttingDown = "shutting_down",
        /// The server has a defect, or its machine is faulty.
        Internal = "internal",
        // Ends of jobs.
        /// A caller cancelled the job.
        Cancelled = "cancelled",
        /// The waiting caller disconnected.
        CallerGone = "caller_gone",
        /// The job has used all its attempts.
        AttemptsExhausted = "attempts_exhausted",
        /// The process that ran the job ended while its kernel ran, and the job may run only once.
        Interrupted = "interrupted",
        /// The stored request cannot be read.
        UnreadableRequest = "unreadable_request",
        /// The job failed, and no code was stored.
        Failed = "failed",
        /// The job ended, and the server gave no code.
        Unknown = "unknown",
        ..
        /// The code of the only problem of a request, or a code of another version.
        Problem(FailureCode),
    }
}

/// A problem whose code is also an error code becomes that error code.
impl From<FailureCode> for ErrorCode {
    fn from(code: FailureCode) -> Self {
        Self::from(code.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::check_codes;

    #[test]
    fn codes_have_names_of_their_own_and_unknown_ones_are_kept() {
        check_codes!(ErrorCode);
    }

    #[test]
    fn a_problem_keeps_its_code() {
        for problem in FailureCode::ALL {
            let code = ErrorCode::from(problem.clone());
            assert_eq!(code.as_str(), problem.as_str());
            assert_eq!(serde_json::from_str::<ErrorCode>(&format!("\"{code}\"")).unwrap(), code);
        }
        let code = ErrorCode::from(FailureCode::TooMuchData);
        assert_eq!(code, ErrorCode::Problem(FailureCode::TooMuchData));
    }
}
