//! The kernels of a program: the number of launches and the time of each.

use serde::Deserialize;

use warpgauge_compile::readable;
use warpgauge_report::{ProgramKernel, TimelineReport};

/// Maximum number of kernels in a report. Those with the longest time or the most launches are
/// listed.
const MOST_KERNELS: usize = 200;

/// Maximum number of characters of a kernel's name or of a message.
const LONGEST: usize = 1000;

/// Maximum number of messages of the emulated device in a report.
const MOST_MESSAGES: usize = 20;

/// Report of the emulated device. It is untrusted, since the program can write to the same file.
#[derive(Debug, Default, Deserialize)]
struct Counted {
    #[serde(default)]
    kernels: Vec<CountedKernel>,
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Debug, Deserialize)]
struct CountedKernel {
    name: String,
    launches: u64,
}

#[derive(Debug, Deserialize)]
struct Message {
    text: String,
}

/// Parses the emulated device's report, and returns the kernels and messages about faults.
pub(super) fn counted(text: &str) -> (Vec<ProgramKernel>, Vec<String>) {
    // A program that was killed leaves no report or an incomplete one.
    let counted: Counted = serde_json::from_str(text).unwrap_or_default();
    let kernels = counted.kernels.into_iter().map(|kernel| ProgramKernel {
        name: shortened(&readable(&kernel.name)),
        launches: kernel.launches,
        ..ProgramKernel::default()
    });
    let mut kernels: Vec<ProgramKernel> = kernels.collect();
    kernels.sort_by(|a, b| b.launches.cmp(&a.launches).then_with(|| a.name.cmp(&b.name)));
    kernels.truncate(MOST_KERNELS);
    let messages = counted.messages.iter().take(MOST_MESSAGES);
    (kernels, messages.map(|message| shortened(&message.text)).collect())
}

/// Returns the kernels of a timeline, those with the longest time first.
pub(super) fn of_timeline(timeline: &TimelineReport) -> Vec<ProgramKernel> {
    let whole: f64 = timeline.kernels.iter().map(|row| row.total_ms).sum();
    let share = |total: f64| Some(100.0 * total / whole).filter(|_| whole > 0.0);
    let rows = timeline.kernels.iter().map(|row| ProgramKernel {
        name: shortened(&row.name),
        launches: row.count,
        total_ms: Some(row.total_ms),
        share_pct: share(row.total_ms),
    });
    let mut kernels: Vec<ProgramKernel> = rows.collect();
    kernels
        .sort_by(|a, b| b.total_ms.unwrap_or_default().total_cmp(&a.total_ms.unwrap_or_default()));
    kernels.truncate(MOST_KERNELS);
    kernels
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_report::TimelineRow;

    #[test]
    fn what_the_emulated_device_counted_is_read_and_rubbish_is_nothing() {
        let text = r#"{"kernels":[{"name":"a","launches":2,"counts":{"x":1}},{"name":"b","launches":5}],
            "findings":[],"messages":[{"subject":"b","text":"a fault"}],"dropped":{"launches":0}}"#;
        let (kernels, messages) = counted(text);
        let told: Vec<_> = kernels.iter().map(|one| (one.name.as_str(), one.launches)).collect();
        assert_eq!((told, messages), (vec![("b", 5), ("a", 2)], vec!["a fault".to_owned()]));
        for rubbish in ["", "{", "[]", r#"{"kernels":[{"name":1}]}"#] {
            assert_eq!(counted(rubbish), (Vec::new(), Vec::new()), "{rubbish}");
        }
        let many: Vec<String> =
            (0..MOST_KERNELS + 5).map(|at| format!(r#"{{"name":"k{at}","launches":1}}"#)).collect();
        let (kernels, _) = counted(&format!(r#"{{"kernels":[{}]}}"#, many.join(",")));
        assert_eq!(kernels.len(), MOST_KERNELS);
    }

    #[test]
    fn kernels_of_a_timeline_have_their_shares() {
        let row = |name: &str, count, total_ms| TimelineRow {
            name: name.to_owned(),
            count,
            total_ms,
            ..TimelineRow::default()
        };
        let kernels = vec![row("short", 9, 1.0), row("long", 1, 3.0)];
        let timeline = TimelineReport { kernels, ..TimelineReport::default() };
        let told = of_timeline(&timeline);
        assert_eq!((told[0].name.as_str(), told[0].share_pct), ("long", Some(75.0)));
        assert_eq!((told[1].launches, told[1].share_pct), (9, Some(25.0)));
        assert!(of_timeline(&TimelineReport::default()).is_empty());
    }
}
