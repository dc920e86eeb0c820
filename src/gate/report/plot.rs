//! The intervals of a suite as one drawing: inline SVG, no script.

use super::{CaseReport, words};
use crate::xml::escape;

/// Most cases in one drawing.
const MAX_ROWS: usize = 200;
/// Sizes, pixels.
const ROW: f64 = 26.0;
const LABELS: f64 = 230.0;
const WIDTH: f64 = 820.0;
const TOP: f64 = 34.0;
/// The scale never shows less than ± this, and never more than ± that, relative.
const LEAST: f64 = 0.03;
const MOST: f64 = 1.0;

/// One line of the drawing, relative changes.
struct Row<'a> {
    case: &'a CaseReport,
    label: String,
    low: f64,
    middle: f64,
    high: f64,
    margin: f64,
}

/// The drawing; `None` where nothing was measured.
pub(super) fn intervals(cases: &[CaseReport]) -> Option<String> {
    let rows = cases.iter().flat_map(rows).take(MAX_ROWS).collect::<Vec<_>>();
    if rows.is_empty() {
        return None;
    }
    let reach = |row: &Row<'_>| row.low.abs().max(row.high.abs()).max(2.0 * row.margin);
    let span = rows.iter().map(reach).fold(LEAST, f64::max).min(MOST) * 1.1;
    let height = TOP + ROW * rows.len() as f64 + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         width=\"{WIDTH}\" height=\"{height:.0}\">\n<title>Change of each case with its confidence \
         interval; right is slower</title>\n"
    );
    axis(&mut svg, span, height);
    for (index, row) in rows.iter().enumerate() {
        draw(&mut svg, row, TOP + ROW * (index as f64 + 0.5), span);
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn rows(case: &CaseReport) -> Vec<Row<'_>> {
    let row = |label: String, [low, middle, high]: [f64; 3], margin: f64| Row {
        case,
        label,
        low: low - 1.0,
        middle: middle - 1.0,
        high: high - 1.0,
        margin,
    };
    let finite = |row: &Row<'_>| [row.low, row.middle, row.high].iter().all(|x| x.is_finite());
    let time = case.comparison.as_ref().and_then(|comparison| comparison.time);
    let time = time.map(|time| {
        row(case.name.clone(), [time.ci_low, time.ratio, time.ci_high], case.policy.margin)
    });
    let counts = case.counts.iter().filter_map(|count| {
        let label = format!("{} / {}", case.name, count.count);
        Some(row(label, [count.ratio?; 3], case.policy.count_margin))
    });
    time.into_iter().chain(counts).filter(finite).collect()
}

fn x(change: f64, span: f64) -> f64 {
    let half = (WIDTH - LABELS - 20.0) / 2.0;
    LABELS + half + half * (change / span).clamp(-1.0, 1.0)
}

fn axis(svg: &mut String, span: f64, height: f64) {
    for step in -2..=2 {
        let change = span / 1.1 * f64::from(step) / 2.0;
        let at = x(change, span);
        let class = if step == 0 { "zero" } else { "grid" };
        svg.push_str(&format!(
            "<line class=\"{class}\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{height:.0}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.0}\">{:+.1} %</text>\n",
            TOP - 8.0,
            100.0 * change
        ));
    }
}

fn draw(svg: &mut String, row: &Row<'_>, y: f64, span: f64) {
    let class = words::outcome(row.case.outcome).to_lowercase();
    let label = escape(&shortened(&row.label));
    let (low, middle, high) = (x(row.low, span), x(row.middle, span), x(row.high, span));
    let (from, to) = (x(-row.margin, span), x(row.margin, span));
    svg.push_str(&format!(
        "<g class=\"{class}\"><title>{}: {}</title><text class=\"label\" x=\"{:.0}\" y=\"{:.1}\">\
         {label}</text><rect class=\"margin\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
         height=\"16\"/><line class=\"interval\" x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" \
         y2=\"{y:.1}\"/><circle class=\"point\" cx=\"{middle:.1}\" cy=\"{y:.1}\" r=\"4\"/></g>\n",
        escape(&row.label),
        escape(&words::change(1.0 + row.middle)),
        LABELS - 8.0,
        y + 4.0,
        y - 8.0,
        to - from,
    ));
}

fn shortened(label: &str) -> String {
    const MOST: usize = 34;
    if label.chars().count() <= MOST {
        return label.to_owned();
    }
    label.chars().take(MOST - 1).chain(std::iter::once('…')).collect()
}
