//! Draws the intervals of a suite as inline SVG without a script.

use super::{CaseReport, words};
use crate::GateOutcome;
use warpgauge_svg::{Anchor, Axis, Drawing, Linear, Plot, Side, SvgElement, Tick, shortened};

/// Maximum number of cases in one drawing.
const MAX_ROWS: usize = 200;
/// Maximum length of a label, characters. [`LABELS`] reserves the width for it.
const MAX_LABEL: usize = 34;
/// Sizes in pixels.
const ROW: f64 = 26.0;
const LABELS: f64 = 230.0;
const WIDTH: f64 = 820.0;
const TOP: f64 = 34.0;
/// Smallest and largest half-width of the scale, relative.
const LEAST: f64 = 0.03;
const MOST: f64 = 1.0;
/// A row that extends further than this multiple of the median extent is cut off, because it would compress the other
/// rows.
const FAR: f64 = 6.0;

/// A drawing of intervals.
pub struct Intervals {
    /// Drawing as inline SVG.
    pub svg: String,
    /// Explanation of the marks in the drawing.
    pub caption: String,
}

/// One row of the drawing, with relative changes.
struct Row {
    outcome: GateOutcome,
    label: String,
    low: f64,
    middle: f64,
    high: f64,
    margin: f64,
}

/// Draws the intervals. Returns `None` if nothing was measured.
pub fn intervals(cases: &[CaseReport]) -> Option<Intervals> {
    let rows = cases.iter().flat_map(rows).take(MAX_ROWS).collect::<Vec<_>>();
    if rows.is_empty() {
        return None;
    }
    let span = span(&rows) * 1.1;
    let height = TOP + ROW * rows.len() as f64 + 10.0;
    let plot = Plot { left: LABELS, top: TOP, right: WIDTH - 20.0, bottom: height };
    let scale = Linear::new((-span, span), (plot.left, plot.right));
    let title = "Change of each case with its confidence interval; right is slower";
    let mut drawing = Drawing::new([WIDTH, height], title);
    axis(&mut drawing, &plot, span, &scale);
    for (index, row) in rows.iter().enumerate() {
        drawing.add(draw(row, TOP + ROW * (index as f64 + 0.5), span, &scale));
    }
    let mut caption = "Right means slower, or a higher count.".to_owned();
    if rows.iter().any(|row| row.margin > 0.0) {
        caption.push_str(" The band is the margin.");
    }
    if rows.iter().any(|row| row.low < -span || row.high > span) {
        caption.push_str(
            " A line with a break (//) extends beyond the scale; the number is its \
                          change.",
        );
    }
    Some(Intervals { svg: drawing.finish(), caption })
}

/// Returns the half-width of the scale: the largest extent of a row that is not cut off.
fn span(rows: &[Row]) -> f64 {
    let reach = |row: &Row| row.low.abs().max(row.high.abs()).max(2.0 * row.margin);
    let mut reaches = rows.iter().map(reach).collect::<Vec<_>>();
    reaches.sort_by(f64::total_cmp);
    let usual = reaches[(reaches.len() - 1) / 2].max(LEAST);
    let near = reaches.into_iter().filter(|reach| *reach <= FAR * usual);
    near.fold(LEAST, f64::max).min(MOST)
}

fn rows(case: &CaseReport) -> Vec<Row> {
    let row = |outcome, label: String, [low, middle, high]: [f64; 3], margin: f64| Row {
        outcome,
        label,
        low: low - 1.0,
        middle: middle - 1.0,
        high: high - 1.0,
        margin,
    };
    let finite = |row: &Row| [row.low, row.middle, row.high].iter().all(|x| x.is_finite());
    let time = case.comparison.as_ref().and_then(|comparison| comparison.time);
    let time = time.map(|time| {
        row(
            case.outcome,
            case.name.clone(),
            [time.ci_low, time.ratio, time.ci_high],
            case.policy.margin,
        )
    });
    let counts = case.counts.iter().filter_map(|count| {
        let label = format!("{} / {}", case.name, count.count);
        let margin = case.policy.count_margin;
        let ratio = count.ratio?;
        // A count within its margin does not have the outcome of its case.
        let moved = match ratio {
            _ if ratio > 1.0 + margin => case.outcome,
            _ if ratio < 1.0 => GateOutcome::Improved,
            _ => GateOutcome::Pass,
        };
        Some(row(moved, label, [ratio; 3], margin))
    });
    time.into_iter().chain(counts).filter(finite).collect()
}

/// Draws ticks at zero, at half of the scale, and at the ends of the scale.
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

fn draw(row: &Row, y: f64, span: f64, scale: &Linear) -> SvgElement {
    let class = words::outcome(row.outcome).to_lowercase();
    let [low, middle, high] = [row.low, row.middle, row.high].map(|change| scale.at(change));
    let (from, to) = (scale.at(-row.margin), scale.at(row.margin));
    let label =
        SvgElement::text("label", [LABELS - 8.0, y + 4.0], &shortened(&row.label, MAX_LABEL));
    let mut group = SvgElement::group(&class)
        .titled(&format!("{}: {}", row.label, words::change(1.0 + row.middle)))
        .with(label.anchored(Anchor::End))
        .with(SvgElement::rectangle("margin", [from, y - 8.0], [to - from, 16.0]))
        .with(SvgElement::line("interval", [low, y], [high, y]));
    if row.middle.abs() <= span {
        group = group.with(SvgElement::circle("point", [middle, y], 4.0));
    }
    for (leaves, sign) in [(row.low < -span, -1.0), (row.high > span, 1.0)] {
        if leaves {
            group = broken(group, row, y, sign, scale.at(sign * span));
        }
    }
    group
}

/// Adds a break to a line that extends beyond the scale at `edge`, and the size of the change.
fn broken(mut group: SvgElement, row: &Row, y: f64, sign: f64, edge: f64) -> SvgElement {
    // The whole interval may lie beyond the edge.
    group = group.with(SvgElement::line("interval", [edge - sign * 26.0, y], [edge, y]));
    for distance in [16.0, 11.0] {
        let x = edge - sign * distance;
        group = group.with(SvgElement::line("break", [x - 3.0, y + 6.0], [x + 3.0, y - 6.0]));
    }
    let tip = format!("M{edge:.1} {y:.1}l{:.1} -4.5v9z", -8.0 * sign);
    group = group.with(SvgElement::path("point", &tip));
    // The number is placed on the inner side of the edge.
    let at = [edge - sign * 26.0, y - 6.0];
    let change = SvgElement::text("change", at, &words::change(1.0 + row.middle));
    let change = if sign > 0.0 { change.anchored(Anchor::End) } else { change };
    group.with(change)
}
