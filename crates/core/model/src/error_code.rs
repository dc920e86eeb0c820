//! Why a request was refused, or a job ended without a report, as codes that programs compare.

use crate::codes::codes;
use crate::failure::FailureCode;

codes! {
    /// Why a request was refused, or a job ended without a report. Codes are never renamed.
    ErrorCode {
        // Requests that cannot be read or are not allowed.
        /// The contract has mistakes; they are listed.
        InvalidContract = "invalid_contract",
        /// No key, or a wrong one.
        Unauthorized = "unauthorized",
        /// Too many wrong keys came from the caller's address.
        TooManyWrongKeys = "too_many_wrong_keys",
        /// A key that may not do that.
        Forbidden = "forbidden",
        /// A page of another origin asks.
        ForeignOrigin = "foreign_origin",
        /// The `Host` header cannot be read.
        InvalidHost = "invalid_host",
        /// The `Host` header names a host that this server is not.
        UnknownHost = "unknown_host",
        /// There is no such method at that address.
        MethodNotAllowed = "method_not_allowed",
        /// A body of a type that is not taken.
        UnsupportedMediaType = "unsupported_media_type",
        /// A body in an encoding that is not taken.
        UnsupportedEncoding = "unsupported_encoding",
        /// A body that is larger than what is taken.
        BodyTooLarge = "body_too_large",
        /// A body that did not come in time.
        BodyTimeout = "body_timeout",
        // Things that are not there.
        /// There is nothing at that address.
        NotFound = "not_found",
        /// There is no such job.
        NoSuchJob = "no_such_job",
        /// There is no such session of an agent.
        NoSuchSession = "no_such_session",
        /// There is no such baseline.
        NoSuchBaseline = "no_such_baseline",
        /// No such matrix.
        NoSuchMatrix = "no_such_matrix",
        /// There is no such shared tensor.
        NoSuchTensor = "no_such_tensor",
        /// The shared tensor is gone: it expired, or made room for another.
        TensorGone = "tensor_gone",
        /// The process that held the shared tensor has died, and the tensor with it.
        HolderDied = "holder_died",
        /// There is no such lease of a shared tensor, or it has ended.
        NoSuchLease = "no_such_lease",
        /// The job has no such artifact.
        NoSuchArtifact = "no_such_artifact",
        /// The artifact is not kept any more.
        ArtifactGone = "artifact_gone",
        // What does not fit what is there.
        /// The idempotency key was used before, for something else.
        IdempotencyConflict = "idempotency_conflict",
        /// The conditions are not those that something holds for.
        ConditionsDiffer = "conditions_differ",
        /// The job is none that can become a baseline.
        NotPromotable = "not_promotable",
        // What the server cannot do now.
        /// The queue for devices is full.
        QueueFull = "queue_full",
        /// The caller has as many jobs as it may have.
        QuotaExceeded = "quota_exceeded",
        /// The server holds as many large bodies as it has memory for.
        TooManyLargeBodies = "too_many_large_bodies",
        /// The server has as many watchers as it may have.
        TooManyWatchers = "too_many_watchers",
        /// The server has as many sessions of agents as it may have.
        TooManySessions = "too_many_sessions",
        /// The server has no memory for the body.
        OutOfMemory = "out_of_memory",
        /// Nobody here meets the requirements.
        UnmetRequirements = "unmet_requirements",
        /// This machine lacks something.
        Unavailable = "unavailable",
        /// The server is going down.
        ShuttingDown = "shutting_down",
        /// A defect of the server, or a broken machine.
        Internal = "internal",
        // How jobs end.
        /// Somebody did not want it any more.
        Cancelled = "cancelled",
        /// Whoever waited for it went away.
        CallerGone = "caller_gone",
        /// It was begun as often as it may be.
        AttemptsExhausted = "attempts_exhausted",
        /// Its stored request cannot be used.
        UnreadableRequest = "unreadable_request",
        /// It failed, and no code was kept.
        Failed = "failed",
        /// It ended, and the server gives no code.
        Unknown = "unknown",
        ..
        /// What is wrong with the one thing that the request is refused for; and codes of another
        /// version.
        Problem(FailureCode),
    }
}

/// A problem that has a code among those of requests has that one.
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
