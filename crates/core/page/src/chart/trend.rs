//! A chart of the results of a case over time, with the changes of their level.

use std::fmt::Write as _;

use warpgauge_gate::GateOutcome;
use warpgauge_gate::history::{ChangePoint, Series, TrendPoint, date_and_time};
use warpgauge_report::readable::duration_ms;
use warpgauge_svg::{Axis, Drawing, Linear, Plot, Side, SvgElement, Tick, rounded};

use super::{WIDTH, plot};

const HEIGHT: f64 = 180.0;
/// The maximum number of points that are drawn. The latest ones are drawn.
const MAX_POINTS: usize = 300;
/// The minimum distance between two labels of changes, in pixels.
const APART: f64 = 64.0;

/// Draws the points of a series in order of time. Returns `None` if fewer than two have a value.
pub(crate) fn trend(series: &Series) -> Option<String> {
    let skipped = series.points.len().saturating_sub(MAX_POINTS);
    let points = &series.points[skipped..];
    let (low, high) = range(points)?;
    let plot = plot(HEIGHT);
    let x = Linear::new((0.0, points.len() as f64), (plot.left, plot.right));
    let y = Linear::new((low, high), (plot.bottom, plot.top));
    let is_time = series.metric == "time";
    let label = |value: f64| if is_time { duration_ms(value) } else { rounded(value) };
    let title = format!("{} of {} over time", series.metric, series.key.case);
    let mut drawing = Drawing::new([WIDTH, HEIGHT], &title);
    let beside = y.ticks(3).map(|(value, at)| Tick { at, label: label(value), line: Some("grid") });
    Axis { side: Side::Left, label: "" }.draw(&mut drawing, &plot, beside);
    Axis { side: Side::Bottom, label: "" }.draw(&mut drawing, &plot, ends(points, &x));
    changes(&mut drawing, series, skipped, &plot, [&x, &y]);
    let (mut intervals, mut passed, mut others) = (String::new(), String::new(), String::new());
    for (index, point) in points.iter().enumerate().filter(|(_, point)| point.value.is_finite()) {
        let (x, at) = (x.at(index as f64 + 0.5), y.at(point.value));
        if let (Some(low), Some(high)) = (point.ci_low, point.ci_high) {
            let _ = write!(intervals, "M{x:.1} {:.1}V{:.1}", y.at(low), y.at(high));
        }
        let _ = match passes(point.verdict) {
            true => write!(passed, "M{x:.1} {at:.1}h0"),
            false => write!(others, "M{:.1} {:.1}l6 6m0 -6l-6 6", x - 3.0, at - 3.0),
        };
    }
    let paths = [
        ("trace", intervals, "confidence intervals"),
        ("dots", passed, "runs that passed"),
        ("rejected", others, "runs that did not pass"),
    ];
    for (class, path, title) in paths.into_iter().filter(|(_, path, _)| !path.is_empty()) {
        drawing.add(SvgElement::path(class, &path).titled(title));
    }
    Some(drawing.finish())
}

fn passes(outcome: GateOutcome) -> bool {
    matches!(outcome, GateOutcome::Pass | GateOutcome::Improved | GateOutcome::New)
}

/// Returns the range of the value axis. Returns `None` if fewer than two points have a value.
fn range(points: &[TrendPoint]) -> Option<(f64, f64)> {
    if points.iter().filter(|point| point.value.is_finite()).count() < 2 {
        return None;
    }
    let ends = points.iter().flat_map(|point| {
        [point.value, point.ci_low.unwrap_or(point.value), point.ci_high.unwrap_or(point.value)]
    });
    let finite = ends.filter(|value| value.is_finite()).collect::<Vec<_>>();
    let low = finite.iter().copied().min_by(f64::total_cmp)?;
    let high = finite.iter().copied().max_by(f64::total_cmp)?;
    // The margin prevents noise far below 1 % from filling the chart.
    let room = ((high - low) * 0.08).max(high.abs() * 0.005).max(f64::MIN_POSITIVE);
    Some((low - room, high + room))
}

/// Returns the dates of the first and the last point.
fn ends<'t>(points: &[TrendPoint], x: &Linear) -> impl Iterator<Item = Tick<'t>> {
    [0, points.len() - 1].into_iter().filter_map(|index| {
        let date = date_and_time(points[index].unix_s)?;
        let label = date.split(' ').next()?.to_owned();
        Some(Tick { at: x.at(index as f64 + 0.5), label, line: None })
    })
}

/// Draws a line at each change, with its size if there is room, and the levels between changes.
fn changes(
    drawing: &mut Drawing,
    series: &Series,
    skipped: usize,
    plot: &Plot,
    [x, y]: [&Linear; 2],
) {
    let seen = series.changes.iter().filter(|change| change.at as usize > skipped);
    // The line is half way between a point and the previous one.
    let at = |change: &ChangePoint| x.at((change.at as usize - skipped) as f64);
    let (mut levels, mut from, mut free, mut last) = (String::new(), plot.left, plot.left, None);
    for change in seen {
        let place = at(change);
        let _ = write!(levels, "M{from:.1} {:.1}H{place:.1}", y.at(change.before));
        drawing.add(plot.vertical("second", place).titled("change of the level"));
        if place >= free {
            let size = size(change).unwrap_or_default();
            drawing.add(SvgElement::text("small", [place + 3.0, plot.top + 10.0], &size));
            free = place + APART;
        }
        (from, last) = (place, Some(change.after));
    }
    if let Some(level) = last {
        let _ = write!(levels, "M{from:.1} {:.1}H{:.1}", y.at(level), plot.right);
        drawing.add(SvgElement::path("axis", &levels).titled("level between changes"));
    }
}

/// Formats the relative size of a change. Returns `None` for a change from zero.
fn size(change: &ChangePoint) -> Option<String> {
    let share = change.after / change.before - 1.0;
    share.is_finite().then(|| format!("{:+.2} %", 100.0 * share))
}
