//! Converts a page of Nsight Compute to an answer.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::draft::{Draft, Reading, counted, message, name, seconds};
use warpgauge_metrics::catalogue::CATALOGUE;
use warpgauge_metrics::import::{ImportedVerdict, KernelRule};
use warpgauge_metrics::{DeviceMetrics, Metric};
use warpgauge_report::readable::quantity;

/// Maximum number of kernels in the structured content, in the text, and of those whose stalls and
/// advice are in the text.
const MAX_KERNELS: usize = 8;
const TEXT_KERNELS: usize = 6;
const DESCRIBED: usize = 3;

/// Maximum number of observations and of rules of a kernel in the structured content.
const MAX_ADVICE: usize = 3;
const MAX_RULES: usize = 2;

/// Maximum number of values of metrics, of all kernels together.
const MAX_VALUES: usize = 80;

/// Returns the answer. The longest kernels come first. `metrics` is present if the caller requested
/// values.
pub(super) fn reading(
    verdicts: &[ImportedVerdict],
    rules: &[KernelRule],
    metrics: Option<&DeviceMetrics>,
    notes: &[String],
) -> Reading {
    let mut draft = Draft::new("ncu", "NSIGHT COMPUTE", &summary(verdicts));
    let own = |verdict: &ImportedVerdict| -> Vec<&KernelRule> {
        rules.iter().filter(|rule| rule.kernel == verdict.kernel).collect()
    };
    for (index, verdict) in verdicts.iter().enumerate().take(TEXT_KERNELS) {
        match verdicts.len() {
            1 => draft.fact(&verdict.bound_reason),
            _ => draft.fact(&line(verdict)),
        }
        if index < DESCRIBED {
            describe(&mut draft, verdict, &own(verdict));
            if let Some(metrics) = metrics {
                let metrics = of_kernel(metrics, &verdict.kernel);
                draft.detail(&format!("metrics: {}", in_words(metrics)));
            }
        }
    }
    let mut values = MAX_VALUES;
    draft.list("kernels", verdicts, MAX_KERNELS, |verdict| {
        let mut entry = entry(verdict, &own(verdict));
        if let Some(metrics) = metrics.filter(|_| values > 0) {
            let shown = shown(of_kernel(metrics, &verdict.kernel), values);
            values -= shown.len();
            entry["metrics"] = Value::Object(shown);
        }
        entry
    });
    draft.notes(notes);
    draft.finish()
}

fn summary(verdicts: &[ImportedVerdict]) -> String {
    let Some(first) = verdicts.first() else { return "no kernels".to_owned() };
    let bound = bound(first);
    let launches: u64 = verdicts.iter().map(|verdict| u64::from(verdict.launches)).sum();
    let launches = counted(launches, "launch", "launches");
    if verdicts.len() == 1 {
        let time = seconds(first.total_seconds);
        return format!("{}: {time} in {launches}, {bound}", name(&first.kernel));
    }
    let share = first.share_pct.map_or_else(String::new, |pct| format!(" takes {pct:.1} %"));
    let kernels = counted(verdicts.len() as u64, "kernel", "kernels");
    format!("{kernels} in {launches}; {}{share}, {bound}", name(&first.kernel))
}

/// Formats the time of a kernel, and the resource that limits it.
fn line(verdict: &ImportedVerdict) -> String {
    let share = verdict.share_pct.map_or_else(String::new, |pct| format!(" ({pct:.1} %)"));
    let launches = match verdict.launches {
        1 => String::new(),
        launches => format!(" in {launches} launches"),
    };
    let bound = bound(verdict);
    let (name, time) = (name(&verdict.kernel), seconds(verdict.total_seconds));
    format!("{name}: {time}{share}{launches}, {bound}: {}", verdict.bound_reason)
}

fn bound(verdict: &ImportedVerdict) -> &'static str {
    verdict.bound_by.map_or("what limits it is not known", |bound| bound.sentence())
}

/// Adds stalls, the limit of the resident blocks, and the first advice.
fn describe(draft: &mut Draft, verdict: &ImportedVerdict, rules: &[&KernelRule]) {
    let mut facts = Vec::new();
    if !verdict.top_stalls.is_empty() {
        let stalls = verdict.top_stalls.iter().map(|stall| {
            let reason = stall.metric.trim_start_matches("stall_").replace('_', " ");
            format!("{reason} {:.0} %", stall.pct)
        });
        facts.push(format!("stalls: {}", stalls.collect::<Vec<String>>().join(", ")));
    }
    if let Some(limiter) = &verdict.occupancy_limiter {
        let names = limiter.names.join(" and ");
        facts.push(format!("occupancy limited by {names}: {:.0} blocks fit", limiter.blocks));
    }
    if !facts.is_empty() {
        draft.detail(&facts.join("; "));
    }
    if let Some(advice) = verdict.advice.first() {
        draft.detail(&format!("advice: {}", advice.message));
    } else if let Some(rule) = rules.first() {
        draft.detail(&format!("ncu says: {}: {}", rule.rule.kind, rule.rule.description));
    }
}

fn entry(verdict: &ImportedVerdict, rules: &[&KernelRule]) -> Value {
    let limiter = verdict.occupancy_limiter.as_ref();
    let stalls: Vec<Value> = verdict
        .top_stalls
        .iter()
        .map(|stall| json!({"metric": stall.metric, "pct": stall.pct}))
        .collect();
    let advice: Vec<String> =
        verdict.advice.iter().take(MAX_ADVICE).map(|advice| message(&advice.message)).collect();
    let rules: Vec<String> =
        rules.iter().take(MAX_RULES).map(|rule| message(&rule.rule.description)).collect();
    json!({
        "kernel": name(&verdict.kernel),
        "launches": verdict.launches,
        "total_seconds": verdict.total_seconds,
        "share_pct": verdict.share_pct,
        "bound_by": verdict.bound_by.map(|bound| bound.name()),
        "bound_reason": message(&verdict.bound_reason),
        "top_stalls": stalls,
        "occupancy_limiter": limiter.map(|it| json!({"names": it.names, "blocks": it.blocks})),
        "advice": advice,
        "rules": rules,
    })
}

/// Returns the metrics of a kernel. A page with one launch has a single set of metrics.
fn of_kernel<'a>(metrics: &'a DeviceMetrics, kernel: &str) -> &'a BTreeMap<String, Metric> {
    let own = metrics.kernels.iter().find(|one| one.kernel == kernel);
    own.map_or(&metrics.metrics, |one| &one.metrics)
}

/// Formats requested metrics on one line: values first, then the names of those without a value.
fn in_words(metrics: &BTreeMap<String, Metric>) -> String {
    let of = |id: &str| metrics.get(id);
    let values = CATALOGUE.iter().filter_map(|info| {
        let value = of(info.id)?.value?;
        Some(format!("{} {}", info.id, quantity(value, info.unit.name())))
    });
    let mut words: Vec<String> = values.collect();
    let absent = CATALOGUE.iter().filter(|info| of(info.id).is_some_and(|it| it.value.is_none()));
    let absent: Vec<&str> = absent.map(|info| info.id).collect();
    if !absent.is_empty() {
        words.push(format!("no value of {}", absent.join(", ")));
    }
    words.join(", ")
}

/// Returns at most `most` metrics, those with a value first.
fn shown(metrics: &BTreeMap<String, Metric>, most: usize) -> Map<String, Value> {
    let (known, absent): (Vec<_>, Vec<_>) =
        metrics.iter().partition(|(_, metric)| metric.value.is_some());
    let entry = |(id, metric): (&String, &Metric)| {
        let value = match metric.value {
            Some(value) => json!({"value": value, "unit": metric.unit}),
            None => json!({"reason": metric.reason.as_deref().map(message)}),
        };
        (id.clone(), value)
    };
    known.into_iter().chain(absent).take(most).map(entry).collect()
}
