//! The trend of series as a picture: values with their confidence intervals, levels between changes,
//! and the changes themselves. No script, nothing fetched.

use super::{ChangePoint, Series};
use crate::gate::Outcome;

/// Most series in one picture, and most points of each: the latest.
const MAX_SERIES: usize = 20;
const MAX_POINTS: usize = 500;
/// Sizes, pixels.
const WIDTH: f64 = 820.0;
const PANEL: f64 = 220.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 26.0;
/// Longest text, characters.
const MAX_TEXT: usize = 100;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#444}.t{font-weight:600}\
.y{text-anchor:end}.frame{fill:none;stroke:#bbb}.ci{stroke:#7a9cc6;stroke-width:1.5}\
.p{fill:#1f5fa8}.bad{fill:#c62828}.level{stroke:#555;stroke-dasharray:5 3}\
.change{stroke:#c62828;stroke-width:1.5}.note{fill:#c62828}";

/// Draws series below one another; one without points says so.
pub fn svg(series: &[Series]) -> String {
    let shown = &series[..series.len().min(MAX_SERIES)];
    let height = PANEL * shown.len().max(1) as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\">\n<title>History with 95 % confidence intervals and \
         changes of level</title>\n<style>{STYLE}</style>\n"
    );
    if shown.is_empty() {
        out.push_str("<text x=\"20\" y=\"40\">No history.</text>\n");
    }
    for (index, one) in shown.iter().enumerate() {
        panel(&mut out, one, PANEL * index as f64);
    }
    out.push_str("</svg>\n");
    out
}

/// From values to places in one panel.
struct Axes {
    low: f64,
    high: f64,
    count: usize,
    top: f64,
}

impl Axes {
    fn x(&self, index: usize) -> f64 {
        let width = WIDTH - LEFT - RIGHT;
        LEFT + width * (index as f64 + 0.5) / self.count.max(1) as f64
    }

    /// Half way between a point and the one before.
    fn x_before(&self, index: usize) -> f64 {
        self.x(index) - (WIDTH - LEFT - RIGHT) / self.count.max(1) as f64 / 2.0
    }

    fn y(&self, value: f64) -> f64 {
        let height = PANEL - TOP - BOTTOM;
        let part = (value - self.low) / (self.high - self.low);
        self.top + TOP + height * (1.0 - part.clamp(0.0, 1.0))
    }
}

fn panel(out: &mut String, series: &Series, top: f64) {
    let skipped = series.points.len().saturating_sub(MAX_POINTS);
    let points = &series.points[skipped..];
    let unit = if series.metric == "time" { "ms" } else { "" };
    let key = &series.key;
    let driver = key.driver.as_deref().map(|driver| format!(", driver {driver}"));
    out.push_str(&format!(
        "<text class=\"t\" x=\"{LEFT}\" y=\"{:.0}\">{}</text><text x=\"{LEFT}\" y=\"{:.0}\">{}</text>\n",
        top + 16.0,
        escape(&format!("{}: {} {unit}", key.case, series.metric)),
        top + 32.0,
        escape(&format!("{}{}, {}", key.device, driver.unwrap_or_default(), key.method)),
    ));
    let ends = points.iter().flat_map(|point| {
        [point.value, point.ci_low.unwrap_or(point.value), point.ci_high.unwrap_or(point.value)]
    });
    let finite = ends.filter(|value| value.is_finite()).collect::<Vec<_>>();
    let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let most = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least > most {
        out.push_str(&format!("<text x=\"{LEFT}\" y=\"{:.0}\">no values</text>\n", top + 60.0));
        return;
    }
    // A constant series stands in the middle, and noise far below a per cent does not fill the panel.
    let room = ((most - least) * 0.08).max(most.abs() * 0.005).max(f64::MIN_POSITIVE);
    let axes = Axes { low: least - room, high: most + room, count: points.len(), top };
    frame(out, &axes);
    levels(out, series, skipped, &axes);
    let drawn = points.iter().enumerate().filter(|(_, point)| point.value.is_finite());
    for (index, point) in drawn {
        let (x, y) = (axes.x(index), axes.y(point.value));
        if let (Some(low), Some(high)) = (point.ci_low, point.ci_high) {
            let (low, high) = (axes.y(low), axes.y(high));
            out.push_str(&format!(
                "<line class=\"ci\" x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\"/>"
            ));
        }
        let passes = matches!(point.verdict, Outcome::Pass | Outcome::Improved);
        let class = if passes { "p" } else { "bad" };
        let commit = point.commit.as_deref().map(|commit| format!(" {}", escape(commit)));
        out.push_str(&format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"><title>{} {unit}{}\
             </title></circle>\n",
            rounded(point.value),
            commit.unwrap_or_default()
        ));
    }
}

fn frame(out: &mut String, axes: &Axes) {
    out.push_str(&format!(
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\n",
        axes.top + TOP,
        WIDTH - LEFT - RIGHT,
        PANEL - TOP - BOTTOM
    ));
    for part in [0.0, 0.5, 1.0] {
        let value = axes.low + part * (axes.high - axes.low);
        out.push_str(&format!(
            "<text class=\"y\" x=\"{:.0}\" y=\"{:.1}\">{}</text>\n",
            LEFT - 6.0,
            axes.y(value) + 4.0,
            rounded(value)
        ));
    }
}

/// A dashed line for each level, a red one for each change, with its size.
fn levels(out: &mut String, series: &Series, skipped: usize, axes: &Axes) {
    let seen = |change: &&ChangePoint| change.at as usize > skipped;
    let changes = series.changes.iter().filter(seen).collect::<Vec<_>>();
    let mut level = |from: f64, to: f64, value: f64| {
        let y = axes.y(value);
        out.push_str(&format!(
            "<line class=\"level\" x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\"/>\n"
        ));
    };
    let at = |change: &ChangePoint| axes.x_before(change.at as usize - skipped);
    let mut from = LEFT;
    for change in &changes {
        level(from, at(change), change.before);
        from = at(change);
    }
    if let Some(last) = changes.last() {
        level(from, WIDTH - RIGHT, last.after);
    }
    for change in changes {
        let x = at(change);
        let size = if change.before == 0.0 {
            String::new()
        } else {
            format!("{:+.2} %", 100.0 * (change.after / change.before - 1.0))
        };
        out.push_str(&format!(
            "<line class=\"change\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
             <text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{size}</text>\n",
            axes.top + TOP,
            axes.top + PANEL - BOTTOM,
            x + 3.0,
            axes.top + PANEL - BOTTOM + 14.0
        ));
    }
}

/// Four significant digits, as a person would write them.
fn rounded(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if magnitude >= 15 {
        return format!("{value:.3e}");
    }
    let digits = usize::try_from((3 - magnitude).clamp(0, 12)).unwrap_or(0);
    format!("{value:.digits$}")
}

/// Text as an element may hold it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, c) in text.chars().enumerate() {
        if index == MAX_TEXT {
            escaped.push('…');
            break;
        }
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{SeriesKey, TrendPoint};
    use crate::worker::protocol::DeviceKind;

    fn series(values: &[f64], changes: Vec<ChangePoint>) -> Series {
        let point = |value: &f64| TrendPoint {
            unix_s: 0.0,
            value: *value,
            ci_low: Some(value * 0.9),
            ci_high: Some(value * 1.1),
            verdict: Outcome::Pass,
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

    #[test]
    fn numbers_are_short() {
        let cases = [(0.0, "0"), (0.012345, "0.01235"), (1.0, "1.000"), (123456.0, "123456")];
        for (value, text) in cases {
            assert_eq!(rounded(value), text);
        }
    }
}
