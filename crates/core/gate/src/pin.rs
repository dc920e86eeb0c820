//! Conditions of a stored baseline. The main type is [`BaselinePin`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CalibrationConditions;

/// Device, driver and method for which a stored baseline is valid. Comparisons under other
/// conditions are rejected, because kernels are tuned for a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselinePin {
    /// Product name of the device.
    pub device: String,
    /// Version of the driver. Absent if the device does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// CUDA version of the driver.
    pub cuda: String,
    /// Method of timing.
    pub method: String,
    /// Version of the method of timing.
    pub method_version: u32,
}

/// The baseline is pinned to conditions that differ from the current ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the baseline is pinned to a different {what}: {pinned} then, {now} now; use a machine of \
     that kind, or store a baseline for this one"
)]
pub struct PinMismatch {
    pub what: &'static str,
    /// Value of the baseline.
    pub pinned: String,
    /// Value under the current conditions.
    pub now: String,
}

impl BaselinePin {
    /// Checks whether the pin matches the current conditions. The error names the first difference.
    pub fn check(&self, now: &BaselinePin) -> Result<(), PinMismatch> {
        let driver = |driver: &Option<String>| driver.clone().unwrap_or("unknown".to_owned());
        let method = |of: &BaselinePin| format!("{} version {}", of.method, of.method_version);
        let differences = [
            ("device", self.device.clone(), now.device.clone()),
            ("driver", driver(&self.driver), driver(&now.driver)),
            ("CUDA version", self.cuda.clone(), now.cuda.clone()),
            ("method", method(self), method(now)),
        ];
        match differences.into_iter().find(|(_, pinned, now)| pinned != now) {
            Some((what, pinned, now)) => Err(PinMismatch { what, pinned, now }),
            None => Ok(()),
        }
    }
}

impl From<&CalibrationConditions> for BaselinePin {
    fn from(conditions: &CalibrationConditions) -> Self {
        Self {
            device: conditions.device.clone(),
            driver: conditions.driver.clone(),
            cuda: conditions.cuda.clone(),
            method: conditions.method.clone(),
            method_version: conditions.method_version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let pin = BaselinePin {
            device: "H200".to_owned(),
            driver: Some("580.1".to_owned()),
            cuda: "13.0".to_owned(),
            method: "cuda_events_gated".to_owned(),
            method_version: 2,
        };
        assert_eq!(pin.check(&pin), Ok(()));
        for (now, what) in [
            (BaselinePin { device: "H100".to_owned(), ..pin.clone() }, "device"),
            (BaselinePin { driver: None, ..pin.clone() }, "driver"),
            (BaselinePin { cuda: "13.1".to_owned(), ..pin.clone() }, "CUDA version"),
            (BaselinePin { method_version: 3, ..pin.clone() }, "method"),
            (BaselinePin { method: "emulated".to_owned(), ..pin.clone() }, "method"),
        ] {
            assert_eq!(pin.check(&now).unwrap_err().what, what);
        }
    }
}
