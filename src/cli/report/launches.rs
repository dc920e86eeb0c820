//! Rows for the steps of a kernel that consists of several launches.

use super::super::format::duration_ms;
use super::page::Page;
use warpgauge_report::StepReport;

/// Maximum number of steps that are shown. The steps with the longest times are chosen.
const MAX_SHOWN: usize = 12;

pub(super) fn steps(page: &mut Page, steps: &[StepReport]) {
    let total = |step: &StepReport| step.total_ms.unwrap_or(0.0);
    let all: f64 = steps.iter().map(total).sum();
    let mut shown: Vec<&StepReport> = steps.iter().collect();
    if steps.len() > MAX_SHOWN {
        shown.sort_by(|a, b| total(b).total_cmp(&total(a)));
    }
    for (index, step) in shown.iter().take(MAX_SHOWN).enumerate() {
        let label = if index == 0 { "launches" } else { "" };
        page.row(label, &line(step, all));
    }
    if steps.len() > MAX_SHOWN {
        page.more(&format!("… and {} more (all with --json)", steps.len() - MAX_SHOWN));
    }
}

fn line(step: &StepReport, all: f64) -> String {
    let times = match (step.median_ms, step.total_ms) {
        (Some(median), Some(total)) if step.count == 1 => {
            format!("{} ({:.0} %)", duration_ms(median), share(total, all))
        }
        (Some(median), Some(total)) => format!(
            "{} times {}, {} together ({:.0} %)",
            step.count,
            duration_ms(median),
            duration_ms(total),
            share(total, all)
        ),
        _ if step.count == 0 => "not run".to_owned(),
        _ => format!("{} times", step.count),
    };
    format!("{}: {times}", step.action)
}

/// Returns the share of a time in the total, percent.
fn share(time: f64, all: f64) -> f64 {
    if all > 0.0 { time / all * 100.0 } else { 0.0 }
}
