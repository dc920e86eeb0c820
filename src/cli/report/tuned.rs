//! Rows about the configuration that was chosen for a kernel.

use super::super::format::duration_ms;
use super::page::Page;
use warpgauge_report::{TunedBy, TunedConfiguration, TunedOutcome, TuningReport};

/// Maximum number of configurations that are shown. The best come first.
const MAX_SHOWN: usize = 8;

pub(super) fn tuning(page: &mut Page, report: &TuningReport) {
    let chosen = report.configurations.iter().find(|one| one.index == report.chosen);
    let tried = report.configurations.len();
    let by = match report.decided_by {
        TunedBy::Times => "by time",
        TunedBy::Counts => "by exact counts",
        TunedBy::Nothing => "because none of them was correct",
    };
    let when = if report.from_cache {
        "chosen before".to_owned()
    } else {
        format!("in {}", duration_ms(report.total_ms))
    };
    let name = chosen.map_or_else(|| format!("{}", report.chosen), TunedConfiguration::shown);
    page.row("tuned", &format!("{name}: of {tried} configurations {by}, {when}"));
    if report.pruned > 0 {
        page.more(&format!("{} more were removed by the kernel's pruning function", report.pruned));
    }
    let mut others: Vec<_> =
        report.configurations.iter().filter(|one| one.index != report.chosen).collect();
    // Configurations that remained until later rounds have the most launches.
    others.sort_by(|a, b| {
        let key = |one: &TunedConfiguration| (one.rounds, one.median_ms.unwrap_or(f64::INFINITY));
        let (a, b) = (key(a), key(b));
        b.0.cmp(&a.0).then(a.1.total_cmp(&b.1))
    });
    for one in others.iter().take(MAX_SHOWN) {
        page.more(&format!("{}: {}", one.shown(), said(one, report.decided_by)));
    }
    if others.len() > MAX_SHOWN {
        page.more(&format!("… and {} more (all with --json)", others.len() - MAX_SHOWN));
    }
}

fn said(one: &TunedConfiguration, by: TunedBy) -> String {
    let reason = || one.reason.as_deref().unwrap_or("unknown reason").to_owned();
    match one.outcome {
        TunedOutcome::Wrong => format!("wrong: {}", reason()),
        TunedOutcome::NotCompiled | TunedOutcome::Failed => reason(),
        TunedOutcome::Chosen | TunedOutcome::Outdone => match (by, one.counted, one.median_ms) {
            (TunedBy::Counts, Some(counted), _) => format!(
                "{} warp instructions, {} sectors",
                counted.warp_instructions, counted.global_sectors
            ),
            (_, _, Some(median)) => {
                format!("{} median of {} launches", duration_ms(median), one.launches)
            }
            _ => "not timed".to_owned(),
        },
    }
}
