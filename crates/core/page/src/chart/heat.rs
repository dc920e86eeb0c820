//! A heat map of a measure over two axes.

use warpgauge_svg::{Anchor, Drawing, SvgElement, shortened};

use super::WIDTH;

/// The maximum number of columns and of rows.
const MAX_SIDE: usize = 40;
const LEFT: f64 = 120.0;
const TOP: f64 = 36.0;
const ROW: f64 = 28.0;
/// The maximum width of a column, and the minimum width of a column that shows numbers, in pixels.
const MAX_COLUMN: f64 = 96.0;
const WITH_TEXT: f64 = 56.0;
/// The number of steps of the scale. The darkest have light letters.
const STEPS: f64 = 5.0;
/// The maximum number of characters of a label.
const LABEL: usize = 14;

/// A cell, with its position and its value.
#[derive(Debug, Clone)]
pub(crate) struct HeatCell {
    pub column: usize,
    pub row: usize,
    /// A positive value; larger values are darker. If it is `None`, `label` is the reason.
    pub value: Option<f64>,
    pub label: String,
}

/// Draws cells with the column labels above and the row labels on the left. Returns `None` if there
/// are too many cells, or no cell has a value.
pub(crate) fn heat(
    title: &str,
    columns: &[String],
    rows: &[String],
    cells: &[HeatCell],
) -> Option<String> {
    let values =
        || cells.iter().filter_map(|cell| cell.value).filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
    if columns.len() > MAX_SIDE || rows.len() > MAX_SIDE {
        return None;
    }
    let width = ((WIDTH - LEFT - 8.0) / columns.len() as f64).min(MAX_COLUMN);
    let height = TOP + ROW * rows.len() as f64 + 8.0;
    let mut drawing = Drawing::new([WIDTH, height], title);
    for (index, label) in columns.iter().enumerate() {
        let at = [LEFT + width * (index as f64 + 0.5), TOP - 10.0];
        let text = SvgElement::text("", at, &shortened(label, LABEL));
        drawing.add(text.anchored(Anchor::Middle));
    }
    for (index, label) in rows.iter().enumerate() {
        let at = [LEFT - 8.0, TOP + ROW * (index as f64 + 0.5) + 4.0];
        drawing.add(SvgElement::text("", at, &shortened(label, LABEL)).anchored(Anchor::End));
    }
    for cell in cells {
        let corner = [LEFT + width * cell.column as f64, TOP + ROW * cell.row as f64];
        let class = match cell.value.filter(|v| v.is_finite() && *v > 0.0) {
            None => "cell h0".to_owned(),
            Some(value) => {
                // The scale is logarithmic, because the sizes in a sweep usually grow by factors.
                let part = (value / low).ln() / (high / low).ln();
                let part = if part.is_finite() { part } else { 1.0 };
                format!("cell h{:.0}", 1.0 + (part * (STEPS - 1.0)).round().clamp(0.0, STEPS - 1.0))
            }
        };
        let place = format!("{}, {}: {}", columns[cell.column], rows[cell.row], cell.label);
        drawing.add(SvgElement::rectangle(&class, corner, [width, ROW]).titled(&place));
        if width >= WITH_TEXT {
            let at = [corner[0] + width / 2.0, corner[1] + ROW / 2.0 + 4.0];
            let class =
                if class.ends_with("h4") || class.ends_with("h5") { "on-dark" } else { "ink" };
            drawing.add(
                SvgElement::text(class, at, &shortened(&cell.label, LABEL))
                    .anchored(Anchor::Middle),
            );
        }
    }
    Some(drawing.finish())
}
