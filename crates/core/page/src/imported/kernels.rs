//! Creates the page of a report of Nsight Compute.

use maud::{Markup, html};
use warpgauge_metrics::import::{ImportedVerdict, KernelRule};
use warpgauge_metrics::{Caption, DeviceMetrics, RooflinePoint, roofline_svg_in_page, si};

use super::{notes, opening, seconds};
use crate::evaluation::metrics::{advice_list, groups, with_unit};
use crate::parts::{self, Scope, Section, Tone};
use crate::text;

/// Maximum number of kernels in the table, and of kernels that are described.
const MAX_ROWS: usize = 200;
const MAX_DESCRIBED: usize = 20;
/// Maximum number of findings of the tool's rules that are shown for one kernel.
const MAX_RULES: usize = 30;

pub(super) fn page(
    metrics: &DeviceMetrics,
    verdicts: &[ImportedVerdict],
    rules: &[KernelRule],
    remarks: &[String],
) -> Markup {
    html! {
        (headline(metrics, verdicts))
        (notes(remarks))
        (table(verdicts))
        @for (index, verdict) in verdicts.iter().take(MAX_DESCRIBED).enumerate() {
            (described(index, verdict, metrics, rules))
        }
        (parts::more(verdicts.len(), MAX_DESCRIBED, "kernels"))
        (groups(Scope(""), metrics))
    }
}

fn bound(verdict: &ImportedVerdict) -> &'static str {
    verdict.bound_by.map_or("what limits it is not known", |bound| bound.sentence())
}

fn headline(metrics: &DeviceMetrics, verdicts: &[ImportedVerdict]) -> Markup {
    let by = html! { span.dim.small { "by " (text::name(&metrics.tool)) } };
    match verdicts {
        [only] => {
            let tone = if only.bound_by.is_some() { Tone::Plain } else { Tone::Doubt };
            let sentence = html! {
                (text::message(&only.bound_reason))
            };
            opening(tone, bound(only), text::code(&only.kernel), &[sentence, by])
        }
        several => {
            let launches: u64 = several.iter().map(|one| u64::from(one.launches)).sum();
            let word = text::counted(several.len(), "kernel");
            let sentence = html! {
                (text::counted(usize::try_from(launches).unwrap_or(usize::MAX), "launch"))
                @if let Some(first) = several.first() {
                    "; " (text::code(&first.kernel)) " took longest, and is " (bound(first))
                }
                "."
            };
            opening(Tone::Plain, &word, html! { "Report of Nsight Compute" }, &[sentence, by])
        }
    }
}

/// Shows the kernels with their total times. Returns nothing for a single kernel.
fn table(verdicts: &[ImportedVerdict]) -> Markup {
    if verdicts.len() < 2 {
        return html! {};
    }
    let head = [
        ("kernel", false),
        ("launches", true),
        ("total", true),
        ("share", true),
        ("", false),
        ("limited by", false),
    ];
    let rows = verdicts.iter().take(MAX_ROWS).enumerate().map(|(index, one)| {
        let share = one.share_pct.map(|pct| pct / 100.0);
        html! { tr {
            td.wide {
                @if index < MAX_DESCRIBED { a href={ "#kernel-" (index) } { (text::code(&one.kernel)) } }
                @else { (text::code(&one.kernel)) }
            }
            td.num { (text::grouped(u64::from(one.launches))) }
            td.num { (seconds(one.total_seconds)) }
            td.num { @if let Some(share) = share { (text::percent(share)) } }
            td.bar-cell { @if let Some(share) = share { (parts::bar(0.0, share)) } }
            td { (one.bound_by.map_or("?", |bound| bound.name())) }
        } }
    });
    Section::new("kernels", "Kernels by total time")
        .open(true)
        .note(html! { (text::counted(verdicts.len(), "kernel")) })
        .with(html! {
            (parts::table("Kernels by total time", &head, rows))
            (parts::more(verdicts.len(), MAX_ROWS, "kernels"))
        })
}

fn described(
    index: usize,
    verdict: &ImportedVerdict,
    metrics: &DeviceMetrics,
    rules: &[KernelRule],
) -> Markup {
    let own: Vec<&KernelRule> = rules.iter().filter(|rule| rule.kernel == verdict.kernel).collect();
    let title = text::shown(&verdict.kernel.replace('\n', " "), text::NAME);
    Section::new(format!("kernel-{index}"), &title)
        .open(index == 0)
        .note(html! { (bound(verdict)) })
        .with(html! {
            (parts::facts(facts(verdict)))
            (drawing(verdict, metrics))
            @if !verdict.advice.is_empty() { h3 { "Advice" } (advice_list(&verdict.advice)) }
            @if !own.is_empty() {
                h3 { "Rules of the tool" }
                ul.plain {
                    @for rule in own.iter().take(MAX_RULES) {
                        li {
                            strong { (text::shown(&rule.rule.kind, 40)) } " "
                            (text::message(&rule.rule.description))
                            @if rule.launches > 1 {
                                " (" (text::grouped(u64::from(rule.launches))) " launches)"
                            }
                        }
                    }
                }
                (parts::more(own.len(), MAX_RULES, "rules"))
            }
        })
}

fn facts(verdict: &ImportedVerdict) -> Vec<(&'static str, Markup)> {
    let mut facts = vec![("bound", text::message(&verdict.bound_reason))];
    if let Some(operations) = verdict.flop_count {
        facts.push((
            "work",
            html! {
                (text::tight(&si(operations, "operations")))
                @if let Some(intensity) = verdict.arithmetic_intensity {
                    ", " (with_unit(intensity, Some("operations/byte"))) " of device memory"
                }
            },
        ));
    }
    if let Some(roofline) = &verdict.roofline {
        let points = &roofline.points;
        if !points.is_empty() {
            facts.push((
                "roofline",
                html! { @for one in points.iter().take(20) { div { (point(one)) } } },
            ));
        }
    }
    if !verdict.top_stalls.is_empty() {
        facts.push((
            "stalls",
            html! {
                @for (index, stall) in verdict.top_stalls.iter().enumerate() {
                    @if index > 0 { ", " }
                    (stall.metric.trim_start_matches("stall_").replace('_', " ")) " "
                    (text::percent(stall.pct / 100.0))
                }
            },
        ));
    }
    if let Some(limiter) = &verdict.occupancy_limiter {
        facts.push((
            "occupancy",
            html! {
                "limited by " (limiter.names.join(" and ")) ": " (text::number(limiter.blocks)) " blocks fit"
            },
        ));
    }
    facts
}

fn point(point: &RooflinePoint) -> Markup {
    html! {
        (point.precision.label()) " on " (point.level.label()) ": "
        (with_unit(point.intensity, Some("operations/byte")))
        @if let (Some(rate), Some(fraction)) = (point.rate, point.fraction) {
            ", " (text::tight(&si(rate, "OP/s"))) ", " (text::percent(fraction)) " of what is attainable"
        }
    }
}

fn drawing(verdict: &ImportedVerdict, metrics: &DeviceMetrics) -> Markup {
    let roofline = verdict.roofline.as_ref();
    let drawn = roofline.filter(|one| one.points.iter().any(|point| point.rate.is_some()));
    let Some(roofline) = drawn else { return html! {} };
    let caption = Caption { kernel: &verdict.kernel, device: "", tool: &metrics.tool };
    html! {
        (parts::figure(roofline_svg_in_page(roofline, caption), html! { "Roofline of " (text::code(&verdict.kernel)) }))
    }
}
