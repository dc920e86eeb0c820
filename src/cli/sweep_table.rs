//! The table of a sweep. It is printed row by row while points arrive.

use super::format::{device, duration_ms};
use super::sweep_sizes::best_of_sizes;
use super::terminal::{Style, plain};
use warpgauge_contract::SweepAxis;
use warpgauge_report::{BestPoint, RuntimeStats, SweepPoint, SweepResponse, SweepStatus};

/// Maximum length of an axis value in the table, characters.
const MAX_VALUE: usize = 24;

/// Maximum length of a reason in the table, characters.
const MAX_REASON: usize = 100;

const STATUS: usize = 12;
const MEDIAN: usize = 11;
const INTERVAL: usize = 9;
const RATE: usize = 9;

/// Layout of the table. Columns have fixed widths, because rows are printed before all points are
/// known.
pub(super) struct SweepTableView {
    /// For each axis, the name and the width of its column.
    axes: Vec<(String, usize)>,
    /// Whether there is a column for bytes per second, and whether there is one for operations per
    /// second.
    rates: [bool; 2],
    /// Axes that determine the size of the problem.
    sizes: Vec<String>,
    style: Style,
}

impl SweepTableView {
    pub(super) fn new(rates: [bool; 2], sizes: Vec<String>, style: Style) -> Self {
        Self { axes: Vec::new(), rates, sizes, style }
    }

    /// Returns the header line, and sets the widths of the axis columns.
    pub(super) fn header(&mut self, axes: &[SweepAxis]) -> String {
        self.axes = axes
            .iter()
            .map(|axis| {
                let values =
                    axis.values.iter().map(|value| cell(&value.to_string()).chars().count());
                let width = values.chain([axis.name.chars().count()]).max().unwrap_or(0);
                (axis.name.clone(), width)
            })
            .collect();
        let names = self.axes.iter().map(|(name, width)| format!("{:>width$}", plain(name)));
        let rates = self.rates_of(["GB/s".to_owned(), "GFLOP/s".to_owned()]);
        let line =
            self.line(names, &format!("{:<STATUS$}", "verdict"), "median", "95 % CI", &rates);
        format!("{}\n", line.trim_end())
    }

    /// Returns the row for a point.
    pub(super) fn row(&self, point: &SweepPoint) -> String {
        let values = self.axes.iter().map(|(name, width)| {
            let value = point.values.get(name).map(ToString::to_string).unwrap_or_default();
            format!("{:>width$}", cell(&value))
        });
        let stats = point.runtime_stats.as_ref();
        let median = stats.map_or("-".to_owned(), |stats| duration_ms(stats.ranked_ms()));
        let interval = stats.and_then(interval).unwrap_or_else(|| "-".to_owned());
        let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        let rates = self.rates_of([rate(point.gbps), rate(point.gflops)]);
        let mut line = self.line(values, &self.verdict(point.status), &median, &interval, &rates);
        if let Some(reason) = point.reasons.first() {
            let place = reason.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
            let text = format!("{place}{}", reason.message.trim_start());
            line.push_str(&format!("  {}", shortened(&text, MAX_REASON)));
        }
        format!("{}\n", line.trim_end())
    }

    /// Returns the number of points for each verdict, and the best points.
    pub(super) fn summary(&self, answer: &SweepResponse) -> String {
        let counts = answer.counts.iter().map(|(status, count)| format!("{count} {status}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let took = duration_ms(answer.total_ms);
        let mut text = format!("\n{} points in {took}: {counts}\n", answer.points.len());
        let best = &answer.best;
        // If sizes differ, the smallest size is always the fastest. Then the lines for each size
        // replace this line.
        let within = |point: &Option<BestPoint>| point.clone().filter(|_| self.sizes.is_empty());
        for (name, point, shown) in [
            ("fastest", &within(&best.median_ms), duration_ms as fn(f64) -> String),
            ("most GB/s", &best.gbps, one_decimal),
            ("most GFLOP/s", &best.gflops, one_decimal),
            ("fewest warp instructions", &within(&best.warp_instructions), whole),
            ("fewest sectors of global memory", &within(&best.global_sectors), whole),
        ] {
            if let Some(point) = point {
                text.push_str(&format!("{name}: {} at {}\n", shown(point.value), place(point)));
            }
        }
        if !self.sizes.is_empty() {
            text.push_str(&best_of_sizes(answer, &self.sizes));
        }
        if let Some(why) = &best.not_ranked {
            text.push_str(&format!("not ranked by time: {why}\n"));
        }
        for it in &answer.devices {
            text.push_str(&format!("device {}\n", device(it)));
        }
        if self.style.verbose {
            text.push_str(&format!("job {}\n", answer.job_id));
        }
        plain(&text)
    }

    fn line(
        &self,
        axes: impl Iterator<Item = String>,
        verdict: &str,
        median: &str,
        interval: &str,
        rates: &str,
    ) -> String {
        let axes = axes.collect::<Vec<_>>().join("  ");
        format!("{axes}  {verdict}  {median:>MEDIAN$}  {interval:>INTERVAL$}{rates}")
    }

    fn rates_of(&self, cells: [String; 2]) -> String {
        let shown = self.rates.iter().zip(cells).filter(|(shown, _)| **shown);
        shown.map(|(_, cell)| format!("  {cell:>RATE$}")).collect()
    }

    fn verdict(&self, status: SweepStatus) -> String {
        let name = format!("{:<STATUS$}", status.name());
        let code = match status {
            _ if !self.style.colour => return name,
            SweepStatus::Correct => 32,
            SweepStatus::NotChecked | SweepStatus::Weak | SweepStatus::Error => 33,
            SweepStatus::Wrong | SweepStatus::NotCompiled | SweepStatus::Invalid => 31,
        };
        format!("\x1b[1;{code}m{name}\x1b[0m")
    }
}

/// Returns half the width of the median's confidence interval, as a share of the median in percent.
fn interval(stats: &RuntimeStats) -> Option<String> {
    let half = (stats.median_ci_high? - stats.median_ci_low?) / 2.0;
    let share = 100.0 * half / stats.median;
    share.is_finite().then(|| format!("±{share:.2} %"))
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn one_decimal(value: f64) -> String {
    format!("{value:.1}")
}

fn place(point: &BestPoint) -> String {
    let values = point.values.iter().map(|(name, value)| format!("{name} = {value}"));
    values.collect::<Vec<_>>().join(", ")
}

fn cell(text: &str) -> String {
    shortened(text, MAX_VALUE)
}

/// Returns the first line of the text that is not blank, shortened and without control characters.
fn shortened(text: &str, limit: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = plain(line.trim()).replace('\t', " ");
    if line.chars().count() <= limit {
        return line;
    }
    line.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn point(fields: serde_json::Value) -> SweepPoint {
        let mut whole = json!({
            "index": 0, "values": {"block": 64, "type": "float"}, "status": "correct",
            "total_ms": 1.0,
        });
        for (name, value) in fields.as_object().unwrap() {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn rows_stand_below_their_names() {
        let axes: Vec<SweepAxis> = serde_json::from_value(json!([
            {"name": "block", "values": [64, 1024]}, {"name": "type", "values": ["float", "half2"]},
        ]))
        .unwrap();
        let mut table = SweepTableView::new([true, false], Vec::new(), Style::default());
        let stats = json!({"mean": 2.0, "std": 0.0, "min": 2.0, "max": 2.0, "median": 2.0,
            "percentile_95": 2.0, "percentile_99": 2.0, "samples": 9, "median_ci_low": 1.99,
            "median_ci_high": 2.01});
        let header = table.header(&axes);
        let row = table.row(&point(json!({"runtime_stats": stats, "gbps": 12.34})));
        assert_eq!(header, "block   type  verdict            median    95 % CI       GB/s\n");
        assert_eq!(row, "   64  float  correct          2.000 ms    ±0.50 %       12.3\n");
    }

    #[test]
    fn reasons_are_one_short_line() {
        let table = SweepTableView::new([false, false], Vec::new(), Style::default());
        let message = format!("\n first\x1b[2J {}\nsecond", "x".repeat(200));
        let reasons = json!([{"code": "c", "path": "kernel.io", "message": message}]);
        let row = table.row(&point(json!({"status": "invalid", "reasons": reasons})));
        assert!(row.contains("invalid"), "{row}");
        assert!(row.ends_with("…\n") && row.lines().count() == 1, "{row}");
        assert!(row.chars().count() < 160 && !row.contains('\x1b'), "{row}");
    }
}
