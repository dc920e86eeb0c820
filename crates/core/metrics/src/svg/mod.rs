//! Draws the roofline as a self-contained SVG. The same roofline always gives the same bytes.
//!
//! Both axes are logarithmic: operations per byte, and operations per second. Slanted lines are the
//! limits of memory levels, horizontal lines those of precisions, and marks show the kernel. All
//! text is escaped, because it contains names from users. The SVG contains no scripts and loads
//! nothing.

use std::fmt::Write as _;

use super::roofline::{Ceiling, Level, MemoryRoof, Precision, Roofline, RooflinePoint};
pub use warpgauge_svg::si;
use warpgauge_svg::{
    Anchor, Axis, Drawing, Logarithmic, Plot, Side, SvgElement, Tick, power_of_ten, shortened,
};

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
/// Space below the plot for ticks, the axis's name, and the legend.
const BOTTOM: f64 = 132.0;

/// Area of the drawing that contains the plot.
const PLOT: Plot = Plot { left: LEFT, top: TOP, right: WIDTH - RIGHT, bottom: HEIGHT - BOTTOM };

/// Maximum number of marks. There are never more pairs of precisions and levels.
const MAX_POINTS: usize = 27;

const STYLE: &str = "\
.bg{fill:#ffffff}.ink{fill:#1a1a1a}.dim{fill:#5c5c5c}.grid{stroke:#e2e2e2;stroke-width:1}\
.axis{stroke:#5c5c5c;stroke-width:1;fill:none}.roof{stroke-width:2;fill:none}\
.l1{stroke:#0b7a4b;fill:#0b7a4b}.l2{stroke:#b35900;fill:#b35900}.dram{stroke:#1f5fbf;fill:#1f5fbf}\
.peak{stroke:#7a3fb0;fill:#7a3fb0}.mark{stroke-width:1.5;fill-opacity:.75}\
text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:12px;stroke:none}\
.title{font-size:15px;font-weight:600}.small{font-size:11px}\
@media(prefers-color-scheme:dark){.bg{fill:#14161a}.ink{fill:#ececec}.dim{fill:#a8a8a8}\
.grid{stroke:#2c3036}.axis{stroke:#a8a8a8}.l1{stroke:#4fd39a;fill:#4fd39a}\
.l2{stroke:#ffb366;fill:#ffb366}.dram{stroke:#7fb0ff;fill:#7fb0ff}.peak{stroke:#cf9bff;fill:#cf9bff}}";

/// Maximum lengths of names in characters: of the kernel, which has large letters, and of the
/// device and the tool, which share a line with the bound.
const MAX_KERNEL: usize = 96;
const MAX_NAME: usize = 40;

/// Texts above the plot.
#[derive(Debug, Clone, Copy)]
pub struct Caption<'a> {
    pub kernel: &'a str,
    pub device: &'a str,
    /// Source of the metrics, e.g. `CUPTI 13.0.85`.
    pub tool: &'a str,
}

/// Draws a roofline as a complete SVG document.
pub fn render(roofline: &Roofline, caption: Caption<'_>) -> String {
    let description = format!("{}; {}", bound(roofline), roofline.bound_reason);
    let title = format!("Roofline of {}", caption.kernel);
    let mut drawing = Drawing::described([WIDTH, HEIGHT], &title, &description);
    drawing.style(STYLE);
    draw(drawing, roofline, caption)
}

/// Draws a roofline for a page whose style sheet defines the classes `bg`, `ink`, `dim`, `title`, `small`, `grid`,
/// `axis`, `roof`, `l1`, `l2`, `dram`, `peak` and `mark`.
pub fn render_in_page(roofline: &Roofline, caption: Caption<'_>) -> String {
    let title = format!("Roofline of {}: {}", caption.kernel, bound(roofline));
    draw(Drawing::new([WIDTH, HEIGHT], &title), roofline, caption)
}

fn bound(roofline: &Roofline) -> &'static str {
    roofline.bound_by.map_or("the limit is not known", |bound| bound.sentence())
}

fn draw(mut drawing: Drawing, roofline: &Roofline, caption: Caption<'_>) -> String {
    heading(&mut drawing, roofline, caption);
    let x = Logarithmic::new(&intensities(roofline), (PLOT.left, PLOT.right));
    let y = Logarithmic::new(&rates(roofline), (PLOT.bottom, PLOT.top));
    match (x, y) {
        (Some(x), Some(y)) => {
            grid(&mut drawing, &x, Some(&y));
            roofs(&mut drawing, roofline, &x, &y);
            for point in roofline.points.iter().take(MAX_POINTS) {
                mark(&mut drawing, point, &x, &y);
            }
        }
        (Some(x), None) => {
            grid(&mut drawing, &x, None);
            for (row, point) in roofline.points.iter().take(MAX_POINTS).enumerate() {
                bar(&mut drawing, point, row, &x);
            }
        }
        (None, _) => empty(&mut drawing, roofline),
    }
    legend(&mut drawing, roofline);
    drawing.finish()
}

fn heading(drawing: &mut Drawing, roofline: &Roofline, caption: Caption<'_>) {
    let Caption { kernel, device, tool } = caption;
    drawing.add(SvgElement::rectangle("bg", [0.0, 0.0], [WIDTH, HEIGHT]));
    drawing.add(SvgElement::text("ink title", [LEFT, 26.0], &shortened(kernel, MAX_KERNEL)));
    let names = [device, tool].map(|name| shortened(name, MAX_NAME));
    let known = names.iter().map(String::as_str).filter(|name| !name.is_empty());
    let line = known.chain([bound(roofline)]).collect::<Vec<_>>().join(" · ");
    drawing.add(SvgElement::text("dim", [LEFT, 46.0], &line));
}

/// Returns the intensities that the axis must cover, including the ridges of the roofs.
fn intensities(roofline: &Roofline) -> Vec<f64> {
    let mut all: Vec<f64> = roofline.points.iter().map(|point| point.intensity).collect();
    for (compute, memory) in pairs(roofline) {
        all.push(compute / memory);
    }
    all
}

/// Returns the rates that the axis must cover; empty if none is known.
fn rates(roofline: &Roofline) -> Vec<f64> {
    let points = roofline.points.iter().filter_map(|point| point.rate);
    let peaks = roofline.compute.iter().filter_map(|roof| Some(roof.ceiling.as_ref()?.per_second));
    points.chain(peaks).collect()
}

/// Returns pairs of the ceilings of every precision and every level.
fn pairs(roofline: &Roofline) -> Vec<(f64, f64)> {
    let compute = roofline.compute.iter().filter_map(|roof| roof.ceiling.as_ref());
    let memory: Vec<f64> =
        roofline.memory.iter().filter_map(|roof| Some(roof.ceiling.as_ref()?.per_second)).collect();
    compute.flat_map(|c| memory.iter().map(move |m| (c.per_second, *m))).collect()
}

fn grid(drawing: &mut Drawing, x: &Logarithmic, y: Option<&Logarithmic>) {
    let below = x.ticks().map(|(exponent, at)| (power_of_ten(exponent), at));
    let beside = y.into_iter().flat_map(Logarithmic::ticks);
    let beside = beside.map(|(exponent, at)| (si(10f64.powi(exponent), "OP/s"), at));
    let tick = |(label, at)| Tick { at, label, line: Some("grid") };
    let label = "dim small";
    Axis { side: Side::Bottom, label }.draw(drawing, &PLOT, below.map(tick));
    Axis { side: Side::Left, label }.draw(drawing, &PLOT, beside.map(tick));
    drawing.add(PLOT.vertical("axis", PLOT.left));
    drawing.add(PLOT.horizontal("axis", PLOT.bottom));
    let place = [(PLOT.left + PLOT.right) / 2.0, PLOT.bottom + 36.0];
    let name = "arithmetic intensity, operations per byte of the level";
    drawing.add(SvgElement::text("ink", place, name).anchored(Anchor::Middle));
}

/// Draws the slanted lines up to the highest ceiling, and the horizontal lines from the first ridge
/// on.
fn roofs(drawing: &mut Drawing, roofline: &Roofline, x: &Logarithmic, y: &Logarithmic) {
    let highest = roofline
        .compute
        .iter()
        .filter_map(|roof| Some(roof.ceiling.as_ref()?.per_second))
        .max_by(f64::total_cmp);
    let mut widest: f64 = 0.0;
    for roof in &roofline.memory {
        let Some(ceiling) = &roof.ceiling else { continue };
        widest = widest.max(ceiling.per_second);
        // The line starts where it enters the plot, and ends at its ridge or where it leaves the
        // plot.
        let from = x.low().max(y.low() / ceiling.per_second);
        let to = x.high().min(highest.unwrap_or(y.high()).min(y.high()) / ceiling.per_second);
        if from >= to {
            continue;
        }
        let place = |intensity: f64| [x.at(intensity), y.at(intensity * ceiling.per_second)];
        let rate = si(ceiling.per_second, "B/s");
        let title = format!("{} {rate}: {}", roof.level.label(), ceiling.derivation);
        let class = format!("roof {}", class(roof.level));
        drawing.add(SvgElement::line(&class, place(from), place(to)).titled(&title));
    }
    for (labels, ceiling) in peaks(roofline) {
        let ridge = if widest > 0.0 { ceiling.per_second / widest } else { x.low() };
        let (from, height) = (x.at(ridge.clamp(x.low(), x.high())), y.at(ceiling.per_second));
        let line = SvgElement::line("roof peak", [from, height], [PLOT.right, height]);
        drawing.add(line.titled(&ceiling.derivation));
        let label = format!("{labels} {}", si(ceiling.per_second, "OP/s"));
        let label = SvgElement::text("dim small", [PLOT.right - 4.0, height - 4.0], &label);
        drawing.add(label.anchored(Anchor::End));
    }
}

/// Returns the ceilings of arithmetic with their precisions; equal ceilings share a line.
fn peaks(roofline: &Roofline) -> Vec<(String, &Ceiling)> {
    let mut lines: Vec<(String, &Ceiling)> = Vec::new();
    for roof in &roofline.compute {
        let Some(ceiling) = &roof.ceiling else { continue };
        let label = roof.precision.label();
        match lines.iter_mut().find(|(_, known)| known.per_second == ceiling.per_second) {
            Some((labels, _)) => {
                labels.push_str(", ");
                labels.push_str(label);
            }
            None => lines.push((label.to_owned(), ceiling)),
        }
    }
    lines
}

fn mark(drawing: &mut Drawing, point: &RooflinePoint, x: &Logarithmic, y: &Logarithmic) {
    let Some(rate) = point.rate else { return };
    let shape = shape(point.precision, x.at(point.intensity), y.at(rate));
    let class = format!("mark {}", class(point.level));
    drawing.add(SvgElement::path(&class, &shape).titled(&describe(point)));
}

/// Draws the intensity of a mark as a row, if there are no rates.
fn bar(drawing: &mut Drawing, point: &RooflinePoint, row: usize, x: &Logarithmic) {
    let height = TOP + 24.0 + 13.0 * row as f64;
    let at = x.at(point.intensity);
    let level = class(point.level);
    drawing.add(SvgElement::line(&format!("roof {level}"), [LEFT, height], [at, height]));
    let shape = shape(point.precision, at, height);
    drawing.add(SvgElement::path(&format!("mark {level}"), &shape).titled(&describe(point)));
    let label = format!("{} on {}", point.precision.label(), point.level.label());
    drawing.add(SvgElement::text("dim small", [LEFT + 6.0, height - 3.0], &label));
}

fn describe(point: &RooflinePoint) -> String {
    let mut text = format!(
        "{} on {}: {:.4} operations/byte",
        point.precision.label(),
        point.level.label(),
        point.intensity
    );
    if let Some(rate) = point.rate {
        let _ = write!(text, ", {}", si(rate, "OP/s"));
    }
    if let Some(fraction) = point.fraction {
        let _ = write!(text, ", {:.1} % of the attainable rate", 100.0 * fraction);
    }
    text
}

fn empty(drawing: &mut Drawing, roofline: &Roofline) {
    let text = match roofline.compute.iter().any(|roof| roof.operations.is_some()) {
        true => "no floating-point operations: nothing to draw",
        false => "the operations are not among the metrics: nothing to draw",
    };
    let text = SvgElement::text("dim", [WIDTH / 2.0, HEIGHT / 2.0], text);
    drawing.add(text.anchored(Anchor::Middle));
}

/// Draws the legend: levels by colour with their traffic, precisions by shape.
fn legend(drawing: &mut Drawing, roofline: &Roofline) {
    let (mut at, row) = (LEFT, HEIGHT - 64.0);
    for roof in &roofline.memory {
        drawing.add(SvgElement::rectangle(class(roof.level), [at, row - 10.0], [12.0, 12.0]));
        drawing.add(SvgElement::text("ink", [at + 18.0, row], &moved(roof)));
        at += 220.0;
    }
    let (mut at, row) = (LEFT, HEIGHT - 42.0);
    let used = roofline.compute.iter().filter(|roof| roof.operations.is_some_and(|n| n > 0.0));
    for roof in used {
        drawing.add(SvgElement::path("axis", &shape(roof.precision, at + 6.0, row - 4.0)));
        drawing.add(SvgElement::text("ink", [at + 18.0, row], roof.precision.label()));
        at += 104.0;
    }
    if let Some(note) = roofline.notes.first() {
        drawing.add(SvgElement::text("dim small", [LEFT, HEIGHT - 18.0], note));
    }
}

/// Formats the traffic of a memory level for the legend.
fn moved(roof: &MemoryRoof) -> String {
    let moved = match (roof.rate, roof.bytes) {
        (Some(rate), _) => si(rate, "B/s"),
        (None, Some(bytes)) => si(bytes, "B"),
        (None, None) => "not known".to_owned(),
    };
    let used = roof.fraction.map_or(String::new(), |part| format!(" ({:.0} %)", 100.0 * part));
    format!("{} {moved}{used}", roof.level.label())
}

fn class(level: Level) -> &'static str {
    match level {
        Level::L1 => "l1",
        Level::L2 => "l2",
        Level::Dram => "dram",
    }
}

/// Returns the path of the mark for a precision, centred at a point.
fn shape(precision: Precision, x: f64, y: f64) -> String {
    const R: f64 = 5.5;
    match precision {
        Precision::Fp32 => {
            format!("M{:.1} {y:.1}a{R} {R} 0 1 0 {d} 0a{R} {R} 0 1 0 -{d} 0z", x - R, d = 2.0 * R)
        }
        Precision::Fp64 => {
            format!("M{:.1} {:.1}h{d}v{d}h-{d}z", x - R, y - R, d = 2.0 * R)
        }
        Precision::Fp16 => {
            format!("M{x:.1} {:.1}l{R} {d}h-{d}z", y - R, d = 2.0 * R)
        }
        _ => format!("M{x:.1} {:.1}l{R} {R}l-{R} {R}l-{R} -{R}z", y - R),
    }
}

#[cfg(test)]
mod tests;
