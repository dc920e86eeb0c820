//! Combines the metrics of launches that are read one by one, because they do not fit into memory
//! together. The main type is [`LaunchFold`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use super::longest::Totals;
use super::places::{MetricPlan, Plan};
use super::{DIFFERS, DURATION, MAX_KERNELS, ProfiledLaunch, Rule, WEIGHTED, find, report, rule};
use crate::catalogue::MetricInfo;
use crate::found::{Found, Known};
use crate::ncu::{self, NcuCsvError, NcuKernel, PlacedLaunch};
use crate::select::Selection;
use crate::types::{Conditions, DeviceMetrics, KernelMetrics, MetricSource};
use crate::values::CollectedMetrics;

/// Maximum number of kernels whose launches are combined separately. If there are more, the text is
/// read again for those with the longest total time.
const MAX_NAMES: usize = 500;
/// Maximum number of chips whose plans are kept.
const MAX_CHIPS: usize = 16;

/// Combines launches, by kernel and for all kernels together.
pub(crate) struct LaunchFold<'s> {
    selection: &'s Selection,
    by_name: BTreeMap<String, Group>,
    all: Option<Group>,
    plans: BTreeMap<u32, Rc<Plan>>,
    /// Values of the selected metrics for the launch that is being added.
    found: Vec<Option<f64>>,
    totals: Totals,
    /// Hashes of the names of the chosen kernels, if there are more than [`MAX_NAMES`].
    chosen: Option<HashSet<u64>>,
}

/// Result of combining all launches.
pub(crate) struct Folded {
    pub(crate) metrics: DeviceMetrics,
    /// For each kernel in `metrics.kernels`, the properties of the device of its first launch.
    pub(crate) kernels: Vec<NcuKernel>,
    pub(crate) launches: u64,
    /// Whether the kernels were counted exactly. If not, there were too many of them, there are
    /// more than `metrics` says, and the choice of the longest is an estimate.
    pub(crate) counted: bool,
}

/// Metrics of the launches of one kernel, or of all kernels.
struct Group {
    first: CollectedMetrics,
    device: NcuKernel,
    capability: u32,
    launches: u32,
    seconds: Option<f64>,
    /// Sum of the times that are known, seconds.
    known_seconds: f64,
    metrics: Vec<State>,
}

/// State of one metric over the launches that have been added.
#[derive(Clone, Default)]
struct State {
    /// The first reason why a launch has no value, with the beginning of its kernel's name.
    reason: Option<(Rc<str>, Cow<'static, str>)>,
    first: Option<f64>,
    same: bool,
    sum: f64,
    /// Sum of value times duration over the launches.
    weighted: f64,
    /// Dividend and divisor of each quotient of counts. `None` if a launch lacks one of the counts.
    quotients: Vec<Option<(f64, f64)>>,
}

impl<'s> LaunchFold<'s> {
    /// Creates a state without launches.
    pub(crate) fn new(selection: &'s Selection) -> Self {
        Self {
            selection,
            by_name: BTreeMap::new(),
            all: None,
            plans: BTreeMap::new(),
            found: Vec::new(),
            totals: Totals::new(),
            chosen: None,
        }
    }

    /// Combines a launch with the earlier launches of its kernel.
    ///
    /// # Errors
    /// The row of the launch is invalid.
    pub(crate) fn add(&mut self, one: &PlacedLaunch<'_>) -> Result<(), NcuCsvError> {
        self.totals.add(one.kernel, seconds(one.values).unwrap_or(0.0));
        let has_room = self.totals.kernels() <= MAX_NAMES;
        if !has_room {
            self.by_name.clear();
        }
        self.combine(one, has_room, true)
    }

    /// Returns whether there are too many kernels to combine the launches of each. The caller then
    /// passes all launches to [`Self::add_again`], which combines those of the longest kernels.
    pub(crate) fn needs_again(&mut self) -> bool {
        if self.totals.kernels() <= MAX_NAMES {
            return false;
        }
        self.chosen = Some(self.totals.longest(MAX_KERNELS));
        true
    }

    /// Adds a launch that [`Self::add`] has already added, if its kernel is among the longest.
    ///
    /// # Errors
    /// The row of the launch is invalid.
    pub(crate) fn add_again(&mut self, one: &PlacedLaunch<'_>) -> Result<(), NcuCsvError> {
        let is = |chosen: &HashSet<u64>| chosen.contains(&self.totals.hash(one.kernel));
        match self.chosen.as_ref().is_some_and(is) {
            true => self.combine(one, true, false),
            false => Ok(()),
        }
    }

    /// Adds a launch to those of its kernel (`named`), and to those of all kernels (`to_all`).
    fn combine(
        &mut self,
        one: &PlacedLaunch<'_>,
        named: bool,
        to_all: bool,
    ) -> Result<(), NcuCsvError> {
        let plan = self.plan(one);
        self.found.clear();
        self.found.extend(plan.metrics.iter().map(|metric| metric.value(one.values)));
        // A reason and a new group need the launch with all cells of its row. Parsing these takes
        // far longer than parsing the values.
        let lacks = |group: Option<&Group>| match group {
            Some(group) => self
                .found
                .iter()
                .zip(&group.metrics)
                .any(|(found, state)| found.is_none() && state.reason.is_none()),
            None => true,
        };
        let needs = to_all && lacks(self.all.as_ref());
        let whole = (needs || named && lacks(self.by_name.get(one.kernel)))
            .then(|| Whole::of(one))
            .transpose()?;
        if let Some(whole) = &whole {
            let count = self.selection.metrics.len();
            if named && !self.by_name.contains_key(one.kernel) {
                self.by_name.insert(one.kernel.to_owned(), whole.group(one.capability, count));
            }
            self.all.get_or_insert_with(|| whole.group(one.capability, count));
        }
        let added = Added { one, plan: &plan, found: &self.found, whole: whole.as_ref() };
        if let Some(group) = self.by_name.get_mut(one.kernel).filter(|_| named) {
            group.add(&added, self.selection);
        }
        if let Some(all) = self.all.as_mut().filter(|_| to_all) {
            all.add(&added, self.selection);
        }
        Ok(())
    }

    fn plan(&mut self, one: &PlacedLaunch<'_>) -> Rc<Plan> {
        if let Some(plan) = self.plans.get(&one.capability) {
            return Rc::clone(plan);
        }
        if self.plans.len() == MAX_CHIPS {
            self.plans.clear();
        }
        let plan = Rc::new(Plan::of(self.selection, one.capability, one.available));
        self.plans.insert(one.capability, Rc::clone(&plan));
        plan
    }

    /// Returns the combined metrics, as [`super::several_metrics`] does. Returns `None` if there
    /// are no launches.
    pub(crate) fn finish(self) -> Option<Folded> {
        let selection = self.selection;
        let all = self.all?;
        let launches = u64::from(all.launches);
        let only = all.device.clone();
        let mut metrics = all.metrics(selection);
        let (count, counted) = (self.totals.kernels(), self.totals.complete);
        if launches == 1 {
            return Some(Folded { metrics, kernels: vec![only], launches, counted });
        }
        if count > 1 {
            let more = if counted { "" } else { "more than " };
            metrics.kernel = format!("{more}{count} kernels");
        }
        let mut groups: Vec<(String, Group)> = self.by_name.into_iter().collect();
        groups.sort_by(|a, b| b.1.known_seconds.total_cmp(&a.1.known_seconds));
        groups.truncate(MAX_KERNELS);
        let left_out = count.saturating_sub(groups.len());
        metrics.kernels_left_out =
            (left_out > 0).then(|| u32::try_from(left_out).unwrap_or(u32::MAX));
        let mut kernels = Vec::with_capacity(groups.len());
        for (kernel, group) in groups {
            let launches = group.launches;
            kernels.push(group.device.clone());
            let metrics_of = group.metrics(selection).metrics;
            metrics.kernels.push(KernelMetrics { kernel, launches, metrics: metrics_of });
        }
        Some(Folded { metrics, kernels, launches, counted })
    }
}

/// Launch with all cells of its row.
struct Whole {
    collected: CollectedMetrics,
    kernel: NcuKernel,
    /// Beginning of the kernel's name, for reasons.
    short: Rc<str>,
}

impl Whole {
    fn of(one: &PlacedLaunch<'_>) -> Result<Self, NcuCsvError> {
        let kernel = (one.whole)()?;
        let conditions = Conditions::default();
        let collected = kernel.collected("Nsight Compute", &conditions, &BTreeSet::new(), &[]);
        let short = Rc::from(super::short(&collected.kernel));
        Ok(Self { collected, kernel: kernel.device_alone(), short })
    }

    fn group(&self, capability: u32, metrics: usize) -> Group {
        // The states contain the values.
        let first = CollectedMetrics {
            source: self.collected.source,
            tool: self.collected.tool.clone(),
            kernel: self.collected.kernel.clone(),
            values: BTreeMap::new(),
            missing: BTreeMap::new(),
            conditions: self.collected.conditions.clone(),
            note: None,
        };
        Group {
            first,
            device: self.kernel.clone(),
            capability,
            launches: 0,
            seconds: Some(0.0),
            known_seconds: 0.0,
            metrics: vec![State { same: true, ..State::default() }; metrics],
        }
    }
}

fn value_of(name: &str, values: &[f64]) -> Option<f64> {
    ncu::place(name).and_then(|place| ncu::at(values, place))
}

/// Returns the time of a launch, seconds.
fn seconds(values: &[f64]) -> Option<f64> {
    value_of(DURATION, values)
}

/// Launch that is being added.
struct Added<'a> {
    one: &'a PlacedLaunch<'a>,
    plan: &'a Plan,
    found: &'a [Option<f64>],
    whole: Option<&'a Whole>,
}

impl Group {
    fn add(&mut self, added: &Added<'_>, selection: &Selection) {
        let values = added.one.values;
        let seconds = seconds(values);
        let begins = self.launches == 0;
        self.launches = self.launches.saturating_add(1);
        self.seconds = self.seconds.zip(seconds).map(|(sum, seconds)| sum + seconds);
        self.known_seconds += seconds.unwrap_or(0.0);
        if value_of(ncu::PASSES, values).map(|passes| passes as u32) != self.first.conditions.passes
        {
            self.first.conditions.passes = None;
        }
        let same_chip = self.capability == added.one.capability;
        let metrics = self.metrics.iter_mut().zip(&added.plan.metrics);
        for (index, (state, metric)) in metrics.enumerate() {
            match same_chip {
                true => state.add_quotients(metric, values, begins),
                // Counts of different chips cannot be added.
                false => state.quotients.clear(),
            }
            match added.found[index] {
                Some(value) => state.add(value, seconds.unwrap_or(0.0)),
                None if state.reason.is_none() => {
                    state.reason = added.whole.and_then(|whole| {
                        let collected = &whole.collected;
                        let capability = added.one.capability;
                        let launch = ProfiledLaunch { collected, capability, launch: None };
                        let reason = find(&launch, selection.metrics[index]).err()?;
                        Some((Rc::clone(&whole.short), reason))
                    });
                }
                None => {}
            }
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
    fn add(&mut self, value: f64, seconds: f64) {
        self.sum += value;
        self.weighted += value * seconds;
        self.same &= self.first.is_none_or(|first| first == value);
        self.first.get_or_insert(value);
    }

    fn add_quotients(&mut self, metric: &MetricPlan, values: &[f64], begins: bool) {
        let mut sums = metric.quotients.iter().map(|quotient| quotient.parts(values));
        if begins {
            self.quotients = sums.collect();
        } else {
            for so_far in &mut self.quotients {
                let more = sums.next().flatten();
                *so_far = so_far.zip(more).map(|(a, b)| (a.0 + b.0, a.1 + b.1));
            }
        }
    }

    fn found(self, info: &MetricInfo, launches: u32, seconds: Option<f64>) -> Found {
        let known = |value| Ok(Known::plain(value, MetricSource::Ncu));
        if launches > 1
            && let Some((above, below)) = self.quotients.iter().flatten().next()
        {
            return match above / below {
                value if value.is_finite() => known(value),
                _ => Err("none of the kernels makes such a request".into()),
            };
        }
        if let Some((kernel, reason)) = self.reason {
            return Err(match launches {
                1 => reason,
                _ => format!("{kernel}: {reason}").into(),
            });
        }
        let Some(first) = self.first else { return Err("it has no value".into()) };
        match rule(info) {
            _ if launches == 1 => known(first),
            Rule::Sum => known(self.sum),
            Rule::Same if self.same => known(first),
            Rule::Same => Err(DIFFERS.into()),
            Rule::Weighted => match seconds.filter(|seconds| *seconds > 0.0) {
                Some(seconds) => Ok(Known {
                    value: self.weighted / seconds,
                    note: Some(Cow::Borrowed(WEIGHTED)),
                    source: MetricSource::Ncu,
                }),
                None => Err(super::needs_time()),
            },
        }
    }
}
