//! SPASM: 4 × 4 blocks, each a sum of templates of four cells; tiles of blocks; and its file.
//!
//! A template is a mask of 16 bits, bit `4 · row + column` of a block's cell. A block is written as as few
//! templates as cover it; each gives a *position* and four values, for the template's cells in the order
//! of their bits, 0 where the block has none. Positions are grouped by tile, by row of blocks within a
//! tile, then by column.
//!
//! A position is a word of 32 bits, from the lowest: column of the block within its tile (13 bits), CE (the
//! last position of its block), row of the block within its tile (13), RE (the last position of its row of
//! blocks within the tile), template (4).

use std::collections::HashMap;
use std::io::{self, Read, Write};

use super::formats::FormatError;
use super::{Csr, CsrError, MAX_EXTENT};

/// Rows and columns of a tile.
pub const TILE: u32 = 1024;

/// Rows and columns of a block.
const BLOCK: u32 = 4;

/// Cells of a template.
const CELLS: usize = 4;

/// Most templates: their number has 4 bits.
const MAX_TEMPLATES: usize = 16;

/// First bytes of a file.
const MAGIC: [u8; 4] = *b"SPAS";

/// Version of the file.
const VERSION: u32 = 2;

/// Largest tile that 13 bits of blocks can address.
const MAX_TILE: u32 = (1 << 13) * BLOCK;

/// Rows, columns, quadrants and wrapped diagonals of a block: every block is the union of at most four of
/// them, and the patterns of stencils, bands and dense blocks of one each.
const TEMPLATES: [u16; MAX_TEMPLATES] = [
    0x000f, 0x00f0, 0x0f00, 0xf000, // rows
    0x1111, 0x2222, 0x4444, 0x8888, // columns
    0x0033, 0x00cc, 0x3300, 0xcc00, // quadrants
    0x8421, 0x1842, 0x2184, 0x4218, // diagonals
];

/// A matrix as templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Spasm {
    /// Rows and columns of the matrix.
    pub extents: (u32, u32),
    /// Rows and columns of a tile.
    pub tile: u32,
    /// Entries of the matrix that are not 0.
    pub nnz: u64,
    /// Masks of the templates.
    pub templates: Vec<u16>,
    /// Row and column of each tile that has positions, in tiles.
    pub tiles: Vec<(u32, u32)>,
    /// Where the positions of each tile begin, and where the last's end.
    pub ranges: Vec<u32>,
    /// A word for each position.
    pub positions: Vec<u32>,
    /// Four values for each position, binary32.
    pub values: Vec<f32>,
}

/// Why a file is no matrix.
#[derive(Debug, thiserror::Error)]
pub enum SpasmError {
    /// It cannot be read.
    #[error("read the .spasm file: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("not a .spasm file: it begins with {0:?}")]
    Magic([u8; 4]),
    /// Another version.
    #[error("the .spasm file has version {0}; version {VERSION} is read")]
    Version(u32),
    /// What it holds contradicts itself.
    #[error("the .spasm file is damaged: {0}")]
    Damaged(String),
    /// It is larger than what is read.
    #[error(transparent)]
    TooLarge(#[from] CsrError),
}

/// Positions of one block, by row and column of its tile and of itself.
struct Placed {
    tile: (u32, u32),
    block: (u32, u32),
    cells: [f32; 16],
    mask: u16,
}

impl Spasm {
    /// From rows; values are rounded to binary32. Zeros are not kept.
    ///
    /// # Errors
    /// Padding would take too much: more than [`MAX_PADDED`](super::formats::MAX_PADDED) elements.
    pub fn from_csr(csr: &Csr) -> Result<Self, FormatError> {
        Self::within(csr, super::formats::MAX_PADDED)
    }

    /// From rows, of at most so many elements; values are rounded to binary32. Zeros are not kept.
    ///
    /// # Errors
    /// It would have more.
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

    /// As rows.
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

    /// Writes the file.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&MAGIC)?;
        for number in [VERSION, self.extents.0, self.extents.1, self.tile] {
            to.write_all(&number.to_le_bytes())?;
        }
        for number in [self.nnz, self.values.len() as u64] {
            to.write_all(&number.to_le_bytes())?;
        }
        for number in [self.tiles.len(), self.positions.len(), self.templates.len()] {
            to.write_all(&(number as u32).to_le_bytes())?;
        }
        for template in &self.templates {
            to.write_all(&template.to_le_bytes())?;
        }
        for (row, column) in &self.tiles {
            to.write_all(&row.to_le_bytes())?;
            to.write_all(&column.to_le_bytes())?;
        }
        for word in self.ranges.iter().chain(&self.positions) {
            to.write_all(&word.to_le_bytes())?;
        }
        for value in &self.values {
            to.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }

    /// Reads a file, with at most `max_nnz` values, padding included. Nothing is reserved that has not
    /// come.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(from: &mut impl Read, max_nnz: u64) -> Result<Self, SpasmError> {
        let magic = bytes::<4>(from)?;
        if magic != MAGIC {
            return Err(SpasmError::Magic(magic));
        }
        let version = word(from)?;
        if version != VERSION {
            return Err(SpasmError::Version(version));
        }
        let extents = (word(from)?, word(from)?);
        let tile = word(from)?;
        let nnz = u64::from_le_bytes(bytes(from)?);
        let padded = u64::from_le_bytes(bytes(from)?);
        let [tiles, positions, templates] = [word(from)?, word(from)?, word(from)?];
        super::csr::extent("num_rows", u64::from(extents.0))?;
        super::csr::extent("num_cols", u64::from(extents.1))?;
        if padded > max_nnz.min(MAX_EXTENT) {
            return Err(CsrError::TooLarge { what: "padded nnz", came: padded }.into());
        }
        let told = Told { extents, tile, nnz, padded, tiles, positions, templates };
        told.check()?;
        let mut spasm = Self {
            extents,
            tile,
            nnz,
            templates: Vec::new(),
            tiles: Vec::new(),
            ranges: Vec::new(),
            positions: Vec::new(),
            values: Vec::new(),
        };
        for _ in 0..templates {
            spasm.templates.push(u16::from_le_bytes(bytes(from)?));
        }
        for _ in 0..tiles {
            spasm.tiles.push((word(from)?, word(from)?));
        }
        for _ in 0..=tiles {
            spasm.ranges.push(word(from)?);
        }
        for _ in 0..positions {
            spasm.positions.push(word(from)?);
        }
        for _ in 0..padded {
            spasm.values.push(f32::from_le_bytes(bytes(from)?));
        }
        spasm.check()?;
        Ok(spasm)
    }

    /// Whether every index stays within what it points to.
    fn check(&self) -> Result<(), SpasmError> {
        let damaged = |text: String| Err(SpasmError::Damaged(text));
        if let Some(mask) = self.templates.iter().find(|mask| mask.count_ones() != CELLS as u32) {
            return damaged(format!("template {mask:#06x} has not {CELLS} cells"));
        }
        let rising = self.ranges.windows(2).all(|pair| pair[0] <= pair[1]);
        if !rising
            || self.ranges.first() != Some(&0)
            || self.ranges.last().copied() != Some(self.positions.len() as u32)
        {
            return damaged("its ranges of tiles do not divide the positions".to_owned());
        }
        for (tile, range) in self.tiles.iter().zip(self.ranges.windows(2)) {
            for at in range[0] as usize..range[1] as usize {
                let position = Position::of(self.positions[at]);
                let Some(&mask) = self.templates.get(position.template) else {
                    return damaged(format!("position {at} has template {}", position.template));
                };
                let first = |tile: u32, block: u32| {
                    u64::from(tile) * u64::from(self.tile) + u64::from(block * BLOCK)
                };
                let (row, column) = (first(tile.0, position.row), first(tile.1, position.column));
                let within = position.row.max(position.column) < self.tile / BLOCK;
                let outside = |(cell, value): (usize, &f32)| {
                    let cell = cell as u64;
                    *value != 0.0
                        && (row + cell / 4 >= u64::from(self.extents.0)
                            || column + cell % 4 >= u64::from(self.extents.1))
                };
                if !within || cells(mask).zip(&self.values[at * CELLS..]).any(outside) {
                    return damaged(format!("position {at} is outside the matrix"));
                }
            }
        }
        let found = self.values.iter().filter(|value| **value != 0.0).count() as u64;
        if found != self.nnz {
            return damaged(format!("it announces {} non-zeros and has {found}", self.nnz));
        }
        Ok(())
    }
}

/// What a file says of itself.
struct Told {
    extents: (u32, u32),
    tile: u32,
    nnz: u64,
    padded: u64,
    tiles: u32,
    positions: u32,
    templates: u32,
}

impl Told {
    fn check(&self) -> Result<(), SpasmError> {
        let damaged = |text: String| Err(SpasmError::Damaged(text));
        if !(BLOCK..=MAX_TILE).contains(&self.tile) || !self.tile.is_multiple_of(BLOCK) {
            return damaged(format!(
                "its tiles have {} rows; 4 to {MAX_TILE} in fours are read",
                self.tile
            ));
        }
        if self.templates as usize > MAX_TEMPLATES {
            return damaged(format!(
                "it has {} templates, at most {MAX_TEMPLATES} are",
                self.templates
            ));
        }
        if self.padded != u64::from(self.positions) * CELLS as u64 || self.nnz > self.padded {
            return damaged(format!(
                "{} positions have {} values, and it announces {} of which {} are non-zeros",
                self.positions,
                u64::from(self.positions) * CELLS as u64,
                self.padded,
                self.nnz
            ));
        }
        let of = |extent: u32| u64::from(extent.div_ceil(self.tile));
        if u64::from(self.tiles) > of(self.extents.0) * of(self.extents.1) {
            return damaged(format!("it announces {} tiles, more than the matrix has", self.tiles));
        }
        Ok(())
    }
}

/// A position, taken apart.
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

/// Cells of a mask, in the order of their bits.
fn cells(mask: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |cell| mask & 1 << cell != 0)
}

/// The blocks of the rows of a tile.
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

/// As few templates as cover a mask.
fn cover(mask: u16) -> Vec<u8> {
    /// Looks for so many more templates, from one on.
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
    // The four rows cover everything.
    let _ = (1..=4).any(|most| search(mask, 0, most, &mut chosen));
    chosen
}

fn bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn word(from: &mut impl Read) -> io::Result<u32> {
    bytes(from).map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;

    fn small() -> Spasm {
        let csr = "poisson2d:nx=40,ny=40".parse::<Generator>().unwrap().generate().unwrap();
        Spasm::from_csr(&csr).unwrap()
    }

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
        // A diagonal in block (0, 0); a cell of the second row in block (1, 0) of its tile.
        assert_eq!(spasm.positions[0], 12 << 28 | 1 << 27 | 1 << 13);
        assert_eq!(spasm.positions[1], 1 << 28 | 1 << 27 | 1 << 14 | 1 << 13);
        assert_eq!(spasm.values[..8], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(spasm.to_csr(), csr);
    }

    #[test]
    fn the_file_reads_back_and_damage_is_noticed() {
        let spasm = small();
        let mut file = Vec::new();
        spasm.write(&mut file).unwrap();
        assert_eq!(Spasm::read(&mut file.as_slice(), 1 << 20).unwrap(), spasm);
        for length in [0, 3, 20, 52, 60, file.len() - 1] {
            assert!(Spasm::read(&mut &file[..length], 1 << 20).is_err(), "{length} bytes");
        }
        assert!(matches!(Spasm::read(&mut file.as_slice(), 10), Err(SpasmError::TooLarge(_))));
        let damaged = |at: usize, byte: u8| {
            let mut other = file.clone();
            other[at] = byte;
            let error = Spasm::read(&mut other.as_slice(), 1 << 20).unwrap_err();
            error.to_string()
        };
        // Magic, version, tile, non-zeros, values, tiles, positions, templates, a mask, a tile's row, the
        // end of the ranges, and a position's template, row and column.
        let (templates, tiles) = (48, 48 + 2 * spasm.templates.len());
        let ranges = tiles + 8 * spasm.tiles.len();
        let positions = ranges + 4 * spasm.ranges.len();
        let places = [
            (0, "not a .spasm file"),
            (4, "has version"),
            (16, "its tiles have"),
            (20, "announces"),
            (28, "announces"),
            (36, "announces 251 tiles"),
            (40, "positions have"),
            (44, "251 templates"),
            (templates, "has not 4 cells"),
            (tiles, "outside the matrix"),
            (positions - 4, "do not divide"),
            (positions + 1, "outside the matrix"),
        ];
        for (at, message) in places {
            let told = damaged(at, 0xfb);
            assert!(told.contains(message), "byte {at}: {told}");
        }
    }
}
