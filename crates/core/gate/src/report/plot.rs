//! Draws the intervals of a suite as inline SVG without a script.

use super::{CaseReport, words};
use warpgauge_svg::{Anchor, Axis, Drawing, Linear, Plot, Side, SvgElement, Tick, shortened};

/// Maximum number of cases in one drawing.
const MAX_ROWS: usize = 200;
/// Longest label, characters. [`LABELS`] reserves the width for it.
const MAX_LABEL: usize = 34;
/// Sizes in pixels.
const ROW: f64 = 26.0;
const LABELS: f64 = 230.0;
const WIDTH: f64 = 820.0;
const TOP: f64 = 34.0;
/// Smallest and largest half-width of the scale, relative.
const LEAST: f64 = 0.03;
const MOST: f64 = 1.0;

/// One row of the drawing, with relative changes.
struct Row<'a> {
    case: &'a CaseReport,
    label: String,
    low: f64,
    middle: f64,
    high: f64,
    margin: f64,
}

/// Draws the intervals; `None` if nothing was measured.
pub fn intervals(cases: &[CaseReport]) -> Option<String> {
    let rows = cases.iter().flat_map(rows).take(MAX_ROWS).collect::<Vec<_>>();
    if rows.is_empty() {
        return None;
    }
    let reach = |row: &Row<'_>| row.low.abs().max(row.high.abs()).max(2.0 * row.margin);
    let span = rows.iter().map(reach).fold(LEAST, f64::max).min(MOST) * 1.1;
    let height = TOP + ROW * rows.len() as f64 + 10.0;
    let plot = Plot { left: LABELS, top: TOP, right: WIDTH - 20.0, bottom: height };
    let scale = Linear::new((-span, span), (plot.left, plot.right));
    let title = "Change of each case with its confidence interval; right is slower";
    let mut drawing = Drawing::new([WIDTH, height], title);
    axis(&mut drawing, &plot, span, &scale);
    for (index, row) in rows.iter().enumerate() {
        drawing.add(draw(row, TOP + ROW * (index as f64 + 0.5), &scale));
    }
    Some(drawing.finish())
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

/// Draws ticks at zero, at half of the scale, and at its ends.
fn axis(drawing: &mut Drawing, plot: &Plot, span: f64, scale: &Linear) {
    let tick = |step: i32| {
        let change = span / 1.1 * f64::from(step) / 2.0;
        Tick {
            at: scale.at(change),
            label: format!("{:+.1} %", 100.0 * change),
            line: Some(if step == 0 { "zero" } else { "grid" }),
        }
    };
    Axis { side: Side::Top, label: "tick" }.draw(drawing, plot, (-2..=2).map(tick));
}

fn draw(row: &Row<'_>, y: f64, scale: &Linear) -> SvgElement {
    let class = words::outcome(row.case.outcome).to_lowercase();
    let [low, middle, high] = [row.low, row.middle, row.high].map(|change| scale.at(change));
    let (from, to) = (scale.at(-row.margin), scale.at(row.margin));
    let label =
        SvgElement::text("label", [LABELS - 8.0, y + 4.0], &shortened(&row.label, MAX_LABEL));
    SvgElement::group(&class)
        .titled(&format!("{}: {}", row.label, words::change(1.0 + row.middle)))
        .with(label.anchored(Anchor::End))
        .with(SvgElement::rectangle("margin", [from, y - 8.0], [to - from, 16.0]))
        .with(SvgElement::line("interval", [low, y], [high, y]))
        .with(SvgElement::circle("point", [middle, y], 4.0))
}
