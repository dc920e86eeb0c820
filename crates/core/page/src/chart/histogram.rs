//! A histogram of samples.

use warpgauge_report::RuntimeStats;
use warpgauge_report::readable::duration_ms;
use warpgauge_svg::{Axis, Drawing, Linear, Side, SvgElement, Tick};

use super::{WIDTH, plot};

/// The height of the drawing, in pixels.
const HEIGHT: f64 = 200.0;
/// The maximum number of bars.
const BARS: usize = 48;
/// The minimum number of samples for a histogram.
const LEAST: usize = 8;

/// Draws a histogram of the launch times, with the median and its confidence interval. Returns
/// `None` if there are too few samples or all are equal.
pub(crate) fn histogram(samples_ms: &[f32], stats: &RuntimeStats) -> Option<String> {
    let (low, high) = (stats.min, stats.max);
    // Samples are stored in binary32.
    let slack = 1e-6 * high.abs();
    let within = low - slack..=high + slack;
    let counted = || samples_ms.iter().map(|ms| f64::from(*ms)).filter(|ms| within.contains(ms));
    let number = counted().count();
    if number < LEAST || low >= high {
        return None;
    }
    let bars = (number / 3).clamp(LEAST, BARS);
    let mut counts = vec![0_u32; bars];
    for ms in counted() {
        let at = ((ms - low) / (high - low) * bars as f64).max(0.0) as usize;
        counts[at.min(bars - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1);
    let plot = plot(HEIGHT);
    let x = Linear::new((low, high), (plot.left, plot.right));
    let y = Linear::new((0.0, f64::from(most)), (plot.bottom, plot.top));
    let title = format!("Distribution of {number} launch times");
    let mut drawing = Drawing::new([WIDTH, HEIGHT], &title);
    if let (Some(from), Some(to)) = (stats.median_ci_low, stats.median_ci_high) {
        let size = [(x.at(to) - x.at(from)).max(1.0), plot.bottom - plot.top];
        let band = SvgElement::rectangle("band", [x.at(from), plot.top], size);
        drawing.add(band.titled("95 % confidence interval of the median"));
    }
    let width = (plot.right - plot.left) / bars as f64;
    for (index, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (left, top) = (plot.left + width * index as f64, y.at(f64::from(*count)));
        let step = (high - low) / bars as f64;
        let from = low + step * index as f64;
        let title = format!("{count} from {} to {}", duration_ms(from), duration_ms(from + step));
        let size = [(width - 1.0).max(1.0), plot.bottom - top];
        drawing.add(SvgElement::rectangle("fill", [left, top], size).titled(&title));
    }
    drawing.add(plot.vertical("middle", x.at(stats.median)).titled("median"));
    drawing.add(plot.horizontal("axis", plot.bottom));
    let below = x.ticks(5).map(|(ms, at)| Tick { at, label: duration_ms(ms), line: None });
    Axis { side: Side::Bottom, label: "" }.draw(&mut drawing, &plot, below);
    let beside = [0.0, f64::from(most)];
    let beside =
        beside.map(|count| Tick { at: y.at(count), label: format!("{count:.0}"), line: None });
    Axis { side: Side::Left, label: "" }.draw(&mut drawing, &plot, beside);
    Some(drawing.finish())
}
