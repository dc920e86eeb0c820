//! What a run of the gate saw of the device and of the way of measuring.

use super::report::MethodReport;
use warpgauge_model::DeviceKind;
use warpgauge_report::{CompareResponse, DeviceReport, EvaluateResponse, VerdictBy};

/// Where something ran, and how it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnvironment {
    /// The device.
    pub device: DeviceReport,
    /// How times or counts were taken; `None` where nothing was measured.
    pub method: Option<MethodReport>,
}

impl RunEnvironment {
    /// Of a kernel on its own; `None` where no device was chosen, or nothing is
    /// ranked by what it shows.
    pub fn of(report: &EvaluateResponse) -> Option<Self> {
        if report.torch.is_some() {
            // Its times are compared with nothing, so that conditions do not matter.
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

    /// What verdicts rest on there.
    pub fn verdict_by(&self) -> VerdictBy {
        match self.device.kind {
            DeviceKind::Cuda => VerdictBy::Times,
            DeviceKind::Emulator => VerdictBy::Counts,
        }
    }
}

impl RunEnvironment {
    /// Of kernels that were compared; `None` where no device ran them, or nothing ranks them.
    pub fn of_comparison(response: &CompareResponse) -> Option<Self> {
        if response.verdict_by == VerdictBy::Nothing {
            return None;
        }
        let method = Self::of(&response.reference).and_then(|seen| seen.method);
        Some(Self { device: response.device.clone()?, method })
    }
}
