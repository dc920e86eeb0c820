//! Formats a timeline as rows of text.

use super::page::Page;
use warpgauge_compile::readable;
use warpgauge_report::TimelineReport;

/// Maximum number of rows of each kind.
const MAX_ROWS: usize = 5;

pub(super) fn rows(page: &mut Page, timeline: &TimelineReport) {
    if let Some(why) = &timeline.unavailable {
        page.row("timeline", &format!("not available: {}; {}", why.reason, why.remedy));
    }
    if let Some(gpu) = &timeline.gpu {
        let tool = timeline.tool.as_deref().unwrap_or("a profiler");
        let share = timeline.summary.as_ref().and_then(|summary| summary.gpu_utilization_pct);
        let busy = share.map_or(String::new(), |share| format!(", busy for {share:.1} % of it"));
        let (span, gaps, longest) = (gpu.span_ms, gpu.gaps, gpu.longest_gap_ms);
        let text = format!("{span:.3} ms{busy}, {gaps} gaps up to {longest:.3} ms ({tool})");
        page.row("timeline", &text);
    }
    for (what, rows) in [("kernel", &timeline.kernels), ("copy", &timeline.copies)] {
        for row in rows.iter().take(MAX_ROWS) {
            let each = row.median_ms.or(row.mean_ms).unwrap_or(0.0);
            page.row(what, &format!("{} x {each:.4} ms: {}", row.count, readable(&row.name)));
        }
    }
    for launch in timeline.launches.iter().take(MAX_ROWS) {
        let ms = |time: Option<f64>| time.map_or("?".to_owned(), |time| format!("{time:.4}"));
        let (call, queued) = (ms(launch.call_ms), ms(launch.queued_ms));
        page.row("launch", &format!("{}: {call} ms in the call, {queued} ms queued", launch.call));
    }
}
