//! Draws series as SVG: values with their confidence intervals, levels between changes, and the
//! changes. The SVG contains no script and loads nothing.

use super::{ChangePoint, Series, TrendPoint, date_and_time, short_commit};
use crate::GateOutcome;
use warpgauge_svg::{
    Anchor, Axis, Drawing, Linear, Plot, Point, Side, SvgElement, Tick, rounded, shortened,
};

/// Maximum number of series in one picture, and of points of each series; the latest points are
/// shown.
const MAX_SERIES: usize = 20;
const MAX_POINTS: usize = 500;
/// Sizes in pixels.
const WIDTH: f64 = 820.0;
const PANEL: f64 = 220.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 40.0;
/// Minimum distance between two dates below a panel, and between two branches above it.
const APART: f64 = 130.0;
/// Maximum length of a branch name that is drawn, characters.
const MAX_BRANCH: usize = 18;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#444}.t{font-weight:600}\
.frame{fill:none;stroke:#bbb}.ci{stroke:#7a9cc6;stroke-width:1.5}\
.p{fill:#1f5fa8}.bad{fill:#c62828}.level{stroke:#555;stroke-dasharray:5 3}\
.change{stroke:#c62828;stroke-width:1.5}.note{fill:#c62828}\
.less{stroke:#2e7d32;stroke-width:1.5}.fell{fill:#2e7d32}.date{fill:#777}.branch{stroke:#bbb}";

/// Draws several series, one below the other. A series without points gets a note.
pub fn svg(series: &[Series]) -> String {
    let shown = &series[..series.len().min(MAX_SERIES)];
    let height = PANEL * shown.len().max(1) as f64;
    let title = "History with 95 % confidence intervals and changes of level";
    let mut drawing = Drawing::new([WIDTH, height], title);
    drawing.style(STYLE);
    if shown.is_empty() {
        drawing.add(SvgElement::text("", [20.0, 40.0], "No history."));
    }
    for (index, one) in shown.iter().enumerate() {
        panel(&mut drawing, one, PANEL * index as f64);
    }
    drawing.finish()
}

/// The panel of one series.
struct Panel {
    plot: Plot,
    /// Maps the index of a point. The point is drawn half a step to the right.
    x: Linear,
    y: Linear,
}

impl Panel {
    fn point(&self, index: usize, value: f64) -> Point {
        [self.x.at(index as f64 + 0.5), self.y.at(value)]
    }
}

fn panel(drawing: &mut Drawing, series: &Series, top: f64) {
    let skipped = series.points.len().saturating_sub(MAX_POINTS);
    let points = &series.points[skipped..];
    let unit = if series.metric == "time" { "ms" } else { "" };
    let key = &series.key;
    let driver = key.driver.as_deref().map(|driver| format!(", driver {driver}"));
    let title = format!("{}: {} {unit}", key.case, series.metric);
    drawing.add(SvgElement::text("t", [LEFT, top + 16.0], &title));
    let conditions = format!("{}{}, {}", key.device, driver.unwrap_or_default(), key.method);
    drawing.add(SvgElement::text("", [LEFT, top + 32.0], &conditions));
    let Some((low, high)) = range(points) else {
        drawing.add(SvgElement::text("", [LEFT, top + 60.0], "no values"));
        return;
    };
    let plot =
        Plot { left: LEFT, top: top + TOP, right: WIDTH - RIGHT, bottom: top + PANEL - BOTTOM };
    let panel = Panel {
        plot,
        x: Linear::new((0.0, points.len() as f64), (plot.left, plot.right)),
        y: Linear::new((low, high), (plot.bottom, plot.top)),
    };
    drawing.add(plot.frame("frame"));
    let tick = |(value, at)| Tick { at, label: rounded(value), line: None };
    Axis { side: Side::Left, label: "" }.draw(drawing, &plot, panel.y.ticks(3).map(tick));
    dates(drawing, points, &panel);
    branches(drawing, points, &panel);
    levels(drawing, series, skipped, &panel);
    for (index, point) in points.iter().enumerate().filter(|(_, point)| point.value.is_finite()) {
        draw(drawing, point, panel.point(index, point.value), &panel, unit);
    }
}

/// Returns the range of the value axis; `None` without values.
fn range(points: &[TrendPoint]) -> Option<(f64, f64)> {
    let ends = points.iter().flat_map(|point| {
        [point.value, point.ci_low.unwrap_or(point.value), point.ci_high.unwrap_or(point.value)]
    });
    let finite = ends.filter(|value| value.is_finite()).collect::<Vec<_>>();
    let least = finite.iter().copied().min_by(f64::total_cmp)?;
    let most = finite.iter().copied().max_by(f64::total_cmp)?;
    // The margin centres a constant series, and prevents noise far below 1 % from filling the
    // panel.
    let room = ((most - least) * 0.08).max(most.abs() * 0.005).max(f64::MIN_POSITIVE);
    Some((least - room, most + room))
}

/// Draws a point with its interval.
fn draw(drawing: &mut Drawing, point: &TrendPoint, at: Point, panel: &Panel, unit: &str) {
    if let (Some(low), Some(high)) = (point.ci_low, point.ci_high) {
        let [low, high] = [low, high].map(|value| [at[0], panel.y.at(value)]);
        drawing.add(SvgElement::line("ci", low, high));
    }
    let passes =
        matches!(point.verdict, GateOutcome::Pass | GateOutcome::Improved | GateOutcome::New);
    let class = if passes { "p" } else { "bad" };
    let date = date_and_time(point.unix_s).map(|date| format!("{date} UTC"));
    let commit = point.commit.as_deref().map(short_commit);
    let about = [date, commit, point.branch.clone()].into_iter().flatten();
    let about = about.map(|part| format!(", {part}")).collect::<String>();
    let title = format!("{} {unit}{about}", rounded(point.value));
    drawing.add(SvgElement::circle(class, at, 2.5).titled(&title));
}

/// Writes the dates of the first and the last point, and of points between them for which there is
/// enough space.
fn dates(drawing: &mut Drawing, points: &[TrendPoint], panel: &Panel) {
    let y = panel.plot.bottom + 30.0;
    let last = panel.x.at(points.len() as f64 - 0.5);
    let mut free = panel.plot.left;
    for (index, point) in points.iter().enumerate() {
        let x = panel.x.at(index as f64 + 0.5);
        let is_last = index + 1 == points.len();
        if !is_last && (x < free || x + APART > last) && index > 0 {
            continue;
        }
        let Some(date) = date_and_time(point.unix_s) else { continue };
        let text = SvgElement::text("date", [x, y], &date);
        drawing.add(match (index, is_last) {
            (0, _) => text,
            (_, true) => text.anchored(Anchor::End),
            _ => text.anchored(Anchor::Middle),
        });
        free = x + APART;
    }
}

/// Marks the points at which the branch changes, with the branch's name if there is enough space.
/// The function draws nothing if all points belong to one branch.
fn branches(drawing: &mut Drawing, points: &[TrendPoint], panel: &Panel) {
    let starts = |index: &usize| *index == 0 || points[*index].branch != points[*index - 1].branch;
    let starts = (0..points.len()).filter(starts).collect::<Vec<_>>();
    if starts.len() < 2 {
        return;
    }
    let mut free = panel.plot.left;
    for index in starts {
        let x = panel.x.at(index as f64);
        drawing.add(panel.plot.vertical("branch", x));
        let name = points[index].branch.as_deref().unwrap_or("no branch");
        if x >= free {
            let at = [x + 3.0, panel.plot.top + 12.0];
            drawing.add(SvgElement::text("date", at, &shortened(name, MAX_BRANCH)));
            free = x + APART;
        }
    }
}

/// Draws a dashed line for each level, and a line for each change, with its size: red if the value grew, green if it
/// fell.
fn levels(drawing: &mut Drawing, series: &Series, skipped: usize, panel: &Panel) {
    let seen = |change: &&ChangePoint| change.at as usize > skipped;
    let changes = series.changes.iter().filter(seen).collect::<Vec<_>>();
    let level = |from: f64, to: f64, value: f64| {
        let y = panel.y.at(value);
        SvgElement::line("level", [from, y], [to, y])
    };
    // The line is half way between a point and the previous one.
    let at = |change: &ChangePoint| panel.x.at((change.at as usize - skipped) as f64);
    let mut from = panel.plot.left;
    for change in &changes {
        drawing.add(level(from, at(change), change.before));
        from = at(change);
    }
    if let Some(last) = changes.last() {
        drawing.add(level(from, panel.plot.right, last.after));
    }
    for change in changes {
        let x = at(change);
        let size = if change.before == 0.0 {
            String::new()
        } else {
            format!("{:+.2} %", 100.0 * (change.after / change.before - 1.0))
        };
        let fell = change.after < change.before;
        let (line, note) = if fell { ("less", "fell") } else { ("change", "note") };
        drawing.add(panel.plot.vertical(line, x));
        drawing.add(SvgElement::text(note, [x + 3.0, panel.plot.bottom + 14.0], &size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::SeriesKey;
    use warpgauge_model::DeviceKind;

    fn series(values: &[f64], changes: Vec<ChangePoint>) -> Series {
        let point = |value: &f64| TrendPoint {
            unix_s: 0.0,
            value: *value,
            ci_low: Some(value * 0.9),
            ci_high: Some(value * 1.1),
            verdict: GateOutcome::Pass,
            branch: None,
            commit: Some("<&\u{1}>".to_owned()),
            job_id: None,
        };
        Series {
            key: SeriesKey {
                case: "<script>a & b</script>".to_owned(),
                kind: DeviceKind::Cuda,
                device: "GPU".to_owned(),
                driver: None,
                cuda: "13.0".to_owned(),
                method: "m".to_owned(),
                method_version: 1,
            },
            metric: "time".to_owned(),
            points: values.iter().map(point).collect(),
            changes,
        }
    }

    fn count(document: &roxmltree::Document<'_>, class: &str) -> usize {
        document.descendants().filter(|node| node.attribute("class") == Some(class)).count()
    }

    #[test]
    fn points_intervals_levels_and_changes_are_drawn() {
        let change = ChangePoint { at: 2, commit: None, before: 1.0, after: 2.0, p_value: 0.002 };
        let text = svg(&[series(&[1.0, 1.0, 2.0, 2.0], vec![change]), series(&[], vec![])]);
        let document = roxmltree::Document::parse(&text).expect("well-formed");
        assert_eq!(count(&document, "p"), 4);
        assert_eq!(count(&document, "ci"), 4);
        assert_eq!(count(&document, "level"), 2);
        assert_eq!(count(&document, "change"), 1);
        assert!(text.contains("+100.00 %") && text.contains("no values"), "{text}");
    }

    #[test]
    fn dates_branches_and_what_fell_are_shown() {
        let change = ChangePoint { at: 2, commit: None, before: 2.0, after: 1.0, p_value: 0.002 };
        let mut series = series(&[2.0, 2.0, 1.0, 1.0], vec![change]);
        for (index, point) in series.points.iter_mut().enumerate() {
            point.unix_s = 1_795_749_846.0 + 86_400.0 * index as f64;
            point.branch = Some(if index < 2 { "main" } else { "<topic>" }.to_owned());
        }
        let text = svg(&[series]);
        let document = roxmltree::Document::parse(&text).expect("well-formed");
        assert_eq!((count(&document, "change"), count(&document, "less")), (0, 1));
        assert_eq!(count(&document, "branch"), 2);
        let texts = document.descendants().filter(|node| node.attribute("class") == Some("date"));
        let texts = texts.filter_map(|node| node.text()).collect::<Vec<_>>();
        for expected in ["2026-11-27 03:24", "2026-11-30 03:24", "main", "<topic>"] {
            assert!(texts.contains(&expected), "{texts:?}");
        }
        assert!(text.contains("2026-11-28 03:24 UTC, &lt;&amp;"), "{text}");
    }

    #[test]
    fn hostile_and_degenerate_series_are_pictures_too() {
        for values in [vec![], vec![0.0], vec![f64::NAN, 1.0], vec![1e300, 1e-300], vec![5.0; 900]]
        {
            let text = svg(&[series(&values, vec![])]);
            let document = roxmltree::Document::parse(&text).expect("well-formed");
            assert!(count(&document, "p") <= MAX_POINTS);
            assert!(!text.contains("NaN") && !text.contains("<script"), "{text}");
        }
        assert!(svg(&[]).contains("No history"));
    }
}
