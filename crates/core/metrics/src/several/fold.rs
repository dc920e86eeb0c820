//! Metrics of launches that are read one by one, because they would not fit into memory together.
//! The main type is [`LaunchFold`].

use std::collections::BTreeMap;

use super::{
    DIFFERS, MAX_KERNELS, ProfiledLaunch, Rule, WEIGHTED, find, is_count, report, rule, time,
};
use crate::catalogue::MetricInfo;
use crate::found::{Found, Known};
use crate::select::Selection;
use crate::types::{DeviceMetrics, KernelMetrics};
use crate::values::CollectedMetrics;
use std::borrow::Cow;

/// Maximum number of kernels with different names.
const MAX_NAMES: usize = 500;

/// Metrics of the launches so far, by kernel and for all together.
pub struct LaunchFold<'s> {
    selection: &'s Selection,
    by_name: BTreeMap<String, Group>,
    all: Option<Group>,
}

/// Metrics of the launches of one kernel, or of all kernels.
struct Group {
    first: CollectedMetrics,
    launches: u32,
    seconds: Option<f64>,
    metrics: Vec<State>,
}

/// A metric over several launches.
#[derive(Clone, Default)]
struct State {
    /// The first reason that occurred for a missing value.
    reason: Option<Cow<'static, str>>,
    first: Option<Known>,
    same: bool,
    sum: f64,
    /// Sum of the values times the launches' times.
    weighted: f64,
    /// Dividend and divisor of each quotient of counts; `None` if a launch lacks a count.
    quotients: Vec<Option<(f64, f64)>>,
}

impl<'s> LaunchFold<'s> {
    /// Creates a fold without launches.
    pub fn new(selection: &'s Selection) -> Self {
        Self { selection, by_name: BTreeMap::new(), all: None }
    }

    /// Adds a launch. Returns `false` if there are already too many different names.
    pub fn add(&mut self, one: &ProfiledLaunch<'_>) -> bool {
        let name = &one.collected.kernel;
        if !self.by_name.contains_key(name) {
            if self.by_name.len() == MAX_NAMES {
                return false;
            }
            self.by_name.insert(name.clone(), Group::new(one, self.selection));
        }
        let selection = self.selection;
        let found: Vec<Found> = selection.metrics.iter().map(|info| find(one, info)).collect();
        if let Some(group) = self.by_name.get_mut(name) {
            group.add(one, &found, selection);
        }
        self.all.get_or_insert_with(|| Group::new(one, selection)).add(one, &found, selection);
        true
    }

    /// Returns the metrics, as [`super::several_metrics`] does; `None` without launches.
    pub fn metrics(self) -> Option<DeviceMetrics> {
        let selection = self.selection;
        let all = self.all?;
        let launches = all.launches;
        let mut metrics = all.metrics(selection);
        if launches == 1 {
            return Some(metrics);
        }
        if self.by_name.len() > 1 {
            metrics.kernel = format!("{} kernels", self.by_name.len());
        }
        let kernels = self.by_name.into_iter().map(|(kernel, group)| {
            let (seconds, launches) = (group.seconds.unwrap_or(0.0), group.launches);
            let metrics = group.metrics(selection).metrics;
            (seconds, KernelMetrics { kernel, launches, metrics })
        });
        let mut kernels: Vec<(f64, KernelMetrics)> = kernels.collect();
        kernels.sort_by(|a, b| b.0.total_cmp(&a.0));
        let left_out = kernels.len().saturating_sub(MAX_KERNELS);
        metrics.kernels_left_out =
            (left_out > 0).then(|| u32::try_from(left_out).unwrap_or(u32::MAX));
        metrics.kernels = kernels.into_iter().take(MAX_KERNELS).map(|(_, kernel)| kernel).collect();
        Some(metrics)
    }
}

impl Group {
    fn new(one: &ProfiledLaunch<'_>, selection: &Selection) -> Self {
        // The states contain the values.
        let first = CollectedMetrics {
            values: BTreeMap::new(),
            missing: BTreeMap::new(),
            ..one.collected.clone()
        };
        let metrics = vec![State { same: true, ..State::default() }; selection.metrics.len()];
        Self { first, launches: 0, seconds: Some(0.0), metrics }
    }

    fn add(&mut self, one: &ProfiledLaunch<'_>, found: &[Found], selection: &Selection) {
        let seconds = time(one);
        let begins = self.launches == 0;
        self.launches = self.launches.saturating_add(1);
        self.seconds = self.seconds.zip(seconds).map(|(sum, seconds)| sum + seconds);
        if one.collected.conditions.passes != self.first.conditions.passes {
            self.first.conditions.passes = None;
        }
        let metrics = selection.metrics.iter().zip(found);
        for (state, (info, found)) in self.metrics.iter_mut().zip(metrics) {
            state.add_quotients(one, info, begins);
            state.add(found, &one.collected.kernel, seconds.unwrap_or(0.0));
        }
    }

    fn metrics(self, selection: &Selection) -> DeviceMetrics {
        let (seconds, launches) = (self.seconds, self.launches);
        let mut states = self.metrics.into_iter();
        report(&self.first).of(selection, |info| {
            let state = states.next().unwrap_or_default();
            state.found(info, launches, seconds)
        })
    }
}

impl State {
    fn add(&mut self, found: &Found, kernel: &str, seconds: f64) {
        match found {
            Ok(known) => {
                self.sum += known.value;
                self.weighted += known.value * seconds;
                self.same &= self.first.as_ref().is_none_or(|first| first.value == known.value);
                if self.first.is_none() {
                    self.first = Some(known.clone());
                }
            }
            Err(reason) if self.reason.is_none() => {
                self.reason = Some(format!("{kernel}: {reason}").into());
            }
            Err(_) => {}
        }
    }

    fn add_quotients(&mut self, one: &ProfiledLaunch<'_>, info: &MetricInfo, begins: bool) {
        let fractions = info.sources_for(one.capability).map(|source| source.formula.fraction());
        let counts = fractions.filter(|fraction| {
            let mut names = fraction.above.iter().chain(&fraction.below);
            !fraction.below.is_empty() && names.all(|(name, _)| is_count(name))
        });
        let sums = counts.map(|fraction| {
            let sum = |terms: &[(&str, f64)]| {
                let term =
                    |(name, weight): &(&str, f64)| Some(one.collected.values.get(*name)? * weight);
                terms.iter().map(term).sum::<Option<f64>>()
            };
            Some((sum(&fraction.above)?, sum(&fraction.below)?))
        });
        let sums: Vec<Option<(f64, f64)>> = sums.collect();
        if begins {
            self.quotients = sums;
        } else if self.quotients.len() == sums.len() {
            for (so_far, more) in self.quotients.iter_mut().zip(sums) {
                *so_far = so_far.zip(more).map(|(a, b)| (a.0 + b.0, a.1 + b.1));
            }
        } else {
            // Another chip has other counts.
            self.quotients.clear();
        }
    }

    fn found(self, info: &MetricInfo, launches: u32, seconds: Option<f64>) -> Found {
        if launches > 1
            && let Some((above, below)) = self.quotients.iter().flatten().next()
            && let Some(first) = &self.first
        {
            return match above / below {
                value if value.is_finite() => Ok(Known::plain(value, first.source)),
                _ => Err("none of the kernels makes such a request".into()),
            };
        }
        if let Some(reason) = self.reason {
            return Err(reason);
        }
        let Some(first) = self.first else { return Err("it has no value".into()) };
        match rule(info) {
            _ if launches == 1 => Ok(first),
            Rule::Sum => Ok(Known { value: self.sum, ..first }),
            Rule::Same if self.same => Ok(first),
            Rule::Same => Err(DIFFERS.into()),
            Rule::Weighted => match seconds.filter(|seconds| *seconds > 0.0) {
                Some(seconds) => Ok(Known {
                    value: self.weighted / seconds,
                    note: Some(Cow::Borrowed(WEIGHTED)),
                    ..first
                }),
                None => Err("a mean over several kernels needs the time of each".into()),
            },
        }
    }
}
