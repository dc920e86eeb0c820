//! Calibration: comparisons of each case with itself determine the smallest slowdown that the gate
//! can detect on one kind of device. The main type is [`Calibration`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunEnvironment;
use warpgauge_contract::BodyFormat;
use warpgauge_model::{CacheState, PresetName};
use warpgauge_statistics::paired::{PairedComparison, t_quantile};

/// Version of the file format that this program reads and writes.
const VERSION: u32 = 1;

/// Minimum number of runs of a calibration.
pub const MIN_RUNS: u32 = 3;

/// Reason why a calibration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The file cannot be parsed.
    #[error("the calibration cannot be read: {0}; make a new one with `warpgauge gate calibrate`")]
    Parse(warpgauge_contract::ParseError),
    /// A number is out of range.
    #[error("{at}: {message}; make a new calibration with `warpgauge gate calibrate`")]
    Value { at: String, message: String },
    /// The calibration was made under different conditions.
    #[error(
        "the calibration was made with a different {what}: {calibrated} then, {now} now; \
         calibrate again on this machine, or use the machine of the calibration"
    )]
    Mismatch {
        what: &'static str,
        /// Value at the calibration.
        calibrated: String,
        /// Value under the current conditions.
        now: String,
    },
}

/// Content of a calibration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GateCalibration")]
pub struct Calibration {
    /// Version of the file format.
    pub version: u32,
    /// Conditions of the calibration.
    pub conditions: CalibrationConditions,
    /// Number of blocks per run.
    pub blocks: u32,
    /// Number of runs of each case, each in fresh processes.
    pub runs: u32,
    /// Results by name of the case.
    pub cases: BTreeMap<String, CalibratedCase>,
}

/// Conditions under which a calibration is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationConditions {
    /// Product name of the device.
    pub device: String,
    /// Version of the driver. Absent if the device does not report it.
    pub driver: Option<String>,
    /// CUDA version of the driver.
    pub cuda: String,
    /// Method of timing.
    pub method: String,
    /// Version of the method of timing.
    pub method_version: u32,
    /// Preset of the suite.
    pub preset: PresetName,
}

impl CalibrationConditions {
    /// Returns the conditions of measurements in this environment.
    pub fn of(seen: &RunEnvironment, preset: PresetName) -> Self {
        let method = seen.method.as_ref();
        Self {
            device: seen.device.name.clone(),
            driver: method.and_then(|method| method.driver.clone()),
            cuda: seen.device.cuda_version.clone(),
            method: method.map(|method| method.method.clone()).unwrap_or_default(),
            method_version: method.map_or(0, |method| method.method_version),
            preset,
        }
    }
}

/// Result of comparing a case with itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibratedCase {
    /// State of the L2 cache at each launch.
    pub cache: CacheState,
    /// Largest relative difference in any run when the case was compared with itself.
    pub floor: f64,
    /// Largest relative standard deviation of a block in any run.
    pub block_sd: f64,
    /// Smallest relative slowdown that the gate of this suite detects with a probability of 95 %.
    pub minimum_detectable_effect: f64,
    /// Reasons why the case is advisory and cannot fail the suite. Empty if the case can fail the
    /// suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advisory: Vec<String>,
}

/// Parameters of the test that a suite applies to a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedTest {
    /// Relative margin τ, before the floor is applied.
    pub margin: f64,
    /// Relative slowdown Δ that the gate must detect.
    pub delta: f64,
    /// Error probability at one look (interim analysis): α divided by the number of the suite's
    /// cases and by the number of the preset's looks.
    pub alpha: f64,
    /// Number of blocks at the last look (interim analysis).
    pub blocks: u32,
}

impl Calibration {
    /// Creates a calibration of this version.
    pub fn new(
        conditions: CalibrationConditions,
        blocks: u32,
        runs: u32,
        cases: BTreeMap<String, CalibratedCase>,
    ) -> Self {
        Self { version: VERSION, conditions, blocks, runs, cases }
    }

    /// Parses a calibration file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a calibration, has another version, or has numbers out
    /// of range.
    pub fn parse(bytes: &[u8]) -> Result<Self, CalibrationError> {
        let read: Self =
            warpgauge_contract::parse(BodyFormat::Json, bytes).map_err(CalibrationError::Parse)?;
        read.verify()?;
        Ok(read)
    }

    /// Checks the format version and that the numbers are in range.
    ///
    /// # Errors
    /// Returns the first problem, with its path in the file.
    pub fn verify(&self) -> Result<(), CalibrationError> {
        let refuse = |at: String, message: &str| {
            Err(CalibrationError::Value { at, message: message.to_owned() })
        };
        if self.version != VERSION {
            return refuse("version".to_owned(), "is not the version that this program reads");
        }
        for (name, case) in &self.cases {
            let numbers = [
                ("floor", case.floor),
                ("block_sd", case.block_sd),
                ("minimum_detectable_effect", case.minimum_detectable_effect),
            ];
            for (field, value) in numbers {
                if !(value.is_finite() && value >= 0.0) {
                    return refuse(
                        format!("cases.{name}.{field}"),
                        "must be a finite number of at \
                                                                    least 0",
                    );
                }
            }
        }
        Ok(())
    }

    /// Checks whether the calibration is valid under these conditions. The error names the first
    /// difference.
    pub fn check(&self, now: &CalibrationConditions) -> Result<(), CalibrationError> {
        let then = &self.conditions;
        let driver = |driver: &Option<String>| driver.clone().unwrap_or("unknown".to_owned());
        let method =
            |of: &CalibrationConditions| format!("{} version {}", of.method, of.method_version);
        let preset = |of: &CalibrationConditions| format!("{:?}", of.preset).to_lowercase();
        let differences = [
            ("device", then.device.clone(), now.device.clone()),
            ("driver", driver(&then.driver), driver(&now.driver)),
            ("CUDA version", then.cuda.clone(), now.cuda.clone()),
            ("method of timing", method(then), method(now)),
            ("preset", preset(then), preset(now)),
        ];
        let differing = differences.into_iter().find(|(_, calibrated, now)| calibrated != now);
        match differing {
            Some((what, calibrated, now)) => {
                Err(CalibrationError::Mismatch { what, calibrated, now })
            }
            None => Ok(()),
        }
    }
}

/// Calibrates a case from its comparisons with itself.
///
/// The smallest slowdown that is detected is max(τ, floor) + (t₁₋α + t₀.₉₅)·s/√n with the largest s
/// of the runs. This is the sample size formula of the one-sided t-test, with t for the normal
/// quantiles. `extra` contains additional reasons why the case must be advisory.
pub fn calibrated(
    cache: CacheState,
    runs: &[PairedComparison],
    planned: &PlannedTest,
    extra: Vec<String>,
) -> CalibratedCase {
    let estimates = runs.iter().filter_map(|run| run.time).collect::<Vec<_>>();
    let floor = estimates.iter().map(|time| (time.ratio - 1.0).abs()).fold(0.0, f64::max);
    let block_sd = estimates.iter().map(|time| time.block_sd).fold(0.0, f64::max);
    let margin = planned.margin.max(floor);
    let freedom = f64::from(planned.blocks.max(2)) - 1.0;
    let quantiles = t_quantile(1.0 - planned.alpha, freedom) + t_quantile(0.95, freedom);
    let found = margin + quantiles * block_sd / f64::from(planned.blocks.max(2)).sqrt();
    let mut advisory = extra;
    if found > planned.delta {
        advisory.push(format!(
            "only slowdowns of {:.2} % or more are detected, but {:.2} % must be detected",
            100.0 * found,
            100.0 * planned.delta
        ));
    }
    let unsound = runs.iter().filter(|run| run.p_value.is_none()).count();
    if unsound > 0 {
        advisory.push(format!(
            "{unsound} of {} runs gave no p-value, because their blocks cannot support a verdict",
            runs.len()
        ));
    }
    if estimates.is_empty() {
        advisory.push("no run gave a ratio of times".to_owned());
    }
    CalibratedCase { cache, floor, block_sd, minimum_detectable_effect: found, advisory }
}

#[cfg(test)]
mod tests;
