//! Creates the page of the changes between two reports.

use maud::{Markup, html};
use warpgauge_metrics::import::{Changes, KernelChange};

use super::{notes, opening, seconds};
use crate::evaluation::metrics::with_unit;
use crate::parts::{self, Section, Tone};
use crate::text;

/// Maximum number of kernels in the table, and of kernels whose metrics are shown.
const MAX_ROWS: usize = 200;
const MAX_DESCRIBED: usize = 20;
/// Ratio of the times after and before above which a kernel is called slower. Below its inverse,
/// the kernel is called faster.
const CHANGED: f64 = 1.02;

pub(super) fn page(changes: &Changes, before: &str) -> Markup {
    let total =
        |side: usize| changes.kernels.iter().map(|one| one.total_seconds[side]).sum::<f64>();
    let [old, new] = [total(0), total(1)];
    let ratio = new / old;
    let (tone, word) = of_ratio(ratio);
    let sentence = html! {
        (seconds(Some(old))) " before, " (seconds(Some(new))) " after, over "
        (text::counted(changes.kernels.len(), "kernel")) " of both reports."
    };
    let heading = html! { "Changes since " (text::name(before)) };
    html! {
        (opening(tone, word, heading, &[sentence]))
        (notes(&changes.notes))
        (table(&changes.kernels))
        @for (index, kernel) in changes.kernels.iter().take(MAX_DESCRIBED).enumerate() {
            (described(index, kernel))
        }
        (names("gone", "Kernels of the earlier report alone", &changes.gone))
        (names("new", "Kernels of the later report alone", &changes.new))
    }
}

fn of_ratio(ratio: f64) -> (Tone, &'static str) {
    match ratio {
        _ if ratio > CHANGED => (Tone::Bad, "slower"),
        _ if ratio < 1.0 / CHANGED => (Tone::Good, "faster"),
        _ if ratio.is_finite() => (Tone::Plain, "the same"),
        _ => (Tone::Doubt, "no times"),
    }
}

fn table(kernels: &[KernelChange]) -> Markup {
    let head = [
        ("kernel", false),
        ("before", true),
        ("after", true),
        ("launches", true),
        ("of a launch", true),
        ("limited by", false),
    ];
    let rows = kernels.iter().take(MAX_ROWS).map(|one| {
        let [before, after] = one.total_seconds;
        let bounds = [one.bound_by_before, one.bound_by_after]
            .map(|bound| bound.map_or("?", |bound| bound.name()));
        html! { tr {
            td.wide { (text::code(&one.kernel)) }
            td.num { (seconds(Some(before))) }
            td.num { (seconds(Some(after))) }
            td.num {
                (text::grouped(one.launches[0]))
                @if one.launches[0] != one.launches[1] { " and " (text::grouped(one.launches[1])) }
            }
            td.num { (text::number(one.time_ratio)) "\u{202f}×" }
            td { (bounds[0]) @if bounds[0] != bounds[1] { ", then " (bounds[1]) } }
        } }
    });
    Section::new("kernels", "Kernels by change of time")
        .open(true)
        .note(html! { (text::counted(kernels.len(), "kernel")) })
        .with(html! {
            (parts::table("Kernels by change of time", &head, rows))
            (parts::more(kernels.len(), MAX_ROWS, "kernels"))
        })
}

fn described(index: usize, kernel: &KernelChange) -> Markup {
    if kernel.changes.is_empty() {
        return html! {};
    }
    let head = [
        ("metric", false),
        ("before", true),
        ("after", true),
        ("ratio", true),
        ("explains", true),
        ("", false),
    ];
    let rows = kernel.changes.iter().map(|change| {
        html! { tr {
            td.wide { code { (change.metric) } }
            td.num { (with_unit(change.before, Some(change.unit))) }
            td.num { (with_unit(change.after, Some(change.unit))) }
            td.num { @if let Some(ratio) = change.ratio { (text::number(ratio)) "\u{202f}×" } }
            td.num { (text::percent(change.explains)) }
            td.bar-cell { (parts::bar(0.0, change.explains)) }
        } }
    });
    let title = text::shown(&kernel.kernel.replace('\n', " "), text::NAME);
    Section::new(format!("kernel-{index}"), &title)
        .open(index == 0)
        .note(html! { (text::counted(kernel.changes.len(), "metric")) " changed" })
        .with(parts::table("Metrics that explain the time", &head, rows))
}

fn names(id: &str, title: &str, names: &[String]) -> Markup {
    html! {
        @if !names.is_empty() {
            (Section::new(id, title).note(html! { (text::counted(names.len(), "kernel")) }).with(html! {
                ul.plain { @for name in names.iter().take(MAX_ROWS) { li { (text::code(name)) } } }
            }))
        }
    }
}
