//! The worker's built-in kernels. They generate seeded content, compare memory, and scrub it.

use std::cell::RefCell;

use bytemuck::{Pod, Zeroable};

use super::inspection::Cells;
use super::memory::DeviceBuffer;
use super::module::{KernelFunction, Module};
use super::{Context, DeviceError, LaunchShape, Params, PreparedLaunch, Stream};
use warpgauge_model::{DeviceInfo, Image};
use warpgauge_tensor::{
    Dtype, ElementGenerator, GlobalScale, InitError, InitKind, MAX_BLOCK_DIMENSIONS, TensorInit,
    ZeroPoints,
};

/// Source of the kernels. The compile stage compiles it.
pub const SOURCE: &str = include_str!("support.cu");

/// The same kernels as PTX, packed by gzip, for a device that executes PTX. `cargo xtask support-ptx` writes it.
pub const PTX: &[u8] = include_bytes!("support.ptx.gz");

/// Compiler options of the source. Random numbers require rounding after each operation.
pub const OPTIONS: &[&str] = &["--fmad=false"];

/// Maximum local memory per thread that scrubbing can zero, bytes.
pub const MAX_LOCAL_SCRUB_BYTES: u64 = 8 << 10;

const SMALL_LOCAL_SCRUB_BYTES: u64 = 1 << 10;
pub(super) const THREADS: u32 = 256;
const SCRUB_THREADS: u32 = 1024;

/// Maximum time for which a block that zeroes shared memory waits for the other blocks,
/// nanoseconds.
const WIPE_PATIENCE_NS: u64 = 1_000_000;

/// Mirrors `InitParams` in support.cu.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct InitParams {
    key: [u64; 2],
    a: f64,
    b: f64,
    low: u64,
    span: u64,
    pattern: u64,
    generator: u32,
    dtype: u32,
    secret: u32,
    columns: u32,
    points: u64,
    table: [u64; 32],
}

/// `QUICK_NORMAL` in support.cu.
const QUICK_NORMAL: u32 = 5;

/// Index of the zero points in the table of quantised values. The dimensions of the blocks precede
/// them.
const ZEROS: usize = 3 * MAX_BLOCK_DIMENSIONS;

/// Upper bound on normal numbers that are generated in single precision. It is so low that no
/// number becomes infinite.
const QUICK_RANGE: f64 = 1e37;

/// Standard deviations that single precision represents with all of its digits.
const QUICK_DEVIATIONS: std::ops::Range<f64> = 1e-30..1e36;

impl InitParams {
    /// Returns the parameters with which the kernel fills a tensor as [`warpgauge_tensor::fill`]
    /// does.
    ///
    /// # Errors
    /// Fails if the `init` does not fit the element type or the shape.
    pub fn new(
        init: &TensorInit,
        (dtype, shape): (Dtype, &[u64]),
        name: &str,
    ) -> Result<Self, InitError> {
        let mut params = Self::zeroed();
        let generator = ElementGenerator::new(init, dtype, shape)?;
        params.key = generator.stream(init.seed.unwrap_or(0), name).key();
        // A complex tensor is filled like a tensor of its parts.
        let part = dtype.part();
        params.dtype = dtype_number(part);
        match generator {
            ElementGenerator::Constant(_) => {
                let mut pattern = [0; 8];
                pattern.chunks_exact_mut(part.size()).try_for_each(|element| {
                    warpgauge_tensor::fill(init, (part, shape), name, 0, element)
                })?;
                params.pattern = u64::from_le_bytes(pattern);
            }
            ElementGenerator::Arange { start, step, parts } => {
                (params.generator, params.a, params.b) = (1, start, step);
                params.columns = parts as u32;
            }
            ElementGenerator::Uniform { low, width } => {
                (params.generator, params.a, params.b) = (2, low, width);
            }
            ElementGenerator::Normal { mean, std } => {
                (params.generator, params.a, params.b) = (3, mean, std);
            }
            // For exponents, the kernel uses the mean and the deviation of their distribution.
            ElementGenerator::Exponents { mean, std } => {
                (params.generator, params.a, params.b) = (3, mean, std);
            }
            ElementGenerator::Integers { low, span } => {
                // In two's complement, the kernel's sum wraps around to the same bits.
                (params.generator, params.low, params.span) = (4, low as u64, span);
            }
            ElementGenerator::Choice(values) => {
                (params.generator, params.span) = (6, values.len() as u64);
                for (slot, &value) in params.table.iter_mut().zip(&values) {
                    let mut element = [0; 8];
                    let constant = TensorInit {
                        fill_value: Some(value),
                        ..TensorInit::of_kind(InitKind::Full)
                    };
                    let bytes = &mut element[..part.size()];
                    warpgauge_tensor::fill(&constant, (part, &[1]), name, 0, bytes)?;
                    *slot = u64::from_le_bytes(element);
                }
            }
            ElementGenerator::UniformColumns(columns) => {
                let words = columns.iter().map(|(low, width)| [low.to_bits(), width.to_bits()]);
                params.set_columns(7, words);
            }
            ElementGenerator::IntegerColumns(columns) => {
                params.set_columns(8, columns.iter().map(|&(low, span)| [low as u64, span]));
            }
            ElementGenerator::Permutation { low, span } => {
                (params.generator, params.low, params.span) = (9, low as u64, span);
            }
            ElementGenerator::Sorted { low, points, top, unique } => {
                params.set_rising(if unique { 11 } else { 10 }, low, points, top);
            }
            ElementGenerator::SortedFloats { low, width, points } => {
                params.set_rising(12, 0, points, 1 << 53);
                (params.a, params.b) = (low, width);
            }
            ElementGenerator::Offsets { low, points, top } => {
                params.set_rising(13, low, points, top);
            }
            ElementGenerator::ZeroPoints { low, span } => {
                (params.generator, params.low, params.span) = (18, low, span);
            }
            ElementGenerator::Scales(range) => {
                (params.generator, params.a, params.b) = (16, range.low, range.low);
            }
            ElementGenerator::Quantized(values) => {
                (params.generator, params.a, params.b) = (17, values.mean, values.std);
                [params.low, params.span] = values.key;
                params.pattern = values.scales.low.to_bits();
                params.columns = dtype_number(values.scales.dtype)
                    | u32::from(values.whole) << 8
                    | u32::from(values.blocks.tiles) << 9
                    | u32::from(values.zeros.is_some()) << 10
                    | values
                        .global
                        .map_or(0, |global| 1 << 11 | dtype_number(global.range.dtype) << 16);
                params.points = values.blocks.dimensions.len() as u64;
                for (slot, one) in params.table.chunks_mut(3).zip(&values.blocks.dimensions) {
                    slot.copy_from_slice(&[one.extent, one.block, one.stride]);
                }
                if let Some(ZeroPoints { low, span, key: [seed, name] }) = values.zeros {
                    params.table[ZEROS..ZEROS + 3].copy_from_slice(&[seed, name, low | span << 32]);
                }
                if let Some(GlobalScale { range, key: [seed, name] }) = values.global {
                    let low = range.low.to_bits();
                    params.table[ZEROS + 3..ZEROS + 6].copy_from_slice(&[seed, name, low]);
                }
            }
            ElementGenerator::Lengths(of) => params.set_rising(14, 0, of.points(), of.top),
            ElementGenerator::Segments(of) => params.set_rising(15, 0, of.points(), of.top),
        }
        Ok(params)
    }

    /// Like [`Self::new`], for an `init` with a secret seed. The numbers differ from those of
    /// [`Self::new`], but have the same distribution and bounds, and are generated in a fraction of
    /// the time. Their bits are reproducible only on the same device. Normal numbers of up to 32
    /// bits are generated in single precision.
    ///
    /// # Errors
    /// Fails if the `init` does not fit the element type.
    pub fn secret(
        init: &TensorInit,
        (dtype, shape): (Dtype, &[u64]),
        name: &str,
    ) -> Result<Self, InitError> {
        let mut params = Self::new(init, (dtype, shape), name)?;
        params.secret = 1;
        if let ElementGenerator::Normal { mean, std } = ElementGenerator::new(init, dtype, shape)?
            && dtype.is_float()
            && dtype.part().size() <= 4
            && mean.abs() + 10.0 * std.abs() < QUICK_RANGE
            && QUICK_DEVIATIONS.contains(&std.abs())
        {
            params.generator = QUICK_NORMAL;
        }
        Ok(params)
    }

    fn set_columns(&mut self, generator: u32, ranges: impl ExactSizeIterator<Item = [u64; 2]>) {
        (self.generator, self.columns) = (generator, ranges.len() as u32);
        for (slot, word) in self.table.iter_mut().zip(ranges.flatten()) {
            *slot = word;
        }
    }

    fn set_rising(&mut self, generator: u32, low: i128, points: u64, top: u64) {
        (self.generator, self.low) = (generator, low as u64);
        (self.points, self.span) = (points, top);
    }

    /// Returns parameters for content that repeats a pattern of eight bytes, the lowest byte first.
    pub(super) fn repeated(pattern: u64) -> Self {
        Self { pattern: pattern.to_le(), ..Self::zeroed() }
    }
}

/// Tolerance of an element: |actual − expected| ≤ atol + rtol·|expected|.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearTolerance {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance, a factor of |expected|.
    pub rtol: f64,
    /// Whether NaN matches NaN, and an infinity matches an infinity of the same sign.
    pub allow_non_finite: bool,
}

/// Returns the position of an element type in `enum { F64, F32, … }` of support.cu. For a complex
/// type, it is the position of the type of its parts.
pub(super) fn dtype_number(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::Float64 | Dtype::Complex128 => 0,
        Dtype::Float32 | Dtype::Complex64 => 1,
        Dtype::Float16 => 2,
        Dtype::Bfloat16 => 3,
        Dtype::Float8E4m3 => 4,
        Dtype::Float8E5m2 => 5,
        Dtype::Int8 => 6,
        Dtype::Int16 => 7,
        Dtype::Int32 => 8,
        Dtype::Int64 => 9,
        Dtype::Uint8 => 10,
        Dtype::Uint16 => 11,
        Dtype::Uint32 => 12,
        Dtype::Uint64 => 13,
        Dtype::Bool => 14,
        Dtype::Float8E8m0 => 15,
        Dtype::Float4E2m1x2 => 16,
        Dtype::Int4x2 => 17,
        Dtype::Uint4x2 => 18,
    }
}

/// The built-in kernels, loaded on a device.
pub struct Support {
    module: Module,
    /// The kernels that have been used so far.
    functions: RefCell<Vec<KernelFunction>>,
    multiprocessors: u32,
    shared_bytes: u32,
    /// A word that the scrubbing kernels use, and to which a comparison writes the index that it
    /// finds.
    cell: DeviceBuffer,
    /// Cells for the findings of an inspection.
    pub(super) cells: Cells,
}

impl Support {
    /// Loads the kernels.
    ///
    /// # Errors
    /// Fails if the image does not fit this device, or if there is too little memory.
    pub fn load(
        context: &Context,
        image: &Image,
        device: &DeviceInfo,
    ) -> Result<Self, DeviceError> {
        Ok(Self {
            module: Module::load(context, image)?,
            functions: RefCell::default(),
            multiprocessors: device.multiprocessors,
            shared_bytes: device.max_shared_optin_bytes,
            cell: DeviceBuffer::new(context, 8, "the worker's own use")?,
            cells: Cells::new(context)?,
        })
    }

    /// Returns the index of the first byte in which the device memory at `address` differs from
    /// `other`. Compares the first `bytes` bytes of both.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn first_difference(
        &self,
        address: u64,
        other: &DeviceBuffer,
        bytes: usize,
        stream: &Stream,
    ) -> Result<Option<u64>, DeviceError> {
        self.cell.fill(0xFF, stream)?;
        let mut arguments = Params::new();
        arguments.push_address(address).push_address(other.address());
        arguments.push(&(bytes as u64).to_ne_bytes()).push_address(self.cell.address());
        self.launch("wg_differ", self.spread(bytes as u64 / 8 + 1), arguments, stream)?;
        let first = self.read_cell(stream)?;
        Ok((first != u64::MAX).then_some(first))
    }

    /// Returns whether
    /// [`Inspection::first_not_near`](super::inspection::Inspection::first_not_near) supports
    /// elements of this type, which double precision represents exactly. The host compares elements
    /// of other types. Complex elements are compared by their parts.
    pub fn compares(dtype: Dtype) -> bool {
        matches!(
            dtype.part(),
            Dtype::Float64
                | Dtype::Float32
                | Dtype::Float16
                | Dtype::Bfloat16
                | Dtype::Int8
                | Dtype::Int16
                | Dtype::Int32
                | Dtype::Uint8
                | Dtype::Uint16
                | Dtype::Uint32
                | Dtype::Bool
        )
    }

    /// Queues moving each of `count` elements at an address by `steps` units in the last place, as
    /// [`warpgauge_tensor::nudge`] does.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn nudge(
        &self,
        address: u64,
        (dtype, count): (Dtype, u64),
        (steps, seed): (u32, u64),
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(address).push(&count.to_ne_bytes());
        arguments.push(&dtype_number(dtype).to_ne_bytes()).push(&steps.to_ne_bytes());
        arguments.push(&seed.to_ne_bytes());
        self.launch("wg_nudge", self.spread(count), arguments, stream)
    }

    fn read_cell(&self, stream: &Stream) -> Result<u64, DeviceError> {
        let mut word = [0; 8];
        self.cell.copy_to_host(0, &mut word, stream)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Queues a kernel that zeroes the shared memory of every multiprocessor.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn scrub_shared(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.cell.fill(0, stream)?;
        let mut arguments = Params::new();
        arguments.push_address(self.cell.address());
        arguments.push(&(self.shared_bytes / 4).to_ne_bytes());
        let mut shape = LaunchShape::linear(self.multiprocessors, SCRUB_THREADS);
        shape.shared_bytes = self.shared_bytes;
        shape.cooperative = true;
        self.launch("wg_scrub_shared", shape, arguments, stream)
    }

    /// Returns a launch like that of [`Self::scrub_shared`], for frequent use. `cell` is the
    /// address of a word that must be 0.
    pub(super) fn wipe_launch(&self, cell: u64) -> Result<PreparedLaunch, DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(cell).push(&(self.shared_bytes / 4).to_ne_bytes());
        arguments.push(&WIPE_PATIENCE_NS.to_ne_bytes());
        let mut shape = LaunchShape::linear(self.multiprocessors, SCRUB_THREADS);
        shape.shared_bytes = self.shared_bytes;
        PreparedLaunch::new(self.module.function("wg_wipe_shared")?, shape, arguments)
    }

    /// Queues zeroing the local memory of as many threads as fit on the device, at least `bytes`
    /// for each thread. Returns `Ok(false)` without queueing if `bytes` exceeds
    /// [`MAX_LOCAL_SCRUB_BYTES`].
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn scrub_local(&self, bytes: u64, stream: &Stream) -> Result<bool, DeviceError> {
        let symbol = if bytes <= SMALL_LOCAL_SCRUB_BYTES {
            "wg_scrub_local_small"
        } else if bytes <= MAX_LOCAL_SCRUB_BYTES {
            "wg_scrub_local_large"
        } else {
            return Ok(false);
        };
        let resident = self.module.function(symbol)?.max_active_blocks(SCRUB_THREADS, 0)?;
        self.cell.fill(0, stream)?;
        let mut arguments = Params::new();
        arguments.push_address(self.cell.address()).push(&0u32.to_ne_bytes());
        let mut shape = LaunchShape::linear(self.multiprocessors * resident.max(1), SCRUB_THREADS);
        shape.cooperative = true;
        self.launch(symbol, shape, arguments, stream)?;
        Ok(true)
    }

    /// Returns a launch that copies the `count` ranges of a table, with `bytes` bytes in total. The
    /// table contains 64-bit words: target, source and number of bytes of each range.
    pub(super) fn copy_launch(
        &self,
        table: u64,
        count: u32,
        bytes: u64,
    ) -> Result<PreparedLaunch, DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(table).push(&count.to_ne_bytes());
        let function = self.module.function("wg_copy_ranges")?;
        PreparedLaunch::new(function, self.spread(bytes.div_ceil(16)), arguments)
    }

    /// Queues a blocking kernel. The device writes `generation` to the first of `words` when it
    /// arrives, and continues after the second contains it.
    pub(super) fn block(
        &self,
        words: [u64; 2],
        generation: u32,
        quiet_ns: u32,
        patience_ns: u64,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(words[0]).push_address(words[1]);
        arguments.push(&generation.to_ne_bytes()).push(&quiet_ns.to_ne_bytes());
        arguments.push(&patience_ns.to_ne_bytes());
        self.launch("wg_block", LaunchShape::linear(1, 1), arguments, stream)
    }

    /// Queues reading the cycle counter and the time on every multiprocessor.
    pub(super) fn stamp(
        &self,
        slots: u64,
        multiprocessors: u32,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(slots).push(&multiprocessors.to_ne_bytes());
        self.launch("wg_stamp", LaunchShape::linear(multiprocessors, 32), arguments, stream)
    }

    /// Returns a launch of an empty kernel, which measures the overhead of a launch.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn empty_launch(&self) -> Result<PreparedLaunch, DeviceError> {
        let function = self.module.function("wg_empty")?;
        PreparedLaunch::new(function, LaunchShape::linear(1, 32), Params::new())
    }

    pub(super) fn launch(
        &self,
        symbol: &str,
        shape: LaunchShape,
        arguments: Params,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let known = self.functions.borrow().iter().find(|known| known.symbol() == symbol).cloned();
        let function = match known {
            Some(function) => function,
            None => {
                let function = self.module.function(symbol)?;
                self.functions.borrow_mut().push(function.clone());
                function
            }
        };
        PreparedLaunch::new(function, shape, arguments)?.launch(stream)
    }

    /// Returns a launch with enough blocks for `threads` threads, but no more than are required to
    /// keep the device busy. The kernels loop over the remaining work.
    pub(super) fn spread(&self, threads: u64) -> LaunchShape {
        let most = u64::from(self.multiprocessors) * 16;
        let blocks = threads.div_ceil(u64::from(THREADS)).clamp(1, most.max(1));
        LaunchShape::linear(blocks as u32, THREADS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_block_has_the_layout_of_the_kernel() {
        assert_eq!(size_of::<InitParams>(), 336);
        let declared = SOURCE.split("enum { F64").nth(1).unwrap();
        let names: Vec<&str> = declared.split(" }").next().unwrap().split(", ").skip(1).collect();
        let ours = ["F32", "F16", "BF16", "E4M3", "E5M2", "I8", "I16", "I32", "I64", "U8", "U16"];
        assert_eq!(names[..11], ours);
        let numbers = Dtype::ALL.map(dtype_number);
        let distinct: std::collections::BTreeSet<u32> = numbers.into_iter().collect();
        assert!(distinct.into_iter().eq(0..=names.len() as u32));
        for dtype in Dtype::ALL {
            assert_eq!(dtype_number(dtype), dtype_number(dtype.part()), "{dtype}");
        }
    }
}
