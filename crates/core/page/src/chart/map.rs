//! Places of mismatches in a tensor.

use warpgauge_svg::{Anchor, Drawing, Linear, SvgElement};
use warpgauge_validate::Mismatch;

use super::WIDTH;

/// Largest and smallest sides of the tensor in the drawing, pixels.
const MOST: [f64; 2] = [400.0, 240.0];
const LEAST: f64 = 24.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 24.0;
/// Smallest side of a mark, pixels.
const MARK: f64 = 5.0;

/// Draws the listed mismatches in the plane of the last two dimensions, a tensor of one dimension as one row.
/// `None`: the shape is not known or does not fit the indices.
pub(crate) fn first_places(shape: &[u64], mismatches: &[Mismatch]) -> Option<String> {
    if shape.is_empty() || shape.contains(&0) || mismatches.is_empty() {
        return None;
    }
    let columns = *shape.last()?;
    let rows = if shape.len() > 1 { shape[shape.len() - 2] } else { 1 };
    let [width, height] = size(rows, columns);
    let mut drawing =
        Drawing::new([WIDTH, TOP + height + 32.0], "Places of the first mismatches in the tensor");
    drawing.add(SvgElement::rectangle("frame", [LEFT, TOP], [width, height]));
    let x = Linear::new((0.0, columns as f64), (LEFT, LEFT + width));
    let y = Linear::new((0.0, rows as f64), (TOP, TOP + height));
    let side = |scale: &Linear| (scale.at(1.0) - scale.at(0.0)).max(MARK);
    for mismatch in mismatches {
        if mismatch.index.len() != shape.len() {
            return None;
        }
        let column = *mismatch.index.last()? as f64;
        let row = mismatch.index.iter().rev().nth(1).copied().unwrap_or(0) as f64;
        let size = [side(&x), side(&y)];
        let corner = [
            x.at(column).min(LEFT + width - size[0]).max(LEFT),
            y.at(row).min(TOP + height - size[1]).max(TOP),
        ];
        let index = mismatch.index.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let title = format!("[{index}] is {}, expected {}", mismatch.actual, mismatch.expected);
        drawing.add(SvgElement::rectangle("wrong", corner, size).titled(&title));
    }
    let text = |at, label: String| SvgElement::text("", at, &label);
    drawing.add(text([LEFT, TOP - 8.0], "column 0".to_owned()));
    let last = format!("column {}", columns - 1);
    if columns > 1 {
        drawing.add(text([LEFT + width, TOP - 8.0], last).anchored(Anchor::End));
    }
    if rows > 1 {
        drawing.add(text([LEFT - 8.0, TOP + 12.0], "row 0".to_owned()).anchored(Anchor::End));
        let last = format!("{}", rows - 1);
        drawing.add(text([LEFT - 8.0, TOP + height], last).anchored(Anchor::End));
    }
    Some(drawing.finish())
}

/// Width and height of the tensor in the drawing: its proportions, as far as both sides can be seen.
fn size(rows: u64, columns: u64) -> [f64; 2] {
    let (rows, columns) = (rows as f64, columns as f64);
    let scale = (MOST[0] / columns).min(MOST[1] / rows);
    [(columns * scale).max(LEAST * 4.0), (rows * scale).max(LEAST)]
}
