//! Formats the resources that limit the kernels of an imported report as text.

use super::format::{percent, quantity};
use super::import_table::{name, rows, seconds};
use super::terminal::plain;
use warpgauge_metrics::import::{ImportedVerdict, KernelRule};
use warpgauge_metrics::{RooflinePoint, si};

/// Maximum number of kernels that are described in detail. The kernels that took longest are
/// chosen.
const MAX_DESCRIBED: usize = 5;
/// Maximum number of messages from the tool's rules that are shown for one kernel.
const MAX_RULES: usize = 8;

/// Returns the kernels sorted by their total time, and the limiting resources of those that took
/// longest.
pub(super) fn verdicts(verdicts: &[ImportedVerdict], rules: &[KernelRule]) -> String {
    let mut text = String::new();
    if verdicts.len() > 1 {
        text.push_str("kernels by total time: total, share, launches, bound by\n");
        text.push_str(&self::rows(verdicts, row));
        text.push('\n');
    }
    for verdict in verdicts.iter().take(MAX_DESCRIBED) {
        text.push_str(&describe(verdict, rules));
        text.push('\n');
    }
    text
}

fn row(verdict: &ImportedVerdict) -> String {
    let share = verdict.share_pct.map_or_else(|| "?".to_owned(), |pct| format!("{pct:.1} %"));
    format!(
        "  {:>12} {share:>8} {:>5} ×  {:<8} {}\n",
        seconds(verdict.total_seconds),
        verdict.launches,
        bound(verdict),
        name(&verdict.kernel)
    )
}

fn bound(verdict: &ImportedVerdict) -> &'static str {
    verdict.bound_by.map_or("?", |bound| bound.name())
}

fn describe(verdict: &ImportedVerdict, rules: &[KernelRule]) -> String {
    let limit = verdict.bound_by.map_or("what limits it is not known", |bound| bound.sentence());
    let mut text = format!("{}\n", name(&verdict.kernel));
    let mut line = |label: &str, value: &str| {
        text.push_str(&format!("  {label:<10} {}\n", plain(value)));
    };
    line("bound", &format!("{limit}: {}", verdict.bound_reason));
    if let Some(operations) = verdict.flop_count {
        let intensity = verdict.arithmetic_intensity;
        let intensity = intensity.map_or_else(String::new, |value| {
            format!(", {} of device memory", quantity(value, "operations/byte"))
        });
        line("work", &format!("{}{intensity}", si(operations, "operations")));
    }
    let points = verdict.roofline.iter().flat_map(|roofline| &roofline.points);
    points.for_each(|point| line("roofline", &position(point)));
    if !verdict.top_stalls.is_empty() {
        let stall = |stall: &warpgauge_metrics::import::TopStall| {
            let reason = stall.metric.trim_start_matches("stall_").replace('_', " ");
            format!("{reason} {:.0} %", stall.pct)
        };
        let stalls: Vec<String> = verdict.top_stalls.iter().map(stall).collect();
        line("stalls", &stalls.join(", "));
    }
    if let Some(limiter) = &verdict.occupancy_limiter {
        let names = limiter.names.join(" and ");
        line("occupancy", &format!("limited by {names}: {:.0} blocks fit", limiter.blocks));
    }
    for (index, advice) in verdict.advice.iter().enumerate() {
        line(if index == 0 { "advice" } else { "" }, &format!("{}. {}", index + 1, advice.message));
    }
    let own: Vec<&KernelRule> = rules.iter().filter(|rule| rule.kernel == verdict.kernel).collect();
    for (index, rule) in own.iter().take(MAX_RULES).enumerate() {
        let label = if index == 0 { "ncu says" } else { "" };
        let launches = match rule.launches {
            1 => String::new(),
            launches => format!(" ({launches} launches)"),
        };
        line(label, &format!("{}{launches}: {}", rule.rule.kind, rule.rule.description));
    }
    if own.len() > MAX_RULES {
        line("", &format!("and {} more (all with --json)", own.len() - MAX_RULES));
    }
    text
}

fn position(point: &RooflinePoint) -> String {
    let intensity = quantity(point.intensity, "operations/byte");
    let mut text = format!("{} on {}: {intensity}", point.precision.label(), point.level.label());
    if let (Some(rate), Some(fraction)) = (point.rate, point.fraction) {
        text.push_str(&format!(
            ", {}, {} of what is attainable",
            si(rate, "OP/s"),
            percent(fraction)
        ));
    }
    text
}
