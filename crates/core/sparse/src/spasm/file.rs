//! SPASM matrix files of version 2, as written by the converter of the Remote GPU Execution
//! Service.
//!
//! The format is little-endian. The header of 48 bytes contains: `SPAS`; version, rows, columns and
//! tile size, 4 bytes each; the numbers of non-zeros and of values with padding, 8 bytes each; the
//! numbers of tiles, positions and templates, 4 bytes each. The arrays follow: the mask of each
//! template, 2 bytes; the row and column of each tile; the first position of each tile and the
//! position after its last; a word for each position; four values for each position.
//!
//! That converter does not list the first tile, and its readers assign the positions before those
//! of all tiles to tile (0, 0). This reader does the same. The converter uses the end marks (CE,
//! RE) differently. This reader does not need them, because each position contains its coordinates.

use std::io::{self, Read, Write};

use super::{BLOCK, CELLS, MAX_TEMPLATES, Position, Spasm, cells};
use crate::CsrError;
use crate::csr::extent;
use crate::market::{ReadLimits, csr_bytes};
use crate::packed::{read_numbers, write_numbers};

/// The first bytes of a file.
pub(crate) const MAGIC: [u8; 4] = *b"SPAS";

const VERSION: u32 = 2;

/// The size of the header, in bytes.
const HEAD_BYTES: u64 = 48;

/// The size of the largest tile that 13-bit block coordinates can address.
const MAX_TILE: u32 = (1 << 13) * BLOCK;

/// Reasons why a file is not a valid matrix.
#[derive(Debug, thiserror::Error)]
pub enum SpasmError {
    /// The file cannot be read.
    #[error("could not read the .spasm file: {0}")]
    Io(#[from] io::Error),
    /// The file does not start with the magic bytes.
    #[error("not a .spasm file: it begins with {0:?}")]
    Magic([u8; 4]),
    /// The version is not supported.
    #[error(
        "the .spasm file has version {0}, but only version {VERSION}, which contains the positions of \
         each tile, can be read; convert the matrix again, or use its .mtx file"
    )]
    Version(u32),
    /// The file does not have the length that its header implies.
    #[error(
        "the header of the .spasm file announces {announced} bytes, but the file has {came}: it was cut \
         off, data was added after it, or its header is wrong"
    )]
    Length {
        /// The length that follows from the header, in bytes.
        announced: u64,
        /// The length of the file, in bytes.
        came: u64,
    },
    /// The content is inconsistent.
    #[error("the .spasm file is damaged: {0}")]
    Damaged(String),
    /// The number of rows, columns or non-zeros is too large for 32-bit indices.
    #[error("the .spasm file: {0}")]
    Extent(#[from] CsrError),
    /// The matrix is larger than the limits allow.
    #[error(
        "a matrix of {rows} rows and {entries} entries takes {bytes} bytes; at most {most} are accepted"
    )]
    TooLarge {
        rows: u64,
        entries: u64,
        /// The size in CSR form, in bytes.
        bytes: u64,
        /// The maximum size, in bytes.
        most: u64,
    },
}

fn damaged<T>(problem: String) -> Result<T, SpasmError> {
    Err(SpasmError::Damaged(problem))
}

impl Spasm {
    /// Writes the file.
    ///
    /// # Errors
    /// Returns the errors of the writer.
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
        write_numbers(to, &self.templates, u16::to_le_bytes)?;
        for (row, column) in &self.tiles {
            to.write_all(&row.to_le_bytes())?;
            to.write_all(&column.to_le_bytes())?;
        }
        for range in self.ranges.windows(2) {
            to.write_all(&range[0].to_le_bytes())?;
            to.write_all(&range[1].to_le_bytes())?;
        }
        write_numbers(to, &self.positions, u32::to_le_bytes)?;
        write_numbers(to, &self.values, f32::to_le_bytes)
    }

    /// Reads a whole file of `bytes` bytes. Repeatedly calls `progress` with the number of bytes
    /// read so far.
    ///
    /// The sizes in the header are compared with the length of the file and with the limits before
    /// memory is reserved. After that, memory grows with the content that is read.
    ///
    /// # Errors
    /// The error describes the problem in the file.
    pub fn read(
        from: &mut impl Read,
        bytes: u64,
        limits: &ReadLimits,
        progress: impl FnMut(u64),
    ) -> Result<Self, SpasmError> {
        let from = &mut Counted { from, read: 0, progress };
        let told = Told::read(from).map_err(|error| match error {
            SpasmError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                SpasmError::Damaged(format!("it ends within its header of {HEAD_BYTES} bytes"))
            }
            other => other,
        })?;
        told.check(bytes, limits)?;
        let mut spasm = Self {
            extents: told.extents,
            tile: told.tile,
            nnz: told.nnz,
            templates: read_numbers(from, told.templates.into(), u16::from_le_bytes)?,
            tiles: Vec::new(),
            ranges: Vec::new(),
            positions: Vec::new(),
            values: Vec::new(),
        };
        let tiles = read_numbers(from, 2 * u64::from(told.tiles), u32::from_le_bytes)?;
        let ends = read_numbers(from, 2 * u64::from(told.tiles), u32::from_le_bytes)?;
        spasm.set_tiles(&tiles, &ends, told.positions)?;
        spasm.positions = read_numbers(from, told.positions.into(), u32::from_le_bytes)?;
        spasm.values = read_numbers(from, told.padded, f32::from_le_bytes)?;
        spasm.check()?;
        Ok(spasm)
    }

    /// Sets the tiles and their ranges from the arrays of a file, which contain two numbers for
    /// each tile.
    fn set_tiles(&mut self, tiles: &[u32], ends: &[u32], positions: u32) -> Result<(), SpasmError> {
        let (tiles, _) = tiles.as_chunks::<2>();
        let (ends, _) = ends.as_chunks::<2>();
        let of = |extent: u32| extent.div_ceil(self.tile);
        let extents = (of(self.extents.0), of(self.extents.1));
        self.ranges.push(0);
        let first = ends.first().map_or(positions, |range| range[0]);
        if first > 0 {
            self.tiles.push((0, 0));
            self.ranges.push(first.min(positions));
        }
        for (index, (&[row, column], &[begin, end])) in tiles.iter().zip(ends).enumerate() {
            if row >= extents.0 || column >= extents.1 {
                return damaged(format!(
                    "tile {index} is at ({row}, {column}), but the matrix has {} × {} tiles",
                    extents.0, extents.1
                ));
            }
            let before = self.ranges.last().copied().unwrap_or(0);
            if begin != before || end < begin || end > positions {
                return damaged(format!(
                    "tile {index} has positions {begin} to {end}; the tiles before it end at {before}, \
                     and there are {positions}"
                ));
            }
            self.tiles.push((row, column));
            self.ranges.push(end);
        }
        match self.ranges.last() {
            Some(&last) if last == positions => Ok(()),
            last => damaged(format!("its tiles end at position {last:?} of {positions}")),
        }
    }

    /// Checks that every index is within its array.
    fn check(&self) -> Result<(), SpasmError> {
        if let Some(mask) = self.templates.iter().find(|mask| mask.count_ones() != CELLS as u32) {
            return damaged(format!("template {mask:#06x} does not have {CELLS} cells"));
        }
        if let Some(at) = self.values.iter().position(|value| !value.is_finite()) {
            return damaged(format!("value {at} is {}, not a finite number", self.values[at]));
        }
        for (tile, range) in self.tiles.iter().zip(self.ranges.windows(2)) {
            for at in range[0] as usize..range[1] as usize {
                self.check_position(*tile, at)?;
            }
        }
        // The program that wrote the file may have counted zeros stored in the original matrix.
        let found = self.values.iter().filter(|value| **value != 0.0).count() as u64;
        if found > self.nnz {
            return damaged(format!("it announces {} non-zeros and has {found}", self.nnz));
        }
        Ok(())
    }

    fn check_position(&self, tile: (u32, u32), at: usize) -> Result<(), SpasmError> {
        let position = Position::of(self.positions[at]);
        let Some(&mask) = self.templates.get(position.template) else {
            return damaged(format!(
                "position {at} has template {}, but there are {}",
                position.template,
                self.templates.len()
            ));
        };
        let blocks = self.tile / BLOCK;
        if position.row.max(position.column) >= blocks {
            return damaged(format!(
                "position {at} is block ({}, {}) of its tile, which has {blocks} × {blocks}",
                position.row, position.column
            ));
        }
        let first = |tile: u32, block: u32| {
            u64::from(tile) * u64::from(self.tile) + u64::from(block * BLOCK)
        };
        let (row, column) = (first(tile.0, position.row), first(tile.1, position.column));
        let (rows, cols) = (u64::from(self.extents.0), u64::from(self.extents.1));
        let beyond = |(cell, value): (usize, &f32)| {
            let cell = cell as u64;
            *value != 0.0 && (row + cell / 4 >= rows || column + cell % 4 >= cols)
        };
        let mut own = cells(mask).zip(&self.values[at * CELLS..]);
        if row >= rows || column >= cols || own.any(beyond) {
            return damaged(format!("position {at} is outside the matrix"));
        }
        Ok(())
    }
}

/// The header of a file.
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
    fn read(from: &mut impl Read) -> Result<Self, SpasmError> {
        let magic = bytes::<4>(from)?;
        if magic != MAGIC {
            return Err(SpasmError::Magic(magic));
        }
        let version = word(from)?;
        if version != VERSION {
            return Err(SpasmError::Version(version));
        }
        Ok(Self {
            extents: (word(from)?, word(from)?),
            tile: word(from)?,
            nnz: u64::from_le_bytes(bytes(from)?),
            padded: u64::from_le_bytes(bytes(from)?),
            tiles: word(from)?,
            positions: word(from)?,
            templates: word(from)?,
        })
    }

    fn check(&self, came: u64, limits: &ReadLimits) -> Result<(), SpasmError> {
        extent("num_rows", self.extents.0.into())?;
        extent("num_cols", self.extents.1.into())?;
        extent("nnz", self.padded.max(self.nnz))?;
        if !(BLOCK..=MAX_TILE).contains(&self.tile) || !self.tile.is_multiple_of(BLOCK) {
            return damaged(format!(
                "its tiles have {} rows; it must be a multiple of 4 from 4 to {MAX_TILE}",
                self.tile
            ));
        }
        if self.templates as usize > MAX_TEMPLATES {
            return damaged(format!(
                "it has {} templates; at most {MAX_TEMPLATES} are allowed",
                self.templates
            ));
        }
        if self.padded != u64::from(self.positions) * CELLS as u64 || self.nnz > self.padded {
            return damaged(format!(
                "{} positions have {} values, but it announces {} of which {} are non-zeros",
                self.positions,
                u64::from(self.positions) * CELLS as u64,
                self.padded,
                self.nnz
            ));
        }
        let [tiles, positions] = [self.tiles, self.positions].map(u64::from);
        let announced = HEAD_BYTES
            + 2 * u64::from(self.templates)
            + 16 * tiles
            + 4 * positions
            // There are fewer than 2³¹ values.
            + 4 * self.padded;
        if announced != came {
            return Err(SpasmError::Length { announced, came });
        }
        let (rows, entries, most) = (u64::from(self.extents.0), self.nnz, limits.max_bytes);
        let bytes = csr_bytes(rows, entries);
        if bytes > most {
            return Err(SpasmError::TooLarge { rows, entries, bytes, most });
        }
        Ok(())
    }
}

/// A reader that reports how many bytes were read.
struct Counted<'a, R, F> {
    from: &'a mut R,
    read: u64,
    progress: F,
}

impl<R: Read, F: FnMut(u64)> Read for Counted<'_, R, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.read += count as u64;
        (self.progress)(self.read);
        Ok(count)
    }
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
    use crate::{Csr, MatrixGenerator};

    fn read(file: &[u8]) -> Result<Spasm, SpasmError> {
        Spasm::read(&mut &*file, file.len() as u64, &ReadLimits::default(), |_| ())
    }

    /// Returns a file as the converter of the Remote GPU Execution Service writes it.
    fn written(
        (rows, cols, tile): (u32, u32, u32),
        nnz: u64,
        templates: &[u16],
        tiles: &[[u32; 4]],
        positions: &[(u32, [f32; 4])],
    ) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for number in [VERSION, rows, cols, tile] {
            file.extend(number.to_le_bytes());
        }
        for number in [nnz, 4 * positions.len() as u64] {
            file.extend(number.to_le_bytes());
        }
        for number in [tiles.len(), positions.len(), templates.len()] {
            file.extend((number as u32).to_le_bytes());
        }
        file.extend(templates.iter().flat_map(|mask| mask.to_le_bytes()));
        for half in [0..2, 2..4] {
            for tile in tiles {
                file.extend(tile[half.clone()].iter().flat_map(|number| number.to_le_bytes()));
            }
        }
        file.extend(positions.iter().flat_map(|(word, _)| word.to_le_bytes()));
        let values = positions.iter().flat_map(|(_, values)| values);
        file.extend(values.flat_map(|value| value.to_le_bytes()));
        file
    }

    const SIZE: (u32, u32, u32) = (10, 12, 8);
    const MASKS: [u16; 2] = [0x000f, 0x8421];

    /// Positions in tiles of 8 × 8. The first tile has a row and a diagonal. The second, at (0, 1),
    /// has a row. The last, at (1, 0), has a diagonal with two cells inside the matrix.
    fn positions() -> Vec<(u32, [f32; 4])> {
        vec![
            (0, [1.0, 2.0, 0.0, 4.0]),
            (1 << 28 | 1 << 14 | 1, [5.0, 6.0, 7.0, 8.0]),
            (1 << 13, [9.0, 0.0, 0.0, 1.0]),
            (1 << 28, [2.0, 3.0, 0.0, 0.0]),
        ]
    }

    fn wanted() -> Csr {
        let row_of = [0, 0, 0, 4, 5, 6, 7, 0, 0, 8, 9];
        let col_of = [0, 1, 3, 4, 5, 6, 7, 8, 11, 0, 1];
        let value_of = [1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0, 2.0, 3.0];
        Csr::from_entries((10, 12), &row_of, &col_of, &value_of)
    }

    #[test]
    fn files_of_the_reference_are_read_though_they_do_not_list_the_first_tile() {
        let listed = [[0, 0, 0, 2], [0, 1, 2, 3], [1, 0, 3, 4]];
        for tiles in [&listed[..], &listed[1..]] {
            // The announced number of non-zeros counts a stored zero of the original matrix.
            let file = written(SIZE, 12, &MASKS, tiles, &positions());
            assert_eq!(read(&file).unwrap().to_csr(), wanted());
        }
        // A single tile is not listed.
        let file = written(SIZE, 7, &MASKS, &[], &positions()[..2]);
        assert_eq!(read(&file).unwrap().to_csr().nnz(), 7);
    }

    #[test]
    fn what_a_file_says_wrongly_is_told() {
        let good = [[0, 1, 2, 3], [1, 0, 3, 4]];
        type Change = fn(&mut [[u32; 4]], &mut Vec<(u32, [f32; 4])>, &mut [u16; 2]);
        let cases: [(Change, &str); 12] = [
            (|tiles, _, _| tiles[0][1] = 2, "tile 0 is at (0, 2), but the matrix has 2 × 2 tiles"),
            (|tiles, _, _| tiles[1][0] = u32::MAX, "tile 1 is at (4294967295, 0)"),
            (|tiles, _, _| tiles[1][2] = 2, "tile 1 has positions 2 to 4"),
            (|tiles, _, _| tiles[1][3] = 5, "and there are 4"),
            (|tiles, _, _| tiles[1][3] = 3, "end at position Some(3) of 4"),
            (|tiles, _, _| tiles[0] = [0, 1, 9, 3], "tile 0 has positions 9 to 3"),
            (|_, positions, _| positions[1].0 |= 2, "block (1, 3) of its tile, which has 2 × 2"),
            (|_, positions, _| positions[0].0 |= 15 << 28, "template 15, but there are 2"),
            (|_, positions, _| positions[3].1[2] = 1.0, "position 3 is outside the matrix"),
            // The block begins outside the matrix, though all of its values are padding.
            (|_, positions, _| positions[3] = (1 << 14, [0.0; 4]), "position 3 is outside"),
            (|_, positions, _| positions[2].1[1] = f32::NAN, "value 9 is NaN, not a finite number"),
            (|_, _, masks| masks[1] = 0, "template 0x0000 does not have 4 cells"),
        ];
        for (change, message) in cases {
            let (mut tiles, mut positions, mut masks) = (good, positions(), MASKS);
            change(&mut tiles, &mut positions, &mut masks);
            let told =
                read(&written(SIZE, 11, &masks, &tiles, &positions)).unwrap_err().to_string();
            assert!(told.contains(message), "{message}: {told}");
        }
        let few = read(&written(SIZE, 10, &MASKS, &good, &positions())).unwrap_err().to_string();
        assert!(few.contains("announces 10 non-zeros and has 11"), "{few}");
    }

    #[test]
    fn a_file_that_is_cut_off_or_has_more_is_refused_by_its_length() {
        let csr = "poisson2d:nx=40,ny=40".parse::<MatrixGenerator>().unwrap().generate().unwrap();
        let spasm = Spasm::from_csr(&csr).unwrap();
        let mut file = Vec::new();
        spasm.write(&mut file).unwrap();
        assert_eq!(read(&file).unwrap(), spasm);
        for length in [48, 52, 60, file.len() - 1] {
            let error = read(&file[..length]).unwrap_err();
            assert!(matches!(error, SpasmError::Length { .. }), "{length} bytes: {error}");
        }
        for length in [0, 3, 20, 47] {
            let error = read(&file[..length]).unwrap_err();
            assert!(
                error.to_string().contains("ends within its header"),
                "{length} bytes: {error}"
            );
        }
        file.push(0);
        assert!(matches!(read(&file).unwrap_err(), SpasmError::Length { .. }));
        file.pop();
        let few = ReadLimits { max_bytes: 1000 };
        let error = Spasm::read(&mut file.as_slice(), file.len() as u64, &few, |_| ());
        assert!(matches!(error, Err(SpasmError::TooLarge { .. })));
    }

    #[test]
    fn a_head_that_lies_reserves_nothing() {
        let good = written(SIZE, 11, &MASKS, &[[0, 1, 2, 3], [1, 0, 3, 4]], &positions());
        assert!(read(&good).is_ok());
        // The offsets are those of magic, version, rows, tile, non-zeros, values, tiles, positions
        // and templates.
        let places: [(usize, &[u8], &str); 11] = [
            (0, b"X", "not a .spasm file"),
            (4, &[1], "has version 1, but only version 2"),
            (8, &[255; 4], "num_rows"),
            (8, &[255, 255, 255, 127], "are accepted"),
            (16, &[7], "its tiles have 7 rows"),
            (16, &[0], "its tiles have 0 rows"),
            (20, &[255; 8], "nnz"),
            (20, &[17], "announces 16 of which 17 are non-zeros"),
            (36, &[255; 4], "announces 687194768"),
            (40, &[5], "5 positions have 20 values"),
            (44, &[17], "17 templates"),
        ];
        for (at, with, message) in places {
            let mut file = good.clone();
            file[at..at + with.len()].copy_from_slice(with);
            let limits = ReadLimits { max_bytes: 1 << 30 };
            let told = Spasm::read(&mut file.as_slice(), file.len() as u64, &limits, |_| ());
            let told = told.unwrap_err().to_string();
            assert!(told.contains(message), "byte {at}: {told}");
        }
    }
}
