//! A chart of the samples in order of time, with the clock of each batch below.

use std::fmt::Write as _;

use warpgauge_report::BatchReport;
use warpgauge_report::readable::duration_ms;
use warpgauge_svg::{Axis, Drawing, Linear, Plot, Side, SvgElement, Tick, si};

use super::{WIDTH, plot};

/// The heights of the parts for the times and for the clock, in pixels.
const TIMES: f64 = 212.0;
const CLOCK: f64 = 92.0;
/// The maximum number of samples that are drawn as dots. If there are more, each column shows their
/// range.
const MAX_DOTS: usize = 600;
/// The number of columns for larger numbers of samples.
const COLUMNS: usize = 520;

/// The content of the chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleSeries<'a> {
    /// All samples in launch order, in milliseconds.
    pub samples_ms: &'a [f32],
    pub batches: &'a [BatchReport],
    /// For each batch, whether it was rejected. Empty if this is unknown.
    pub rejected: &'a [bool],
    pub median_ms: f64,
}

/// Draws the samples in launch order. Returns `None` if there are fewer than two.
pub(crate) fn series(series: SampleSeries<'_>) -> Option<String> {
    let samples = series.samples_ms;
    let finite = || samples.iter().map(|ms| f64::from(*ms)).filter(|ms| ms.is_finite());
    let (low, high) = (finite().min_by(f64::total_cmp)?, finite().max_by(f64::total_cmp)?);
    if samples.len() < 2 {
        return None;
    }
    let has_clock = series.batches.iter().any(|batch| batch.sm_clock_hz.is_some());
    let times = plot(TIMES);
    let height = if has_clock { TIMES + CLOCK } else { TIMES };
    let title = format!("{} launch times in order", samples.len());
    let mut drawing = Drawing::new([WIDTH, height], &title);
    let x = Linear::new((0.0, (samples.len() - 1) as f64), (times.left, times.right));
    let room = ((high - low) * 0.05).max(high.abs() * 1e-3);
    let y = Linear::new(((low - room).max(0.0), high + room), (times.bottom, times.top));
    for (from, to) in rejected_spans(&series) {
        let [left, right] = [from, to].map(|at| x.at(at as f64));
        let size = [(right - left).max(2.0), times.bottom - times.top];
        let band = SvgElement::rectangle("margin", [left, times.top], size);
        drawing.add(band.titled("does not count"));
    }
    let beside = y.ticks(4).map(|(ms, at)| Tick { at, label: duration_ms(ms), line: Some("grid") });
    Axis { side: Side::Left, label: "" }.draw(&mut drawing, &times, beside);
    let (class, path) = match samples.len() > MAX_DOTS {
        true => ("trace", columns(samples, &x, &y)),
        false => ("dots", dots(samples, &x, &y)),
    };
    drawing.add(SvgElement::path(class, &path));
    let median = times.horizontal("middle", y.at(series.median_ms));
    drawing.add(median.titled(&format!("median {}", duration_ms(series.median_ms))));
    let ends = [0, samples.len() - 1];
    let below =
        ends.map(|at| Tick { at: x.at(at as f64), label: format!("{}", at + 1), line: None });
    Axis { side: Side::Bottom, label: "" }.draw(&mut drawing, &times, below);
    if has_clock {
        clock(&mut drawing, &series, &x);
    }
    Some(drawing.finish())
}

/// Returns the first and the last sample of each rejected batch.
fn rejected_spans(series: &SampleSeries<'_>) -> Vec<(usize, usize)> {
    let mut from = 0;
    let mut spans = Vec::new();
    for (index, batch) in series.batches.iter().enumerate() {
        let to = from + batch.trials as usize;
        if series.rejected.get(index) == Some(&true) && to > from {
            spans.push((from, to - 1));
        }
        from = to;
    }
    spans
}

/// A dot is a line of length zero with round ends. A single path contains all dots.
fn dots(samples: &[f32], x: &Linear, y: &Linear) -> String {
    let mut path = String::new();
    for (index, ms) in samples.iter().enumerate().filter(|(_, ms)| ms.is_finite()) {
        let _ = write!(path, "M{:.1} {:.1}h0", x.at(index as f64), y.at(f64::from(*ms)));
    }
    path
}

/// Draws the range from the smallest to the largest sample in each column, so that no outlier is
/// lost.
fn columns(samples: &[f32], x: &Linear, y: &Linear) -> String {
    let mut path = String::new();
    for column in 0..COLUMNS {
        let at = |column: usize| column * samples.len() / COLUMNS;
        let part = samples[at(column)..at(column + 1)].iter().filter(|ms| ms.is_finite());
        let ends = part.fold(None, |ends: Option<(f32, f32)>, ms| {
            Some(ends.map_or((*ms, *ms), |(low, high)| (low.min(*ms), high.max(*ms))))
        });
        let Some((low, high)) = ends else { continue };
        let (low, high) = (y.at(f64::from(low)), y.at(f64::from(high)));
        let _ = write!(path, "M{:.1} {:.1}V{:.1}", x.at(at(column) as f64), low + 0.5, high - 0.5);
    }
    path
}

/// Draws the clock of each batch as steps.
fn clock(drawing: &mut Drawing, series: &SampleSeries<'_>, x: &Linear) {
    let clocks = || series.batches.iter().filter_map(|batch| batch.sm_clock_hz);
    let Some(high) = clocks().max_by(f64::total_cmp) else { return };
    let low = clocks().min_by(f64::total_cmp).unwrap_or(high);
    let plot = Plot { top: TIMES + 4.0, bottom: TIMES + CLOCK - 24.0, ..plot(TIMES) };
    let room = ((high - low) * 0.1).max(high * 0.01);
    let y = Linear::new((low - room, high + room), (plot.bottom, plot.top));
    let mut path = String::new();
    let mut from = 0.0;
    for batch in series.batches {
        let to = from + f64::from(batch.trials);
        if let Some(hz) = batch.sm_clock_hz {
            let _ = write!(
                path,
                "M{:.1} {:.1}H{:.1}",
                x.at(from),
                y.at(hz),
                x.at(to).max(x.at(from) + 1.0)
            );
        }
        from = to;
    }
    drawing.add(plot.frame("axis"));
    drawing.add(SvgElement::path("second", &path).titled("clock of the multiprocessors"));
    let hertz = |hz: f64| si(hz, "Hz");
    let beside = [low, high].map(|hz| Tick { at: y.at(hz), label: hertz(hz), line: None });
    // Equal clocks share one label.
    let beside = beside.into_iter().take(if high > low { 2 } else { 1 });
    Axis { side: Side::Left, label: "" }.draw(drawing, &plot, beside);
    let below = [plot.left, plot.bottom + 16.0];
    drawing.add(SvgElement::text("small", below, "clock of the multiprocessors, by batch"));
}
