//! Health of the device during a measurement. The main functions are [`screen`] and
//! [`health_flags`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share of the batches' median clock below which a batch is rejected.
const CLOCK_DROP: f64 = 0.9;
/// Share of the device's peak clock below which a clock is reported as low.
const LOW_CLOCK: f64 = 0.75;

/// Reason why a device does not run at its maximum clock: the bits of NVML's `nvmlDeviceGetCurrentClocksEventReasons`
/// (`nvmlClocksEventReason*`, in older versions `nvmlClocksThrottleReason*`, in `nvml.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// The GPU is idle.
    GpuIdle,
    /// An administrator set the clocks.
    ApplicationsClocksSetting,
    /// The GPU reached its power limit.
    SwPowerCap,
    /// The hardware slowed down because of the temperature, the power brake, or a fast rise of
    /// power.
    HwSlowdown,
    /// The clock is synchronised with the clocks of other devices.
    SyncBoost,
    /// The driver slowed down because of the temperature.
    SwThermalSlowdown,
    /// The hardware slowed down to half the clock or less because of the temperature.
    HwThermalSlowdown,
    /// The power supply requested a lower clock.
    HwPowerBrakeSlowdown,
    /// A display determines the clocks.
    DisplayClockSetting,
    /// A bit that this version does not know.
    Unknown,
}

/// NVML's bits and their meanings, with the lowest bit first.
const BITS: [(u64, ThrottleReason); 9] = [
    (0x1, ThrottleReason::GpuIdle),
    (0x2, ThrottleReason::ApplicationsClocksSetting),
    (0x4, ThrottleReason::SwPowerCap),
    (0x8, ThrottleReason::HwSlowdown),
    (0x10, ThrottleReason::SyncBoost),
    (0x20, ThrottleReason::SwThermalSlowdown),
    (0x40, ThrottleReason::HwThermalSlowdown),
    (0x80, ThrottleReason::HwPowerBrakeSlowdown),
    (0x100, ThrottleReason::DisplayClockSetting),
];

impl ThrottleReason {
    /// Returns whether times measured in this state are invalid. Heat and faults of the power
    /// supply invalidate them, because they result from earlier load and from the environment. A
    /// power cap does not: many devices always run with a power cap, and power consumption is a
    /// property of the kernel.
    pub fn invalidates_timing(self) -> bool {
        matches!(
            self,
            Self::HwSlowdown
                | Self::SwThermalSlowdown
                | Self::HwThermalSlowdown
                | Self::HwPowerBrakeSlowdown
        )
    }
}

/// Returns the reasons in a set of NVML bits, with [`ThrottleReason::Unknown`] at the end if there
/// are other bits.
pub fn throttle_reasons(bits: u64) -> Vec<ThrottleReason> {
    let known = BITS.iter().fold(0, |mask, (bit, _)| mask | bit);
    let named = BITS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, reason)| *reason);
    named.chain((bits & !known != 0).then_some(ThrottleReason::Unknown)).collect()
}

/// Returns whether one of the bits invalidates times measured in this state.
pub fn invalidates_timing(bits: u64) -> bool {
    BITS.iter().any(|(bit, reason)| bits & bit != 0 && reason.invalidates_timing())
}

/// State of the device during a batch of samples or a block. Values that could not be read are
/// `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Mean clock of the multiprocessors, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_hz: Option<f64>,
    /// NVML's throttle bits at any time during the batch, combined by OR.
    #[serde(default)]
    pub throttle_reasons: u64,
    /// Temperature of the GPU, °C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// Power draw of the GPU, watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Number of processes on the device that warpgauge did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
}

/// Condition of the GPU that affects times.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HealthFlag {
    /// The GPU slowed down because of its temperature.
    ThermalThrottle,
    /// The hardware slowed down because of the power supply, or for a reason that it does not report.
    HwSlowdown,
    /// The GPU reached its power limit.
    PowerCap,
    /// The clock was below three quarters of the maximum.
    LowClock,
    /// Other processes used the GPU.
    Contention,
    /// The clock could not be read.
    ClockUnknown,
}

/// Returns the flags of a reading, on a device with the peak SM clock `peak_hz` (0 if unknown).
pub fn health_flags(reading: &Reading, peak_hz: f64) -> Vec<HealthFlag> {
    let bits = reading.throttle_reasons;
    let low = reading.sm_clock_hz.is_some_and(|hz| hz < LOW_CLOCK * peak_hz);
    [
        (bits & 0x60 != 0, HealthFlag::ThermalThrottle),
        (bits & 0x88 != 0, HealthFlag::HwSlowdown),
        (bits & 0x4 != 0, HealthFlag::PowerCap),
        (low, HealthFlag::LowClock),
        (reading.other_processes.is_some_and(|n| n > 0), HealthFlag::Contention),
        (reading.sm_clock_hz.is_none(), HealthFlag::ClockUnknown),
    ]
    .into_iter()
    .filter_map(|(holds, flag)| holds.then_some(flag))
    .collect()
}

/// Successive samples, with the state of the device during them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleBatch {
    pub samples: u32,
    /// State of the device during the samples.
    pub reading: Reading,
}

/// Reason for dropping samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// The GPU slowed down because of its temperature or power supply.
    ThermalThrottle,
    /// The clock was more than a tenth below that of the other batches.
    ClockDrop,
}

/// Number of samples that were dropped for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectCount {
    /// Reason for dropping the samples.
    pub reason: RejectReason,
    /// Number of samples that were dropped for this reason.
    pub count: u32,
}

/// Result of screening batches of samples by the state of the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Screened {
    /// Reason for the rejection of each batch, or `None`.
    pub batches: Vec<Option<RejectReason>>,
    /// Number of rejected samples per reason, without reasons that did not occur.
    pub rejected: Vec<RejectCount>,
    /// Number of samples that are not rejected.
    pub kept: u32,
}

impl Screened {
    /// Returns whether all samples were rejected, which gives the result `no_valid_samples`.
    pub fn no_valid_samples(&self) -> bool {
        self.kept == 0 && !self.rejected.is_empty()
    }
}

/// Screens the batches of one measurement by the state of the device alone. No rule depends on a
/// time, so no rule can prefer certain times.
///
/// A batch is rejected if the device throttles because of heat or the power supply
/// (`thermal_throttle`). It is also rejected if its mean SM clock is below 90 % of the median clock
/// of the batches that did not throttle (`clock_drop`). The reference is that median rather than
/// the peak clock, because a device at its power limit runs steadily below the peak. A limit that
/// is low enough to allow this (75 % is in use elsewhere) would accept a drop by a quarter. The
/// clock rule alone never rejects half of the batches.
pub fn screen(batches: &[SampleBatch]) -> Screened {
    let throttles = |batch: &SampleBatch| invalidates_timing(batch.reading.throttle_reasons);
    let clock =
        |batch: &SampleBatch| batch.reading.sm_clock_hz.filter(|hz| hz.is_finite() && *hz > 0.0);
    let mut clocks: Vec<f64> = batches.iter().filter(|b| !throttles(b)).filter_map(clock).collect();
    clocks.sort_unstable_by(f64::total_cmp);
    // The lower of the two middle values, so that at most half of the clocks are below it.
    let median = clocks.get(clocks.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    let reasons: Vec<Option<RejectReason>> = batches
        .iter()
        .map(|batch| {
            if throttles(batch) {
                Some(RejectReason::ThermalThrottle)
            } else {
                clock(batch)
                    .is_some_and(|hz| hz < CLOCK_DROP * median)
                    .then_some(RejectReason::ClockDrop)
            }
        })
        .collect();
    let count = |reason: Option<RejectReason>| {
        let of_reason = batches.iter().zip(&reasons).filter(|(_, r)| **r == reason);
        of_reason.fold(0_u32, |sum, (batch, _)| sum.saturating_add(batch.samples))
    };
    let rejected = [RejectReason::ThermalThrottle, RejectReason::ClockDrop]
        .map(|reason| RejectCount { reason, count: count(Some(reason)) });
    Screened {
        rejected: rejected.into_iter().filter(|r| r.count > 0).collect(),
        kept: count(None),
        batches: reasons,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(ghz: f64, bits: u64) -> SampleBatch {
        let reading =
            Reading { sm_clock_hz: Some(ghz * 1e9), throttle_reasons: bits, ..Reading::default() };
        SampleBatch { samples: 10, reading }
    }

    #[test]
    fn bits_have_names() {
        use ThrottleReason::{HwSlowdown, HwThermalSlowdown, SwPowerCap, Unknown};
        assert!(throttle_reasons(0).is_empty());
        assert_eq!(throttle_reasons(0x4c), [SwPowerCap, HwSlowdown, HwThermalSlowdown]);
        assert_eq!(throttle_reasons(0x4 | 1 << 40), [SwPowerCap, Unknown]);
        let invalid: Vec<u64> =
            (0..10).map(|i| 1 << i).filter(|bit| invalidates_timing(*bit)).collect();
        assert_eq!(invalid, [0x8, 0x20, 0x40, 0x80]);
    }

    #[test]
    fn flags_of_a_reading() {
        use HealthFlag::{
            ClockUnknown, Contention, HwSlowdown, LowClock, PowerCap, ThermalThrottle,
        };
        let reading = Reading {
            sm_clock_hz: Some(1.4e9),
            throttle_reasons: 0x4c,
            other_processes: Some(1),
            ..Reading::default()
        };
        let all = [ThermalThrottle, HwSlowdown, PowerCap, LowClock, Contention];
        assert_eq!(health_flags(&reading, 1.98e9), all);
        assert!(!health_flags(&reading, 0.0).contains(&LowClock));
        assert_eq!(health_flags(&Reading::default(), 1.98e9), [ClockUnknown]);
    }

    #[test]
    fn a_steady_low_clock_counts_and_a_fall_does_not() {
        let steady = screen(&[batch(1.3, 0x4), batch(1.31, 0x4), batch(1.29, 0x4)]);
        assert_eq!((steady.kept, steady.rejected.len()), (30, 0));
        let fall = screen(&[batch(1.9, 0), batch(1.9, 0), batch(1.5, 0), batch(1.98, 0x40)]);
        assert_eq!(
            fall.batches,
            [None, None, Some(RejectReason::ClockDrop), Some(RejectReason::ThermalThrottle)]
        );
        assert_eq!(fall.kept, 20);
        assert_eq!(fall.rejected[0].count + fall.rejected[1].count, 20);
        assert!(!fall.no_valid_samples());
    }

    #[test]
    fn all_rejected_is_a_result_and_nothing_is_not() {
        let hot = screen(&[batch(1.9, 0x20); 3]);
        assert!(hot.no_valid_samples());
        let expected = RejectCount { reason: RejectReason::ThermalThrottle, count: 30 };
        assert_eq!(hot.rejected, [expected]);
        assert!(!screen(&[]).no_valid_samples());
        let unknown = SampleBatch { samples: 5, reading: Reading::default() };
        assert_eq!(screen(&[unknown]).kept, 5);
        // For two equal halves the median is the lower value, so neither is rejected.
        assert_eq!(screen(&[batch(1.0, 0), batch(2.0, 0)]).kept, 20);
    }
}
