//! Presets for the effort of a measurement, a comparison and a gate. The main type is [`Preset`].

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::paired::{ComparePolicy, MAX_BLOCKS};
use super::plan::{MAX_TRIALS, StopRule};
use warpgauge_model::PresetName;

/// Returns the YAML text of a built-in preset.
fn yaml(name: PresetName) -> &'static str {
    match name {
        PresetName::Quick => include_str!("../../../../profiles/quick.yaml"),
        PresetName::Ci => include_str!("../../../../profiles/ci.yaml"),
        PresetName::Deep => include_str!("../../../../profiles/deep.yaml"),
    }
}

/// Effort and limits of measurements, comparisons and gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    pub measurement: MeasurementBudget,
    /// Effort and decision rule of a comparison.
    pub compare: CompareBudget,
    /// Name of the set of hardware metrics.
    pub metrics: String,
    pub gate: GatePolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurementBudget {
    /// Relative half-width of the median's confidence interval at which to stop.
    pub half_width: f64,
    /// Maximum time of sampling, seconds.
    pub max_time_s: f64,
    /// Number of samples after which precision is first checked.
    pub min_trials: u32,
    /// Maximum number of samples of a measurement.
    pub max_trials: u32,
    /// Minimum time of the warm-up, milliseconds.
    pub min_warmup_ms: f64,
}

impl MeasurementBudget {
    /// Returns the rule that decides when sampling ends.
    pub fn stop_rule(&self) -> StopRule {
        StopRule::adaptive(self.half_width, self.min_trials, self.max_trials, self.max_time_s)
    }
}

/// Effort and decision rule of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareBudget {
    /// Numbers of blocks at which a verdict is sought, ascending.
    pub looks: Vec<u32>,
    /// Number of samples in each of a block's four slots.
    pub trials_per_slot: u32,
    /// Minimum relative margin τ: smaller differences are not reported.
    pub margin: f64,
    /// Minimum relative equivalence limit: the verdict `same` means a difference within it.
    pub equivalence: f64,
    /// Probability of an incorrect `slower`, and also of an incorrect `faster`.
    pub alpha: f64,
    /// Maximum time of a comparison, seconds. After that, the available blocks decide.
    pub max_time_s: f64,
}

impl CompareBudget {
    /// Returns the decision rule of this budget.
    pub fn policy(&self) -> ComparePolicy {
        ComparePolicy {
            looks: self.looks.clone(),
            alpha: self.alpha,
            margin: self.margin,
            equivalence: self.equivalence,
            ..ComparePolicy::default()
        }
    }
}

/// Condition for passing a gate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatePolicy {
    /// Relative slowdown Δ that a pass must exclude.
    pub delta: f64,
}

/// Reason why a preset cannot be used.
#[derive(Debug, Error)]
pub enum PresetError {
    /// The text is not a valid preset file.
    #[error("cannot read preset: {source}")]
    Parse {
        /// Error of the parser, with line and column.
        #[from]
        source: serde_saphyr::Error,
    },
    /// A value is out of range.
    #[error("preset: {field} must be {expected}")]
    Value {
        /// Path of the field.
        field: &'static str,
        /// Description of valid values.
        expected: &'static str,
    },
}

impl Preset {
    /// Returns a built-in preset, which is parsed at first use.
    pub fn builtin(name: PresetName) -> &'static Self {
        static PRESETS: LazyLock<[Preset; PresetName::ALL.len()]> = LazyLock::new(|| {
            PresetName::ALL.map(|name| {
                // The text is constant, and a test parses all presets.
                Preset::parse(yaml(name)).expect("a built-in preset is valid")
            })
        });
        let [quick, ci, deep] = &*PRESETS;
        match name {
            PresetName::Quick => quick,
            PresetName::Ci => ci,
            PresetName::Deep => deep,
        }
    }

    /// Parses a preset from one of the project's files, which are small.
    ///
    /// # Errors
    ///
    /// The text is not YAML, a field is unknown or missing, or a value is out of range.
    pub fn parse(yaml: &str) -> Result<Self, PresetError> {
        let preset: Self = serde_saphyr::from_str(yaml)?;
        preset.check()?;
        Ok(preset)
    }

    fn check(&self) -> Result<(), PresetError> {
        let (measurement, compare) = (&self.measurement, &self.compare);
        let share = |x: f64| x > 0.0 && x < 0.5;
        let ascending = compare.looks.windows(2).all(|pair| pair[0] < pair[1])
            && compare.looks.first().is_some_and(|look| *look >= 8)
            && compare.looks.last().is_some_and(|look| *look <= MAX_BLOCKS);
        let trials = 1 <= measurement.min_trials
            && measurement.min_trials <= measurement.max_trials
            && measurement.max_trials <= MAX_TRIALS;
        let rules = [
            (share(measurement.half_width), "measurement.half_width", "between 0 and 0.5"),
            (seconds(measurement.max_time_s), "measurement.max_time_s", "between 0 and 3600"),
            (trials, "measurement.max_trials", "from min_trials (≥ 1) to 10000"),
            (
                (0.0..=10_000.0).contains(&measurement.min_warmup_ms),
                "measurement.min_warmup_ms",
                "from 0 to 10000",
            ),
            (ascending, "compare.looks", "ascending, from 8 to 1024"),
            (
                (1..=1000).contains(&compare.trials_per_slot),
                "compare.trials_per_slot",
                "from 1 to 1000",
            ),
            (share(compare.margin), "compare.margin", "between 0 and 0.5"),
            (share(compare.equivalence), "compare.equivalence", "between 0 and 0.5"),
            (share(compare.alpha), "compare.alpha", "between 0 and 0.5"),
            (seconds(compare.max_time_s), "compare.max_time_s", "between 0 and 3600"),
            (!self.metrics.is_empty(), "metrics", "the name of a metric set"),
            (share(self.gate.delta), "gate.delta", "between 0 and 0.5"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, field, expected)) => Err(PresetError::Value { field, expected }),
            None => Ok(()),
        }
    }
}

fn seconds(x: f64) -> bool {
    x > 0.0 && x <= 3600.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_presets_are_valid_and_ordered_by_effort() {
        for name in PresetName::ALL {
            let preset = Preset::parse(yaml(name)).expect("a valid preset");
            assert_eq!(Preset::builtin(name), &preset);
        }
        let [quick, ci, deep] = PresetName::ALL.map(Preset::builtin);
        for (less, more) in [(quick, ci), (ci, deep)] {
            assert!(less.measurement.half_width > more.measurement.half_width);
            assert!(less.measurement.max_time_s < more.measurement.max_time_s);
            assert!(less.compare.looks.last() < more.compare.looks.last());
        }
        assert_eq!(ci.compare.looks, [16, 32, 64, 128]);
        assert_eq!(ci.compare.policy(), ComparePolicy::default());
        assert_eq!(ci.measurement.stop_rule(), StopRule::default());
        assert_eq!(ci.gate.delta, 0.02);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let ci = yaml(PresetName::Ci);
        let error = |from: &str, to: &str| {
            assert!(ci.contains(from), "{from}");
            Preset::parse(&ci.replacen(from, to, 1)).expect_err("must not fit").to_string()
        };
        assert!(error("half_width:", "halfwidth:").contains("halfwidth"));
        assert!(error("half_width: 0.005", "half_width: 0").contains("measurement.half_width"));
        assert!(error("half_width: 0.005", "half_width: .nan").contains("half_width"));
        assert!(error("[16, 32, 64, 128]", "[32, 16]").contains("compare.looks"));
        assert!(error("[16, 32, 64, 128]", "[]").contains("compare.looks"));
        assert!(error("max_trials: 10000", "max_trials: 10001").contains("max_trials"));
        assert!(error("delta: 0.02", "delta: 2").contains("gate.delta"));
        assert!(error("gate:", "extra: 1\ngate:").contains("extra"));
    }
}
