//! A chart of the time ratio of two kernels in each block.

use std::fmt::Write as _;

use warpgauge_statistics::paired::PairedComparison;
use warpgauge_svg::{Axis, Drawing, Linear, Side, SvgElement, Tick};

use super::{WIDTH, plot};

const HEIGHT: f64 = 220.0;
/// The maximum number of blocks that are drawn.
const MAX_BLOCKS: usize = 2_000;

/// Draws the time ratio of each block in order, with the confidence interval of the whole
/// comparison and the margin. Returns `None` if no block has a ratio.
pub(crate) fn ratios(comparison: &PairedComparison) -> Option<String> {
    let blocks = &comparison.blocks[..comparison.blocks.len().min(MAX_BLOCKS)];
    let ratios = || blocks.iter().filter_map(|block| block.time_ratio).filter(|r| r.is_finite());
    let low = ratios().min_by(f64::total_cmp)?.min(1.0 - 2.0 * comparison.margin);
    let high = ratios().max_by(f64::total_cmp)?.max(1.0 + 2.0 * comparison.margin);
    let plot = plot(HEIGHT);
    let room = 0.05 * (high - low);
    let x = Linear::new((-1.0, blocks.len() as f64), (plot.left, plot.right));
    let y = Linear::new((low - room, high + room), (plot.bottom, plot.top));
    let mut drawing =
        Drawing::new([WIDTH, HEIGHT], "Time of the candidate over time of the reference, by block");
    let across = plot.right - plot.left;
    let band =
        |from: f64, to: f64| ([plot.left, y.at(to)], [across, (y.at(from) - y.at(to)).max(1.0)]);
    let (corner, size) = band(1.0 - comparison.margin, 1.0 + comparison.margin);
    drawing.add(SvgElement::rectangle("margin", corner, size).titled("the margin"));
    if let Some(time) = &comparison.time {
        let (corner, size) = band(time.ci_low, time.ci_high);
        drawing.add(SvgElement::rectangle("band", corner, size).titled("confidence interval"));
    }
    let ticks = y.ticks(5).map(|(ratio, at)| {
        let label = format!("{:+.1} %", 100.0 * (ratio - 1.0));
        Tick { at, label, line: Some("grid") }
    });
    Axis { side: Side::Left, label: "" }.draw(&mut drawing, &plot, ticks);
    drawing.add(plot.horizontal("axis", y.at(1.0)).titled("same time as the reference"));
    let (mut kept, mut dropped) = (String::new(), String::new());
    for (index, block) in blocks.iter().enumerate() {
        let Some(ratio) = block.time_ratio.filter(|ratio| ratio.is_finite()) else { continue };
        let (x, y) = (x.at(index as f64), y.at(ratio));
        let _ = match block.dropped {
            None => write!(kept, "M{x:.1} {y:.1}h0"),
            Some(_) => write!(dropped, "M{:.1} {:.1}l6 6m0 -6l-6 6", x - 3.0, y - 3.0),
        };
    }
    drawing.add(SvgElement::path("dots", &kept).titled("blocks that count"));
    if !dropped.is_empty() {
        drawing.add(SvgElement::path("dropped", &dropped).titled("blocks that do not count"));
    }
    let ends = [0, blocks.len().saturating_sub(1)];
    let below =
        ends.map(|at| Tick { at: x.at(at as f64), label: format!("block {}", at + 1), line: None });
    Axis { side: Side::Bottom, label: "" }.draw(&mut drawing, &plot, below);
    Some(drawing.finish())
}
