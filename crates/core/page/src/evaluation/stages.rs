//! The distribution of the wall-clock time.

use maud::{Markup, html};
use warpgauge_report::Timings;

use crate::parts::{self, Scope};
use crate::text;

/// Shows the stages in the order in which they begin, as a waterfall.
pub(crate) fn stages(scope: Scope<'_>, timings: &Timings) -> Markup {
    let stages = [
        ("wait for a device", timings.queue),
        ("start processes", timings.start),
        ("compile", timings.compile),
        ("load", timings.load),
        ("make inputs", timings.h2d),
        ("execute", timings.execute),
        ("read outputs", timings.d2h),
        ("check", timings.verify),
        ("device metrics", timings.profile),
        ("write the report", timings.report),
        ("other", timings.other),
    ];
    let spent = stages.into_iter().filter(|(_, ms)| *ms > 0.0).collect::<Vec<_>>();
    // Stages that run in parallel each count in full, so the sum may exceed the total.
    let all = spent.iter().map(|(_, ms)| ms).sum::<f64>().max(timings.total);
    if all <= 0.0 {
        return html! {};
    }
    let mut from = 0.0;
    let rows = spent.iter().map(|(name, ms)| {
        let bar = parts::bar(from / all, ms / all);
        from += ms;
        html! { tr {
            td { (name) }
            td.num { (text::time(*ms)) }
            td.num { (text::percent(ms / all)) }
            td.bar-cell { (bar) }
        } }
    });
    let head = [("stage", false), ("time", true), ("share", true), ("", false)];
    let table = parts::table("Stages", &head, rows);
    let note = html! { (text::time(timings.total)) " in all" };
    scope.section("stages", "Stages of the evaluation").note(note).with(html! {
        (table)
        @if timings.device_busy > 0.0 {
            p.small.dim {
                "Of the execution, the device was busy for " (text::time(timings.device_busy))
                ", from the first to the last launch of each batch."
            }
        }
    })
}
