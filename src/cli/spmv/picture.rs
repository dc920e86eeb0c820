//! Draws the times of products as an SVG picture: a bar for each matrix, on a logarithmic axis. The
//! picture contains no scripts and loads nothing.

use super::row::Row;
use crate::cli::format::duration_ms;
use warpgauge_model::DeviceKind;
use warpgauge_svg::{
    Anchor, Axis, Drawing, Logarithmic, Plot, Side, SvgElement, Tick, shortened, si,
};

/// Maximum number of matrices in one picture.
const MAX_ROWS: usize = 200;
/// Dimensions of the parts of the picture, pixels.
const WIDTH: f64 = 820.0;
const LEFT: f64 = 260.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 54.0;
const BOTTOM: f64 = 30.0;
const STEP: f64 = 22.0;
/// Height of the library's bar, including the space below it.
const OTHER: f64 = 9.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#444}.t{font-weight:600}\
.frame{fill:none;stroke:#bbb}.grid{stroke:#e5e5e5}.bar{fill:#1f5fa8}.ci{stroke:#111;stroke-width:1.5}\
.bad{fill:#c62828}.other{fill:#b0b6bd}";

/// Draws the median time of each product with its confidence interval. The library's time is drawn
/// below it. If a product has no time, the verdict is shown.
pub(super) fn svg(rows: &[Row]) -> String {
    let shown = &rows[..rows.len().min(MAX_ROWS)];
    let compared = rows.iter().any(|row| row.against.is_some());
    let step = if compared { STEP + OTHER } else { STEP };
    let bottom = TOP + step * shown.len() as f64;
    let title = "Sparse matrix times vector: median time of a launch";
    let mut drawing = Drawing::new([WIDTH, bottom + BOTTOM], title);
    drawing.style(STYLE);
    drawing.add(SvgElement::text("t", [20.0, 20.0], title));
    drawing.add(SvgElement::text("", [20.0, 36.0], &conditions(rows)));
    let plot = Plot { left: LEFT, top: TOP, right: WIDTH - RIGHT, bottom };
    // The axis begins at a third of the shortest time, so that the shortest bar is visible.
    let others = shown.iter().filter_map(theirs);
    let seconds: Vec<f64> =
        shown.iter().filter_map(|row| row.median_ms).chain(others).map(|ms| ms / 1e3).collect();
    let ends: Vec<f64> = seconds.iter().flat_map(|&it| [it / 3.0, it]).collect();
    let scale = Logarithmic::new(&ends, (plot.left, plot.right));
    if let Some(scale) = &scale {
        let tick =
            |(exponent, at)| Tick { at, label: si(10f64.powi(exponent), "s"), line: Some("grid") };
        Axis { side: Side::Bottom, label: "" }.draw(&mut drawing, &plot, scale.ticks().map(tick));
    }
    drawing.add(plot.frame("frame"));
    for (index, row) in shown.iter().enumerate() {
        let top = TOP + step * index as f64;
        let label = shortened(&row.matrix, 36);
        let beside = [LEFT - 8.0, top + 15.0];
        drawing.add(SvgElement::text("", beside, &label).anchored(Anchor::End).titled(&row.matrix));
        match (row.median_ms, &scale) {
            (Some(ms), Some(scale)) => bar(&mut drawing, row, ms, scale, top),
            _ => drawing.add(SvgElement::text("bad", [LEFT + 6.0, top + 15.0], row.verdict)),
        }
        if let (Some(ms), Some(scale)) = (theirs(row), &scale) {
            other(&mut drawing, ms, scale, top + STEP - 3.0);
        }
    }
    drawing.finish()
}

fn bar(drawing: &mut Drawing, row: &Row, ms: f64, scale: &Logarithmic, top: f64) {
    let end = scale.at(ms / 1e3);
    let size = [(end - LEFT).max(1.0), STEP - 6.0];
    let times = row.times().map_or(String::new(), |times| format!(", {times:.2} x"));
    let shown = format!("{}{times}", duration_ms(ms));
    drawing.add(SvgElement::rectangle("bar", [LEFT, top + 3.0], size).titled(&shown));
    if let Some([low, high]) = row.ci_ms.filter(|[low, _]| *low > 0.0) {
        let at = top + STEP / 2.0;
        let [low, high] = [low, high].map(|ms| [scale.at(ms / 1e3), at]);
        drawing.add(SvgElement::line("ci", low, high));
    }
    drawing.add(SvgElement::text("", [end + 8.0, top + 15.0], &shown));
}

/// Returns the median time of the library, milliseconds.
fn theirs(row: &Row) -> Option<f64> {
    row.against.as_ref().and_then(|one| one.median_ms)
}

fn other(drawing: &mut Drawing, ms: f64, scale: &Logarithmic, top: f64) {
    let size = [(scale.at(ms / 1e3) - LEFT).max(1.0), OTHER - 2.0];
    let title = format!("cuSPARSE: {}", duration_ms(ms));
    drawing.add(SvgElement::rectangle("other", [LEFT, top], size).titled(&title));
}

/// Returns the text that describes the device and the library.
fn conditions(rows: &[Row]) -> String {
    let device = rows.iter().find_map(|row| row.device.as_deref()).unwrap_or("no kernel ran");
    let emulated = rows.iter().any(|row| row.device_kind == Some(DeviceKind::Emulator));
    let what =
        if emulated { ": times on the emulator, which do not predict those on a GPU" } else { "" };
    let beside = match rows.iter().any(|row| row.against.is_some()) {
        true => "; grey: cuSPARSE",
        false => "",
    };
    format!("{device}{what}; 95 % confidence intervals{beside}")
}
