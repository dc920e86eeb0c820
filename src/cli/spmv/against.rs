//! The library with which kernels are compared. It multiplies the same matrices.

use serde::Serialize;

use super::args::Against;
use super::row::Row;
use crate::cli::CliError;
use crate::exit::Exit;
use warpgauge_model::DeviceKind;
use warpgauge_report::EvaluateResponse;

/// The library and, if it cannot be called, the reason.
pub(super) struct Rival {
    against: Against,
    /// Reason why the library cannot be called here. It is not called again in this case.
    missing: Option<String>,
}

/// Result of the library's product for one matrix.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    /// Median time of a call, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) median_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ci_ms: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gflops: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gbps: Option<f64>,
    /// Reason why there is no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    #[serde(skip)]
    is_gpu: bool,
}

impl Rival {
    pub(super) fn new(against: Against) -> Self {
        Self { against, missing: None }
    }

    pub(super) fn title(&self) -> &'static str {
        match self.against {
            Against::Cusparse => "cuSPARSE",
        }
    }

    /// Returns whether the library can be called. This holds until a call fails.
    pub(super) fn is_there(&self) -> bool {
        self.missing.is_none()
    }

    /// Returns the reason why the library cannot be called, if any.
    pub(super) fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// Multiplies one matrix with the library, and returns the result. A failure of the library
    /// does not affect the kernel, so it is recorded and printed with the table.
    ///
    /// # Errors
    /// Errors that would also end the command if they occurred for the kernel.
    pub(super) fn answer(
        &mut self,
        answer: Result<EvaluateResponse, CliError>,
    ) -> Result<Option<Measured>, CliError> {
        match answer {
            Ok(report) => Ok(Some(Measured::of(&report))),
            Err(error) if matches!(error.exit(), Exit::Usage | Exit::Environment) => {
                self.missing = Some(error.render());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Measured {
    fn of(report: &EvaluateResponse) -> Self {
        let Row { median_ms, ci_ms, gflops, gbps, reason, job_id, device_kind, .. } =
            Row::of("", report);
        let is_gpu = device_kind == Some(DeviceKind::Cuda);
        Self { median_ms, ci_ms, gflops, gbps, reason, job_id, is_gpu }
    }

    /// On a GPU, returns the library's median time divided by the kernel's.
    pub(super) fn times(&self, kernel_ms: f64) -> Option<f64> {
        self.median_ms.filter(|_| self.is_gpu).map(|theirs| theirs / kernel_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_remembered_and_what_ends_the_command_is_not() {
        let mut rival = Rival::new(Against::Cusparse);
        let lost = rival.answer(Err(CliError::Internal("lost".to_owned())));
        assert!(lost.is_err() && rival.is_there());
        let missing = CliError::Usage("the emulated device has no cuSPARSE".to_owned());
        assert!(rival.answer(Err(missing)).unwrap().is_none());
        assert!(!rival.is_there() && rival.missing().unwrap().contains("no cuSPARSE"));
    }

    #[test]
    fn only_times_of_a_gpu_are_compared() {
        let measured = |is_gpu| Measured {
            median_ms: Some(0.3),
            ci_ms: None,
            gflops: None,
            gbps: None,
            reason: None,
            job_id: None,
            is_gpu,
        };
        assert_eq!(measured(true).times(0.1).map(|times| (times * 10.0).round()), Some(30.0));
        assert_eq!(measured(false).times(0.1), None);
    }
}
