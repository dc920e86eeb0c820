//! Assignment of scales to the numbers of a quantised tensor. The main type is [`ScaleBlocks`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Dtype, shape_of_parts};

/// Maximum number of dimensions after adjacent dimensions are merged where that keeps the mapping.
pub const MAX_BLOCK_DIMENSIONS: usize = 8;

/// Rows, and scales per row, of a tile of [`ScaleLayout::Tiles128x4`].
const TILE: [u64; 2] = [128, 4];

/// Order of scales in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScaleLayout {
    /// Row-major order, as for the numbers: the last dimension is contiguous.
    #[default]
    Rows,
    /// Dimensions in reverse order: the first dimension of the numbers is contiguous.
    Transposed,
    /// Tiles of 128 rows with 4 scales per row, padded to whole tiles, as the tensor cores of
    /// sm_100 read them (cuBLAS: "1D block scaling factors layout").
    #[serde(rename = "tiles_128x4")]
    Tiles128x4,
}

impl Dtype {
    /// Returns the largest magnitude of a type that values can be quantised to with scales, and
    /// `None` for other types. For unsigned types it is the largest distance from the middle zero
    /// point that is possible in both directions.
    pub const fn largest_quantized(self) -> Option<f64> {
        Some(match self {
            Dtype::Float8E4m3 => 448.0,
            Dtype::Float8E5m2 => 57_344.0,
            Dtype::Float4E2m1x2 => 6.0,
            Dtype::Int8 | Dtype::Uint8 => 127.0,
            Dtype::Int4x2 | Dtype::Uint4x2 => 7.0,
            _ => return None,
        })
    }

    /// Returns the middle zero point of an unsigned quantised type, then the smallest zero point of
    /// generated content and the number of zero points. `None` for other types.
    pub const fn zero_points(self) -> Option<(u64, [u64; 2])> {
        match self {
            Dtype::Uint8 => Some((128, [112, 32])),
            Dtype::Uint4x2 => Some((8, [6, 4])),
            _ => None,
        }
    }

    /// Returns the smallest and the largest scale that a type represents with full precision, and
    /// `None` for types that scales cannot have.
    pub fn scale_range(self) -> Option<(f64, f64)> {
        Some(match self {
            Dtype::Float32 => (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
            Dtype::Bfloat16 => (f64::from(f32::MIN_POSITIVE), f64::from(half::bf16::MAX)),
            Dtype::Float16 => (f64::from(half::f16::MIN_POSITIVE), f64::from(half::f16::MAX)),
            Dtype::Float8E4m3 => (2f64.powi(-6), 448.0),
            Dtype::Float8E8m0 => (2f64.powi(-127), 2f64.powi(127)),
            _ => return None,
        })
    }
}

impl ScaleLayout {
    /// Returns whether this is the default order, [`Self::Rows`].
    pub fn is_rows(&self) -> bool {
        *self == Self::Rows
    }
}

/// Description of the scales in a contract.
#[derive(Debug, Clone, Copy)]
pub struct ScaleShape<'a> {
    pub dtype: Dtype,
    pub shape: &'a [u64],
    /// Numbers that share a scale, in each dimension; empty if they are derived from the shapes.
    pub block: &'a [u64],
    pub layout: ScaleLayout,
}

/// One dimension of the quantised numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedDimension {
    /// Number of numbers in this dimension. A packed element holds two.
    pub extent: u64,
    /// Number of adjacent numbers that share a scale.
    pub block: u64,
    /// Distance between the scales of adjacent blocks. With tiles, the number of tiles in this
    /// dimension.
    pub stride: u64,
}

/// Mapping from numbers to scales.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleBlocks {
    /// Dimensions, the last first. With tiles: the columns, the rows, and the product of all other
    /// dimensions.
    pub dimensions: Vec<BlockedDimension>,
    /// Whether scales are in tiles.
    pub tiles: bool,
}

impl ScaleBlocks {
    /// Builds the mapping for a tensor and its scales.
    ///
    /// # Errors
    /// Returns a message if the shape or order of the scales does not fit the tensor.
    pub fn new((dtype, shape): (Dtype, &[u64]), scales: ScaleShape<'_>) -> Result<Self, String> {
        let numbers = shape_of_parts(dtype, shape);
        let block = scales.block;
        if !block.is_empty() && (block.len() != numbers.len() || block.contains(&0)) {
            return Err(format!(
                "`block` must contain a number above 0 for each of the {} dimensions of the values, such as [1, 32]",
                numbers.len()
            ));
        }
        let found = match scales.layout {
            ScaleLayout::Tiles128x4 => return tiles(&numbers, scales),
            ScaleLayout::Rows => in_order(&numbers, scales, scales.shape.to_vec()),
            ScaleLayout::Transposed => {
                in_order(&numbers, scales, scales.shape.iter().rev().copied().collect())
            }
        };
        let dimensions = found.ok_or_else(|| mismatch(&numbers, scales))?;
        if dimensions.len() > MAX_BLOCK_DIMENSIONS {
            return Err(format!(
                "the blocks have {} dimensions that cannot be merged; at most {MAX_BLOCK_DIMENSIONS} are supported",
                dimensions.len()
            ));
        }
        Ok(Self { dimensions, tiles: false })
    }

    /// Returns the index of the scale of a number.
    #[inline]
    pub fn scale_of(&self, number: u64) -> u64 {
        if self.tiles {
            return self.in_tiles(number);
        }
        let (mut left, mut scale) = (number, 0);
        for dimension in &self.dimensions {
            let at = left % dimension.extent;
            left /= dimension.extent;
            scale += at / dimension.block * dimension.stride;
        }
        scale
    }

    fn in_tiles(&self, number: u64) -> u64 {
        let [columns, rows, _] = self.dimensions[..] else { return 0 };
        let column = number % columns.extent / columns.block;
        let row = number / columns.extent % rows.extent;
        let matrix = number / columns.extent / rows.extent;
        let tile = (matrix * rows.stride + row / 128) * columns.stride + column / 4;
        tile * 512 + row % 32 * 16 + row / 32 % 4 * 4 + column % 4
    }
}

fn product(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |all: u64, &one| all.saturating_mul(one))
}

/// Returns the number of blocks in each dimension.
fn grid_of(numbers: &[u64], block: &[u64]) -> Vec<u64> {
    numbers.iter().zip(block).map(|(n, b)| n.div_ceil(*b)).collect()
}

fn without_ones(shape: &[u64]) -> Vec<u64> {
    shape.iter().copied().filter(|&extent| extent != 1).collect()
}

/// Returns the merged dimensions of scales that have as many dimensions as the numbers. `shape` is
/// the shape of the scales, in the dimension order of the numbers.
fn in_order(
    numbers: &[u64],
    scales: ScaleShape<'_>,
    shape: Vec<u64>,
) -> Option<Vec<BlockedDimension>> {
    let block = match scales.block {
        [] => blocks_of(numbers, &shape),
        given => {
            let grid = grid_of(numbers, given);
            let flat = shape.len() == 1 && shape[0] == product(&grid);
            (flat || without_ones(&grid) == without_ones(&shape)).then(|| given.to_vec())
        }
    };
    let Some(block) = block else {
        return in_turn(numbers, &shape).filter(|_| scales.block.is_empty());
    };
    let grid = grid_of(numbers, &block);
    let stride = |at: usize| match scales.layout {
        ScaleLayout::Transposed => product(&grid[..at]),
        _ => product(&grid[at + 1..]),
    };
    let dimensions = (0..numbers.len()).rev().map(|at| BlockedDimension {
        extent: numbers[at],
        block: block[at],
        stride: stride(at),
    });
    Some(joined(dimensions))
}

/// Returns the block size in each dimension, if the shapes determine it. They do so for one scale
/// for all numbers, for scales with as many dimensions as the numbers, and for one scale per index
/// of the first or last dimensions.
fn blocks_of(numbers: &[u64], shape: &[u64]) -> Option<Vec<u64>> {
    if product(shape) == 1 {
        return Some(numbers.iter().map(|&extent| extent.max(1)).collect());
    }
    let divided = |(&extent, &scales): (&u64, &u64)| {
        extent.checked_div(scales).filter(|block| *block > 0 && block * scales == extent)
    };
    if shape.len() == numbers.len()
        && let Some(blocks) = numbers.iter().zip(shape).map(divided).collect()
    {
        return Some(blocks);
    }
    let own = without_ones(shape);
    if own.contains(&0) || numbers.contains(&0) {
        return None;
    }
    let (head, tail) = (own.len(), numbers.len().checked_sub(own.len())?);
    if numbers.starts_with(&own) {
        let whole = numbers[head..].iter().copied();
        return Some(own.iter().map(|_| 1).chain(whole).collect());
    }
    if numbers.ends_with(&own) {
        let whole = numbers[..tail].iter().copied();
        return Some(whole.chain(own.iter().map(|_| 1)).collect());
    }
    None
}

/// Returns blocks of consecutive numbers: parts of a row, or whole rows.
fn in_turn(numbers: &[u64], shape: &[u64]) -> Option<Vec<BlockedDimension>> {
    let (all, row) = (product(numbers), numbers.last().copied().unwrap_or(1));
    let block = all.checked_div(product(shape)).filter(|block| *block > 0)?;
    let fits = block * product(shape) == all && (row % block == 0 || block % row == 0);
    fits.then(|| vec![BlockedDimension { extent: all, block, stride: 1 }])
}

/// Merges adjacent dimensions where that keeps the mapping.
fn joined(dimensions: impl Iterator<Item = BlockedDimension>) -> Vec<BlockedDimension> {
    let mut all: Vec<BlockedDimension> = Vec::new();
    for outer in dimensions.filter(|dimension| dimension.extent != 1) {
        let Some(inner) = all.last_mut() else {
            all.push(outer);
            continue;
        };
        let extent = inner.extent.saturating_mul(outer.extent);
        if inner.block >= inner.extent {
            let block = inner.extent.saturating_mul(outer.block);
            *inner = BlockedDimension { extent, block, stride: outer.stride };
        } else if outer.block == 1
            && inner.extent.is_multiple_of(inner.block)
            && outer.stride == inner.stride.saturating_mul(inner.extent / inner.block)
        {
            inner.extent = extent;
        } else {
            all.push(outer);
        }
    }
    all
}

/// Returns the mapping to scales in tiles.
fn tiles(numbers: &[u64], scales: ScaleShape<'_>) -> Result<ScaleBlocks, String> {
    let [batch @ .., rows, columns] = numbers else {
        return Err("`tiles_128x4` needs values with at least two dimensions".to_owned());
    };
    let block = match (scales.block, scales.dtype) {
        ([ones @ .., block], _) if ones.iter().all(|&one| one == 1) => *block,
        ([], Dtype::Float8E8m0) => 32,
        ([], Dtype::Float8E4m3) => 16,
        ([], other) => {
            return Err(format!(
                "give `block`, such as [1, 16]: the default for `tiles_128x4` is 16 with float8_e4m3 and 32 with \
                 float8_e8m0fnu; there is none for {other}"
            ));
        }
        _ => return Err("`tiles_128x4` supports blocks in the last dimension only".to_owned()),
    };
    let matrices = product(batch);
    let across = columns.div_ceil(block).div_ceil(TILE[1]);
    let down = rows.div_ceil(TILE[0]);
    let wanted = product(&[matrices, down, across, TILE[0], TILE[1]]);
    let got = product(scales.shape);
    if wanted != got {
        return Err(format!(
            "`tiles_128x4` of {rows} rows of {columns} numbers in blocks of {block} need {wanted} scales (whole tiles of \
             128 rows and 4 scales{}), but the tensor of scales has {got} elements",
            if matrices == 1 {
                String::new()
            } else {
                format!(", for each of {matrices} matrices")
            }
        ));
    }
    let of = |extent, block, stride| BlockedDimension { extent, block, stride };
    let dimensions = vec![of(*columns, block, across), of(*rows, 1, down), of(matrices, 1, 1)];
    Ok(ScaleBlocks { dimensions, tiles: true })
}

fn mismatch(numbers: &[u64], scales: ScaleShape<'_>) -> String {
    if scales.block.is_empty() {
        return format!(
            "scales of shape {:?} do not fit values of shape {numbers:?} (in numbers): give one for all, one for each \
             row, or in each dimension a count that divides that of the values; with `block`, such as [128, 128], \
             blocks at the end may be smaller",
            scales.shape
        );
    }
    let mut grid = grid_of(numbers, scales.block);
    if scales.layout == ScaleLayout::Transposed {
        grid.reverse();
    }
    format!(
        "blocks of {:?} in values of shape {numbers:?} (in numbers) need scales of shape {grid:?}, not {:?}",
        scales.block, scales.shape
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the scale of a number is, dimension by dimension and without anything joined.
    fn plainly(numbers: &[u64], block: &[u64], number: u64, reversed: bool) -> u64 {
        let (mut left, mut at) = (number, Vec::new());
        for &extent in numbers.iter().rev() {
            at.insert(0, left % extent);
            left /= extent;
        }
        let mut cells: Vec<(u64, u64)> = at
            .iter()
            .zip(numbers.iter().zip(block))
            .map(|(at, (n, b))| (at / b, n.div_ceil(*b)))
            .collect();
        if reversed {
            cells.reverse();
        }
        cells.iter().fold(0, |index, (at, extent)| index * extent + at)
    }

    #[test]
    fn each_number_has_the_scale_of_its_block() {
        use ScaleLayout::{Rows, Transposed};
        type Case<'a> = (&'a [u64], &'a [u64], &'a [u64], ScaleLayout, &'a [u64]);
        let cases: [Case<'_>; 16] = [
            (&[6, 8], &[1], &[], Rows, &[6, 8]),
            (&[6, 8], &[], &[], Rows, &[6, 8]),
            (&[6, 8], &[6], &[], Rows, &[1, 8]),
            (&[6, 8], &[6, 1], &[], Rows, &[1, 8]),
            (&[6, 8], &[8], &[], Rows, &[6, 1]),
            (&[6, 8], &[1, 8], &[], Rows, &[6, 1]),
            (&[6, 8], &[6, 2], &[], Rows, &[1, 4]),
            (&[6, 8], &[2, 8], &[], Rows, &[3, 1]),
            (&[6, 8], &[3, 4], &[], Rows, &[2, 2]),
            (&[6, 8], &[12], &[], Rows, &[1, 4]),
            (&[6, 8], &[8, 3], &[], Transposed, &[2, 1]),
            (&[6, 8], &[2, 6], &[], Transposed, &[1, 4]),
            (&[7, 10], &[3, 3], &[3, 4], Rows, &[3, 4]),
            (&[7, 10], &[9], &[3, 4], Rows, &[3, 4]),
            (&[7, 10], &[3, 3], &[3, 4], Transposed, &[3, 4]),
            (&[2, 3, 4, 6], &[2, 3, 1, 2], &[], Rows, &[1, 1, 4, 3]),
        ];
        for (numbers, shape, block, layout, expected) in cases {
            let scales = ScaleShape { dtype: Dtype::Float32, shape, block, layout };
            let map = ScaleBlocks::new((Dtype::Int8, numbers), scales).unwrap();
            for number in 0..product(numbers) {
                let right = plainly(numbers, expected, number, layout == Transposed);
                assert_eq!(map.scale_of(number), right, "{numbers:?} {shape:?} {block:?} {number}");
            }
        }
    }

    #[test]
    fn rows_and_blocks_are_one_dimension() {
        let scales = |shape| ScaleShape {
            dtype: Dtype::Float8E8m0,
            shape,
            block: &[],
            layout: ScaleLayout::Rows,
        };
        let of = |shape| ScaleBlocks::new((Dtype::Float4E2m1x2, &[4, 8, 64]), scales(shape));
        assert_eq!(of(&[4, 8, 4]).unwrap().dimensions.len(), 1);
        assert_eq!(of(&[4, 8]).unwrap().dimensions.len(), 1);
        assert_eq!(of(&[4, 4, 4]).unwrap().dimensions.len(), 2);
        assert_eq!(of(&[2, 4, 4]).unwrap().dimensions.len(), 3);
    }

    #[test]
    fn tiles_have_each_scale_once_at_the_place_that_tensor_cores_read() {
        let scales = |shape| ScaleShape {
            dtype: Dtype::Float8E8m0,
            shape,
            block: &[],
            layout: ScaleLayout::Tiles128x4,
        };
        // 200 rows of 160 numbers: 5 scales each, so 2 by 2 tiles.
        let map =
            ScaleBlocks::new((Dtype::Float8E4m3, &[2, 200, 160]), scales(&[2, 256, 8])).unwrap();
        let at = |matrix: u64, row: u64, scale: u64| {
            map.scale_of((matrix * 200 + row) * 160 + scale * 32)
        };
        // CUTLASS: ((32, 4), (16, 4)) : ((16, 4), (0, 1)) within a tile.
        assert_eq!([at(0, 0, 0), at(0, 0, 1), at(0, 1, 0), at(0, 32, 0)], [0, 1, 16, 4]);
        assert_eq!([at(0, 127, 3), at(0, 0, 4), at(0, 128, 0)], [511, 512, 1024]);
        assert_eq!(at(1, 0, 0), 2048);
        let mut seen = std::collections::BTreeSet::new();
        for (matrix, row) in (0..2).flat_map(|matrix| (0..200).map(move |row| (matrix, row))) {
            assert!((0..5).all(|scale| seen.insert(at(matrix, row, scale))));
        }
        let too_few = ScaleBlocks::new((Dtype::Float8E4m3, &[200, 160]), scales(&[200, 5]));
        assert!(too_few.unwrap_err().contains("2048 scales"));
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let of = |shape, block, layout| {
            let scales = ScaleShape { dtype: Dtype::Float32, shape, block, layout };
            ScaleBlocks::new((Dtype::Int8, &[6, 8]), scales).unwrap_err()
        };
        assert!(of(&[5], &[], ScaleLayout::Rows).contains("do not fit"));
        assert!(of(&[0], &[], ScaleLayout::Rows).contains("do not fit"));
        assert!(of(&[2, 2], &[4, 3], ScaleLayout::Rows).contains("need scales of shape [2, 3]"));
        assert!(of(&[2, 3], &[4, 3], ScaleLayout::Transposed).contains("[3, 2]"));
        assert!(of(&[2], &[4], ScaleLayout::Rows).contains("each of the 2 dimensions"));
        assert!(of(&[2, 2], &[4, 0], ScaleLayout::Rows).contains("above 0"));
        assert!(of(&[1024], &[], ScaleLayout::Tiles128x4).contains("give `block`"));
        assert!(of(&[1024], &[2, 4], ScaleLayout::Tiles128x4).contains("last dimension"));
    }
}
