//! `POST /admin/cleanup-jobs`: removes ended jobs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use warpgauge_job_views::CleanupReport;
use warpgauge_model::FailureCode;
use warpgauge_service::CleanupPolicy;

/// Minimum age of the ended jobs that are removed if the request has no parameters, as in the CUDA
/// Evaluation Server.
const DEFAULT_AGE: Duration = Duration::from_secs(300);

/// Result of `POST /admin/cleanup-jobs`, with the fields of the CUDA Evaluation Server and
/// additional ones.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Cleaned {
    /// Always `cleanup_completed`.
    pub status: String,
    /// Number of removed jobs, with their reports and artifacts.
    pub cleaned_jobs: u64,
    /// Total size of the removed reports and artifacts, bytes.
    pub cleaned_bytes: u64,
}

impl Cleaned {
    pub(crate) fn new(report: CleanupReport) -> Self {
        Self {
            status: "cleanup_completed".to_owned(),
            cleaned_jobs: report.jobs,
            cleaned_bytes: report.bytes,
        }
    }
}

/// Returns the retention limits that the parameters describe.
pub(crate) fn policy(
    older_than_s: Option<f64>,
    keep: Option<u64>,
    max_bytes: Option<u64>,
) -> Result<CleanupPolicy, ApiError> {
    let wrong = |got: f64| {
        let message = format!("older_than_s: expected a number of seconds, at least 0, got {got}");
        ApiError::field("older_than_s", FailureCode::OutOfRange, message)
    };
    let age = |seconds| Duration::try_from_secs_f64(seconds).map_err(|_| wrong(seconds));
    let older_than = older_than_s.map(age).transpose()?;
    let nothing_said = older_than.is_none() && keep.is_none() && max_bytes.is_none();
    let older_than = if nothing_said { Some(DEFAULT_AGE) } else { older_than };
    Ok(CleanupPolicy { older_than, keep, max_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_parameters_the_age_is_that_of_the_reference() {
        let none = policy(None, None, None).unwrap();
        assert_eq!(none.older_than, Some(DEFAULT_AGE));
        let kept = policy(None, Some(3), None).unwrap();
        assert_eq!((kept.older_than, kept.keep), (None, Some(3)));
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(policy(Some(wrong), None, None).is_err(), "{wrong}");
        }
        assert_eq!(policy(Some(0.0), None, None).unwrap().older_than, Some(Duration::ZERO));
    }
}
