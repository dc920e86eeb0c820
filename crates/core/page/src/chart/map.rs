//! Drawings of the positions of mismatches in a tensor: single mismatches, or their density.

use std::ops::Range;

use warpgauge_svg::{Anchor, Drawing, Linear, SvgElement};
use warpgauge_validate::{Mismatch, MismatchMap};

use crate::text;

use super::WIDTH;

/// The maximum width and height, and the minimum height, of the tensor in the drawing, in pixels.
const MOST: [f64; 2] = [400.0, 240.0];
const LEAST: f64 = 24.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 24.0;
/// The minimum side length of a mark, in pixels.
const MARK: f64 = 5.0;
/// The maximum number of cells on a side of a map, and the maximum side length of a cell, in
/// pixels.
const MAX_CELLS: usize = 64;
const CELL: f64 = 24.0;
/// The number of steps in which the share of wrong elements in a cell is shown.
const STEPS: f64 = 4.0;

/// Draws the listed mismatches in the plane of the last two dimensions. A tensor with one dimension
/// is drawn as one row. Returns `None` if the shape is unknown or does not match the indices.
pub(crate) fn first_places(shape: &[u64], mismatches: &[Mismatch]) -> Option<String> {
    if shape.is_empty() || shape.contains(&0) || mismatches.is_empty() {
        return None;
    }
    let columns = *shape.last()?;
    let rows = if shape.len() > 1 { shape[shape.len() - 2] } else { 1 };
    let [width, height] = size(rows, columns);
    let mut drawing = Drawing::new(
        [WIDTH, TOP + height + 32.0],
        "Positions of the first mismatches in the tensor",
    );
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
    edges(&mut drawing, [width, height], [rows, columns]);
    Some(drawing.finish())
}

/// Draws the share of wrong elements in each cell of a map. Returns `None` if the map is empty, too
/// large or irregular, or has more cells on a side than the matrix has rows or columns.
pub(crate) fn density(map: &MismatchMap) -> Option<String> {
    let [rows, columns] = map.matrix;
    let (down, across) = (map.counts.len(), map.counts.first()?.len());
    let fits = |cells: usize, side: u64| (1..=MAX_CELLS).contains(&cells) && cells as u64 <= side;
    let is_regular = map.counts.iter().all(|counts| counts.len() == across);
    if !fits(down, rows) || !fits(across, columns) || !is_regular {
        return None;
    }
    let cell = (MOST[0] / across as f64).min(MOST[1] / down as f64).min(CELL);
    let size = [(cell * across as f64).max(LEAST * 4.0), (cell * down as f64).max(LEAST)];
    let sides = [size[0] / across as f64, size[1] / down as f64];
    let title = "Share of wrong elements by place in the output";
    let mut drawing = Drawing::new([WIDTH, TOP + size[1] + 32.0], title);
    for (row, counts) in map.counts.iter().enumerate() {
        for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let all = map.elements(row, column).max(1);
            let share = (*count as f64 / all as f64).min(1.0);
            let class = format!("cell e{:.0}", (share * STEPS).ceil().clamp(1.0, STEPS));
            let corner = [LEFT + sides[0] * column as f64, TOP + sides[1] * row as f64];
            let place = map.place(row, column).map(|span| indices(&span));
            let label = format!(
                "rows {}, columns {}: {} of {} elements wrong",
                place[0],
                place[1],
                text::grouped(*count),
                text::grouped(all)
            );
            drawing.add(SvgElement::rectangle(&class, corner, sides).titled(&label));
        }
    }
    drawing.add(SvgElement::rectangle("outline", [LEFT, TOP], size));
    edges(&mut drawing, size, [rows, columns]);
    Some(drawing.finish())
}

/// Formats the first and last index of a span: `32 to 63`.
fn indices(span: &Range<u64>) -> String {
    let last = span.end.saturating_sub(1);
    if span.start == last { last.to_string() } else { format!("{} to {last}", span.start) }
}

/// Labels the first and last row and column of a tensor.
fn edges(drawing: &mut Drawing, [width, height]: [f64; 2], [rows, columns]: [u64; 2]) {
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
}

/// Returns the width and height of the tensor in the drawing. They keep its proportions unless one
/// of them would be too small to see.
fn size(rows: u64, columns: u64) -> [f64; 2] {
    let (rows, columns) = (rows as f64, columns as f64);
    let scale = (MOST[0] / columns).min(MOST[1] / rows);
    [(columns * scale).max(LEAST * 4.0), (rows * scale).max(LEAST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_a_cell_for_each_place_with_mismatches() {
        // 64 × 128 elements; the last row of cells is wrong, the first of them half.
        let mut counts = vec![vec![0; 32]; 32];
        counts[31] = vec![8; 32];
        counts[31][0] = 4;
        let map = MismatchMap { matrix: [64, 128], counts };
        let svg = density(&map).unwrap();
        assert_eq!(svg.matches("class=\"cell ").count(), 32);
        assert_eq!(svg.matches("class=\"cell e4\"").count(), 31);
        assert!(svg.contains("rows 62 to 63, columns 0 to 3: 4 of 8 elements wrong"), "{svg}");
        assert!(svg.contains("column 127") && svg.contains(">63<"), "{svg}");
    }

    #[test]
    fn a_map_that_contradicts_itself_is_not_drawn() {
        let map = |matrix, counts| density(&MismatchMap { matrix, counts });
        assert!(map([4, 4], vec![]).is_none());
        assert!(map([4, 4], vec![vec![]]).is_none());
        assert!(map([4, 4], vec![vec![1, 1], vec![1]]).is_none());
        assert!(map([1, 1], vec![vec![1, 1]]).is_none());
        assert!(map([1, u64::MAX], vec![vec![1; 65]]).is_none());
        assert!(map([u64::MAX, u64::MAX], vec![vec![u64::MAX; 2]; 2]).is_some());
    }
}
