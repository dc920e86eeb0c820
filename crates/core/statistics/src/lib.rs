//! Statistics of samples, without a clock and without I/O.
//!
//! [`StopRule`] and [`Preset`] determine how much to measure, and [`decide`] whether the samples
//! suffice. [`screen`] rejects samples by the health of the device, and [`Summary`] summarises the
//! rest. [`speed_of_light`] determines whether a time is possible, and [`rates()`] what was
//! achieved. [`paired`] decides which of two kernels is faster. [`Counted`] decides which does less
//! work, on devices without meaningful times.

#![forbid(unsafe_code)]

mod counted;
mod dependence;
mod floor;
mod health;
mod load;
mod modes;
pub mod paired;
mod parted;
mod plan;
mod presets;
pub mod random;
mod rates;
mod sealed;
mod stats;
mod stopping;
mod summary;

pub use counted::{
    COMPARED_COUNTS, Counted, CountedComparison, CountedRank, CountedVerdict, rank_counted,
};
pub use dependence::{DEPENDENT_ABOVE, median_variance_inflation};
pub use floor::{
    FloorDevice, FloorLimit, SpeedOfLight, compute_floor_ms, memory_floor_ms, peak_flops_per_clock,
    speed_of_light,
};
pub use health::{
    HealthFlag, Reading, RejectCount, RejectReason, SampleBatch, Screened, ThrottleReason,
    health_flags, invalidates_timing, screen, throttle_reasons,
};
pub use load::load_agrees;
pub use modes::{TwoModes, two_modes};
pub use parted::{RankedBy, ranked_by};
pub use plan::{
    FIRST_LOOK, HALF_WIDTH, MAX_TRIALS, StopRule, WARMUP_BATCH, geometric_looks, is_stable,
};
pub use presets::{CompareBudget, GatePolicy, MeasurementBudget, Preset, PresetError};
pub use rates::{BytesFrom, Rates, rates};
pub use sealed::{SealedTimes, sealed_times};
pub use stats::{
    RuntimeStats, Sorted, coefficient_of_variation, lag1_autocorrelation, mean, runtime_stats,
    sample_std,
};
pub use stopping::{Decision, StopReason, decide, half_width};
pub use summary::Summary;
