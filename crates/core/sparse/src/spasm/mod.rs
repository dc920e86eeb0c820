//! The SPASM format: 4 × 4 blocks, each a sum of templates of four cells, grouped into tiles, and
//! its file format. The main type is [`Spasm`].
//!
//! A template is a 16-bit mask, in which bit `4 · row + column` represents that cell of a block. A
//! block is written with the fewest templates that cover it. Each template has a *position* and
//! four values, for its cells in the order of their bits. The value is 0 for cells that are not in
//! the block or that an earlier template of the block covers. Positions are grouped by tile, within
//! a tile by row of blocks, and then by column.
//!
//! A position is a 32-bit word. From the lowest bit, it contains: the column of the block within
//! its tile (13 bits); CE (1 for the last position of its block); the row of the block within its
//! tile (13 bits); RE (1 for the last position of its row of blocks within the tile); and the
//! template (4 bits).

use std::collections::HashMap;

use super::Csr;
use super::formats::FormatError;

mod file;

pub(crate) use file::MAGIC;
pub use file::SpasmError;

/// The number of rows and of columns of a tile.
pub const TILE: u32 = 1024;

/// The number of rows and of columns of a block.
const BLOCK: u32 = 4;

/// The number of cells of a template.
const CELLS: usize = 4;

/// The maximum number of templates, because their index has 4 bits.
const MAX_TEMPLATES: usize = 16;

/// The rows, columns, quadrants and wrapped diagonals of a block. Every block is the union of at
/// most four of them. Common patterns of stencils, bands and dense blocks need only a few.
const TEMPLATES: [u16; MAX_TEMPLATES] = [
    0x000f, 0x00f0, 0x0f00, 0xf000, // rows
    0x1111, 0x2222, 0x4444, 0x8888, // columns
    0x0033, 0x00cc, 0x3300, 0xcc00, // quadrants
    0x8421, 0x1842, 0x2184, 0x4218, // diagonals
];

/// A matrix in the SPASM format.
#[derive(Debug, Clone, PartialEq)]
pub struct Spasm {
    /// The numbers of rows and columns of the matrix.
    pub extents: (u32, u32),
    /// The number of rows and of columns of a tile.
    pub tile: u32,
    /// The number of non-zero entries.
    pub nnz: u64,
    pub templates: Vec<u16>,
    /// The row and column of each tile that has positions, counted in tiles.
    pub tiles: Vec<(u32, u32)>,
    /// The index of the first position of each tile, followed by the number of positions.
    pub ranges: Vec<u32>,
    /// The encoded positions, one 32-bit word each.
    pub positions: Vec<u32>,
    /// Four binary32 values for each position.
    pub values: Vec<f32>,
}

/// A block with the coordinates of its tile and its coordinates within the tile.
struct Placed {
    tile: (u32, u32),
    block: (u32, u32),
    cells: [f32; 16],
    mask: u16,
}

impl Spasm {
    /// Converts from CSR. Values are rounded to binary32, and zeros are dropped.
    ///
    /// # Errors
    /// Returns an error if the padded matrix would have more than
    /// [`MAX_PADDED`](super::formats::MAX_PADDED) elements.
    pub fn from_csr(csr: &Csr) -> Result<Self, FormatError> {
        Self::within(csr, super::formats::MAX_PADDED)
    }

    /// Converts from CSR, if the result has at most `most` elements. Values are rounded to
    /// binary32, and zeros are dropped.
    ///
    /// # Errors
    /// Returns an error if the padded matrix would have more than `most` elements.
    pub fn within(csr: &Csr, most: u64) -> Result<Self, FormatError> {
        let mut spasm = Self {
            extents: (csr.rows(), csr.cols()),
            tile: TILE,
            nnz: csr.values().iter().filter(|value| **value as f32 != 0.0).count() as u64,
            templates: TEMPLATES.to_vec(),
            tiles: Vec::new(),
            ranges: vec![0],
            positions: Vec::new(),
            values: Vec::new(),
        };
        let mut covers = HashMap::new();
        for first in (0..csr.rows()).step_by(TILE as usize) {
            let mut blocks = blocks_of(csr, first);
            blocks.sort_by_key(|placed| (placed.tile, placed.block));
            for (at, placed) in blocks.iter().enumerate() {
                let next = blocks.get(at + 1);
                spasm.add(placed, next, &mut covers);
                super::formats::check_padding("SPASM", spasm.values.len() as u64, csr.nnz(), most)?;
            }
        }
        Ok(spasm)
    }

    fn add(&mut self, placed: &Placed, next: Option<&Placed>, covers: &mut HashMap<u16, Vec<u8>>) {
        if self.tiles.last() != Some(&placed.tile) {
            self.tiles.push(placed.tile);
            self.ranges.push(self.positions.len() as u32);
        }
        let cover = covers.entry(placed.mask).or_insert_with(|| cover(placed.mask));
        let ends_row =
            next.is_none_or(|next| next.tile != placed.tile || next.block.0 != placed.block.0);
        let mut left = placed.mask;
        for (index, &template) in cover.iter().enumerate() {
            let mask = TEMPLATES[usize::from(template)];
            let last = index + 1 == cover.len();
            let word = placed.block.1
                | u32::from(last) << 13
                | placed.block.0 << 14
                | u32::from(last && ends_row) << 27
                | u32::from(template) << 28;
            self.positions.push(word);
            for cell in cells(mask) {
                let here = left & 1 << cell != 0;
                self.values.push(if here { placed.cells[cell] } else { 0.0 });
                left &= !(1 << cell);
            }
        }
        if let Some(end) = self.ranges.last_mut() {
            *end = self.positions.len() as u32;
        }
    }

    /// Converts to CSR.
    pub fn to_csr(&self) -> Csr {
        let (mut row_of, mut col_of, mut value_of) = (Vec::new(), Vec::new(), Vec::new());
        for (tile, range) in self.tiles.iter().zip(self.ranges.windows(2)) {
            for at in range[0] as usize..range[1] as usize {
                let position = Position::of(self.positions[at]);
                let row = tile.0 * self.tile + position.row * BLOCK;
                let column = tile.1 * self.tile + position.column * BLOCK;
                let mask = self.templates[position.template];
                for (cell, &value) in cells(mask).zip(&self.values[at * CELLS..]) {
                    if value != 0.0 {
                        row_of.push(row + cell as u32 / BLOCK);
                        col_of.push(column + cell as u32 % BLOCK);
                        value_of.push(f64::from(value));
                    }
                }
            }
        }
        Csr::from_entries(self.extents, &row_of, &col_of, &value_of)
    }
}

/// A decoded position.
struct Position {
    row: u32,
    column: u32,
    template: usize,
}

impl Position {
    fn of(word: u32) -> Self {
        let thirteen = (1 << 13) - 1;
        Self {
            column: word & thirteen,
            row: word >> 14 & thirteen,
            template: (word >> 28) as usize,
        }
    }
}

/// Returns the cells of a mask, in the order of their bits.
fn cells(mask: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |cell| mask & 1 << cell != 0)
}

/// Returns the blocks in one row of tiles.
fn blocks_of(csr: &Csr, first: u32) -> Vec<Placed> {
    let mut blocks: HashMap<(u32, u32), Placed> = HashMap::new();
    for row in first..(first + TILE).min(csr.rows()) {
        let (columns, values) = csr.row(row as usize);
        for (&column, &value) in columns.iter().zip(values) {
            let value = value as f32;
            if value == 0.0 {
                continue;
            }
            let placed = blocks.entry((row / BLOCK, column / BLOCK)).or_insert_with(|| Placed {
                tile: (row / TILE, column / TILE),
                block: (row % TILE / BLOCK, column % TILE / BLOCK),
                cells: [0.0; 16],
                mask: 0,
            });
            let cell = (row % BLOCK * BLOCK + column % BLOCK) as usize;
            placed.cells[cell] += value;
            placed.mask |= 1 << cell;
        }
    }
    blocks.into_values().collect()
}

/// Returns the smallest set of templates that covers a mask.
fn cover(mask: u16) -> Vec<u8> {
    /// Tries to cover a mask with at most `more` templates, starting at index `from`.
    fn search(mask: u16, from: u8, more: usize, chosen: &mut Vec<u8>) -> bool {
        if mask == 0 {
            return true;
        }
        if more == 0 {
            return false;
        }
        for template in from..MAX_TEMPLATES as u8 {
            chosen.push(template);
            let left = mask & !TEMPLATES[usize::from(template)];
            if left != mask && search(left, template + 1, more - 1, chosen) {
                return true;
            }
            chosen.pop();
        }
        false
    }
    let mut chosen = Vec::new();
    // The four templates for rows cover every mask.
    let _ = (1..=4).any(|most| search(mask, 0, most, &mut chosen));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_covered_by_at_most_four_templates() {
        for mask in 1..=u16::MAX {
            let cover = cover(mask);
            let union = cover.iter().fold(0, |all, &at| all | TEMPLATES[usize::from(at)]);
            assert_eq!(union & mask, mask);
            assert!((1..=4).contains(&cover.len()));
        }
        assert_eq!(cover(0x8421).len(), 1);
        assert_eq!(cover(0xffff).len(), 4);
    }

    #[test]
    fn words_tell_block_template_and_ends() {
        let entries = (vec![0, 1, 2, 3, 5, 1024], vec![0, 1, 2, 3, 2050, 0]);
        let csr = Csr::from_entries((1025, 2051), &entries.0, &entries.1, &[1.0; 6]);
        let spasm = Spasm::from_csr(&csr).unwrap();
        assert_eq!(spasm.tiles, [(0, 0), (0, 2), (1, 0)]);
        assert_eq!(spasm.ranges, [0, 1, 2, 3]);
        // The blocks are a diagonal in block (0, 0), and a cell of the second row in block (1, 0)
        // of its tile.
        assert_eq!(spasm.positions[0], 12 << 28 | 1 << 27 | 1 << 13);
        assert_eq!(spasm.positions[1], 1 << 28 | 1 << 27 | 1 << 14 | 1 << 13);
        assert_eq!(spasm.values[..8], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(spasm.to_csr(), csr);
    }
}
