//! The roofline as a picture: one self-contained SVG, the same bytes for the same roofline.
//!
//! Both axes are logarithmic: operations per byte, and operations per second. Slanted lines are
//! what the levels of the memory allow, level ones what the precisions allow, and the marks are the
//! kernel. Names come from kernels, so all text is escaped; there is no script and nothing is
//! fetched. Pure.

mod scale;
mod text;

use std::fmt::Write as _;

use super::roofline::{Ceiling, Level, Precision, Roofline, RooflinePoint};
use scale::Scale;
pub use text::si;
use text::{escape, power};

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
/// Below the plot: ticks, the axis' name, and the legend.
const BOTTOM: f64 = 132.0;

/// Most marks drawn: precisions times levels are fewer.
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

/// What stands above the plot.
#[derive(Debug, Clone, Copy)]
pub struct Caption<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// The device's name.
    pub device: &'a str,
    /// What told the metrics, e.g. `CUPTI 13.0.85`.
    pub tool: &'a str,
}

/// Draws a roofline.
pub fn render(roofline: &Roofline, caption: Caption<'_>) -> String {
    let mut out = String::with_capacity(16 << 10);
    open(&mut out, roofline, caption);
    let x = Scale::new(intensities(roofline), (LEFT, WIDTH - RIGHT));
    let y = Scale::new(rates(roofline), (HEIGHT - BOTTOM, TOP));
    match (x, y) {
        (Some(x), Some(y)) => {
            grid(&mut out, &x, Some(&y));
            roofs(&mut out, roofline, &x, &y);
            for point in roofline.points.iter().take(MAX_POINTS) {
                mark(&mut out, point, &x, &y);
            }
        }
        (Some(x), None) => {
            grid(&mut out, &x, None);
            for (row, point) in roofline.points.iter().take(MAX_POINTS).enumerate() {
                bar(&mut out, point, row, &x);
            }
        }
        (None, _) => empty(&mut out, roofline),
    }
    legend(&mut out, roofline);
    out.push_str("</svg>\n");
    out
}

fn open(out: &mut String, roofline: &Roofline, caption: Caption<'_>) {
    let (kernel, device, tool) =
        (escape(caption.kernel), escape(caption.device), escape(caption.tool));
    let bound = roofline.bound_by.map_or("what limits it is not known", |bound| bound.sentence());
    let bound = escape(bound);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"t d\">\
         <title id=\"t\">Roofline of {kernel}</title>\
         <desc id=\"d\">{bound}; {reason}</desc><style>{STYLE}</style>\
         <rect class=\"bg\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\
         <text class=\"ink title\" x=\"{LEFT}\" y=\"26\">{kernel}</text>\
         <text class=\"dim\" x=\"{LEFT}\" y=\"46\">{device} · {tool} · {bound}</text>",
        reason = escape(&roofline.bound_reason),
    );
}

/// What the intensities span, the ridges of the roofs included.
fn intensities(roofline: &Roofline) -> Vec<f64> {
    let mut all: Vec<f64> = roofline.points.iter().map(|point| point.intensity).collect();
    for (compute, memory) in pairs(roofline) {
        all.push(compute / memory);
    }
    all
}

/// What the rates span; nothing where none is known.
fn rates(roofline: &Roofline) -> Vec<f64> {
    let points = roofline.points.iter().filter_map(|point| point.rate);
    let peaks = roofline.compute.iter().filter_map(|roof| Some(roof.ceiling.as_ref()?.per_second));
    points.chain(peaks).collect()
}

/// Ceilings of every precision and every level.
fn pairs(roofline: &Roofline) -> Vec<(f64, f64)> {
    let compute = roofline.compute.iter().filter_map(|roof| roof.ceiling.as_ref());
    let memory: Vec<f64> =
        roofline.memory.iter().filter_map(|roof| Some(roof.ceiling.as_ref()?.per_second)).collect();
    compute.flat_map(|c| memory.iter().map(move |m| (c.per_second, *m))).collect()
}

fn grid(out: &mut String, x: &Scale, y: Option<&Scale>) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for (exponent, at) in x.ticks() {
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {TOP:.1}V{bottom:.1}\"/>\
             <text class=\"dim small\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            power(exponent)
        );
    }
    for (exponent, at) in y.into_iter().flat_map(Scale::ticks) {
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT:.1} {at:.1}H{right:.1}\"/>\
             <text class=\"dim small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            si(10f64.powi(exponent), "OP/s")
        );
    }
    let _ = writeln!(
        out,
        "<path class=\"axis\" d=\"M{LEFT:.1} {TOP:.1}V{bottom:.1}H{right:.1}\"/>\
         <text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">\
         arithmetic intensity, operations per byte of the level</text>",
        (LEFT + right) / 2.0,
        bottom + 36.0
    );
}

/// The slanted lines up to the highest ceiling, and the level ones from the first ridge on.
fn roofs(out: &mut String, roofline: &Roofline, x: &Scale, y: &Scale) {
    let highest = roofline
        .compute
        .iter()
        .filter_map(|roof| Some(roof.ceiling.as_ref()?.per_second))
        .max_by(f64::total_cmp);
    let mut widest: f64 = 0.0;
    for roof in &roofline.memory {
        let Some(ceiling) = &roof.ceiling else { continue };
        widest = widest.max(ceiling.per_second);
        // From where the line enters the plot to its ridge, or to where it leaves.
        let from = x.low().max(y.low() / ceiling.per_second);
        let to = x.high().min(highest.unwrap_or(y.high()).min(y.high()) / ceiling.per_second);
        if from >= to {
            continue;
        }
        let _ = writeln!(
            out,
            "<path class=\"roof {}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"><title>{}</title></path>",
            class(roof.level),
            x.at(from),
            y.at(from * ceiling.per_second),
            x.at(to),
            y.at(to * ceiling.per_second),
            escape(&format!(
                "{} {}: {}",
                roof.level.label(),
                si(ceiling.per_second, "B/s"),
                ceiling.derivation
            ))
        );
    }
    for (labels, ceiling) in peaks(roofline) {
        let ridge = if widest > 0.0 { ceiling.per_second / widest } else { x.low() };
        let (from, height) = (x.at(ridge.clamp(x.low(), x.high())), y.at(ceiling.per_second));
        let right = WIDTH - RIGHT;
        let _ = writeln!(
            out,
            "<path class=\"roof peak\" d=\"M{from:.1} {height:.1}H{right:.1}\"><title>{}</title>\
             </path><text class=\"dim small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">\
             {labels} {}</text>",
            escape(&ceiling.derivation),
            right - 4.0,
            height - 4.0,
            si(ceiling.per_second, "OP/s")
        );
    }
}

/// Ceilings of arithmetic with the precisions they are of: those of the same height are one line.
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

fn mark(out: &mut String, point: &RooflinePoint, x: &Scale, y: &Scale) {
    let Some(rate) = point.rate else { return };
    let (at, height) = (x.at(point.intensity), y.at(rate));
    let _ = writeln!(
        out,
        "<path class=\"mark {}\" d=\"{}\"><title>{}</title></path>",
        class(point.level),
        shape(point.precision, at, height),
        escape(&describe(point))
    );
}

/// Without rates: how intense the kernel is, a row for each mark.
fn bar(out: &mut String, point: &RooflinePoint, row: usize, x: &Scale) {
    let height = TOP + 24.0 + 13.0 * row as f64;
    let at = x.at(point.intensity);
    let _ = writeln!(
        out,
        "<path class=\"roof {class}\" d=\"M{LEFT:.1} {height:.1}H{at:.1}\"/>\
         <path class=\"mark {class}\" d=\"{}\"><title>{}</title></path>\
         <text class=\"dim small\" x=\"{:.1}\" y=\"{:.1}\">{} on {}</text>",
        shape(point.precision, at, height),
        escape(&describe(point)),
        LEFT + 6.0,
        height - 3.0,
        point.precision.label(),
        point.level.label(),
        class = class(point.level),
    );
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
        let _ = write!(text, ", {:.1} % of what is attainable", 100.0 * fraction);
    }
    text
}

fn empty(out: &mut String, roofline: &Roofline) {
    let text = match roofline.compute.iter().any(|roof| roof.operations.is_some()) {
        true => "no floating-point operations: nothing to draw",
        false => "the operations are not among the metrics: nothing to draw",
    };
    let (x, y) = (WIDTH / 2.0, HEIGHT / 2.0);
    let _ = writeln!(
        out,
        "<text class=\"dim\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{text}</text>"
    );
}

/// Levels by colour with what they move, precisions by shape.
fn legend(out: &mut String, roofline: &Roofline) {
    let (mut at, row) = (LEFT, HEIGHT - 64.0);
    for roof in &roofline.memory {
        let moved = match (roof.rate, roof.bytes) {
            (Some(rate), _) => si(rate, "B/s"),
            (None, Some(bytes)) => si(bytes, "B"),
            (None, None) => "not known".to_owned(),
        };
        let used = roof.fraction.map_or(String::new(), |part| format!(" ({:.0} %)", 100.0 * part));
        let _ = writeln!(
            out,
            "<rect class=\"{}\" x=\"{at:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\"/>\
             <text class=\"ink\" x=\"{:.1}\" y=\"{row:.1}\">{} {moved}{used}</text>",
            class(roof.level),
            row - 10.0,
            at + 18.0,
            roof.level.label()
        );
        at += 220.0;
    }
    let (mut at, row) = (LEFT, HEIGHT - 42.0);
    let used = roofline.compute.iter().filter(|roof| roof.operations.is_some_and(|n| n > 0.0));
    for roof in used {
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"{}\"/>\
             <text class=\"ink\" x=\"{:.1}\" y=\"{row:.1}\">{}</text>",
            shape(roof.precision, at + 6.0, row - 4.0),
            at + 18.0,
            roof.precision.label()
        );
        at += 104.0;
    }
    let note = roofline.notes.first().map_or(String::new(), |note| escape(note));
    let (at, row) = (LEFT, HEIGHT - 18.0);
    let _ = writeln!(out, "<text class=\"dim small\" x=\"{at:.1}\" y=\"{row:.1}\">{note}</text>");
}

fn class(level: Level) -> &'static str {
    match level {
        Level::L1 => "l1",
        Level::L2 => "l2",
        Level::Dram => "dram",
    }
}

/// A precision's shape round a point.
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
