//! The environment of a gate run: the device and the measurement method. The main type is
//! [`RunEnvironment`].

use super::report::MethodReport;
use warpgauge_model::DeviceKind;
use warpgauge_report::{CompareResponse, DeviceReport, EvaluateResponse, VerdictBy};

/// Environment of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnvironment {
    pub device: DeviceReport,
    /// Measurement method of times or counts; `None` if nothing was measured.
    pub method: Option<MethodReport>,
}

impl RunEnvironment {
    /// Returns the environment of a kernel's evaluation. `None` if no device was chosen, or if its
    /// results cannot be ranked.
    pub fn of(report: &EvaluateResponse) -> Option<Self> {
        if report.torch.is_some() {
            // Times of torch kernels are never compared here, so the conditions do not matter.
            return None;
        }
        let device = report.device.clone()?;
        let measurement = report.measurement.as_ref();
        let method = measurement.map(|measurement| MethodReport {
            method: measurement.method.clone(),
            method_version: measurement.method_version,
            driver: measurement.gpu.as_ref().and_then(|gpu| gpu.driver.clone()),
        });
        Some(Self { device, method })
    }

    /// Returns the basis of verdicts in this environment: times on a GPU, counts on the emulator.
    pub fn verdict_by(&self) -> VerdictBy {
        match self.device.kind {
            DeviceKind::Cuda => VerdictBy::Times,
            DeviceKind::Emulator => VerdictBy::Counts,
        }
    }
}

impl RunEnvironment {
    /// Returns the environment of a comparison. `None` if no device ran it, or if its results
    /// cannot be ranked.
    pub fn of_comparison(response: &CompareResponse) -> Option<Self> {
        if response.verdict_by == VerdictBy::Nothing {
            return None;
        }
        let method = Self::of(&response.reference).and_then(|seen| seen.method);
        Some(Self { device: response.device.clone()?, method })
    }
}
