//! Checks that seeded content has the same bits on the device and on the CPU, and that the device
//! recognises it.

use super::bench::{Bench, buffer, init};
use super::checks::ensure;
use crate::protocol::{Argument, BufferContent, EvaluatePlan, WorkerJob};
use warpgauge_contract::Role;
use warpgauge_device::support::InitParams;
use warpgauge_device::{RangeContent, RangeContents};
use warpgauge_tensor::{Dtype, InitKind, OffsetsInit, PairInit, ScaleLayout, TensorInit};

/// Number of blocks that write or compare a tensor.
pub(super) const BLOCKS: u32 = 4;

/// Returns the argument that describes a tensor's content from element `first` on.
pub(super) fn described(params: InitParams, first: u64, elements: u64, dtype: Dtype) -> Argument {
    // The address is a separate argument.
    let bytes = elements as usize * dtype.size();
    let (contents, _) = RangeContents::new(
        &[RangeContent::tensor(params, first * dtype.parts(), (0, bytes))],
        |_| BLOCKS,
    );
    Argument::Scalar(bytemuck::bytes_of(&contents).to_vec())
}

/// Checks every element type and kind. The bits that the worker writes must equal the CPU's. The
/// bits that the worker's kernel writes from the middle of a tensor must, too.
pub(super) async fn init_bits(bench: &Bench) -> Result<String, String> {
    const ELEMENTS: u64 = 100_003;
    const FIRST: u64 = 12_345_678_900;
    let mut compared = 0;
    for dtype in Dtype::ALL {
        for kind in KINDS {
            let spec = spec_of(kind, dtype, ELEMENTS);
            if InitParams::new(&spec, (dtype, &[ELEMENTS]), "tensor").is_err() {
                continue;
            }
            let content = BufferContent::Init(Box::new(spec.clone()));
            let buffers = vec![buffer("tensor", dtype, ELEMENTS, Role::Inout, content)];
            let launch = bench.launch("st_nothing", vec![Argument::Buffer(0)], 1);
            let job = bench.job(launch, buffers);
            has_bits(bench, job, &spec, (dtype, &[ELEMENTS]), 0).await?;
            let elements = ELEMENTS / 10;
            let spec = spec_of(kind, dtype, FIRST + elements);
            let shape = [FIRST + elements];
            if let Ok(params) = InitParams::new(&spec, (dtype, &shape), "tensor") {
                let content = described(params, FIRST, elements, dtype);
                let arguments = vec![Argument::Buffer(0), content];
                let launch = bench.support("wg_write", arguments, BLOCKS);
                let undefined = BufferContent::Undefined;
                let buffers = vec![buffer("tensor", dtype, elements, Role::Output, undefined)];
                let job = bench.job(launch, buffers);
                has_bits(bench, job, &spec, (dtype, &shape), FIRST).await?;
            }
            let few = ELEMENTS / 100;
            is_known_again(bench, &spec_of(kind, dtype, few), dtype, few).await?;
            compared += 1;
        }
    }
    Ok(format!("{compared} combinations are equal to the CPU's"))
}

/// Returns content of a kind for a tensor of one dimension.
fn spec_of(kind: InitKind, dtype: Dtype, elements: u64) -> TensorInit {
    let mut spec = init(kind);
    spec.fill_value = Some(1.0);
    spec.start = dtype.is_float().then_some(-1000.5);
    spec.step = dtype.is_float().then_some(0.37);
    let offsets = |elements, top| {
        let (name, seed) = ("offsets".to_owned(), Some(3));
        Some(Box::new(OffsetsInit { name, elements, top, seed }))
    };
    match kind {
        InitKind::Quantized => {
            let scales = vec![(elements * dtype.parts()).div_ceil(7)];
            spec.pair = pair((scale_type(dtype), scales), vec![7], ScaleLayout::Rows);
        }
        InitKind::Scales => {
            let values = if dtype == Dtype::Float32 { Dtype::Float4E2m1x2 } else { Dtype::Int8 };
            spec.pair = pair((values, vec![elements]), Vec::new(), ScaleLayout::Rows);
        }
        InitKind::ZeroPoints => {
            let values = if dtype == Dtype::Uint8 { Dtype::Uint8 } else { Dtype::Uint4x2 };
            spec.pair = pair((values, vec![elements]), Vec::new(), ScaleLayout::Rows);
        }
        InitKind::Choice => spec.values = vec![1.0, 0.0, 1.0],
        InitKind::Sorted if dtype.size() == 8 => {
            (spec.high, spec.unique) = (Some(2f64.powi(61)), !dtype.is_float());
        }
        InitKind::Offsets => spec.high = Some(if dtype.size() > 2 { 1_000_000.0 } else { 100.0 }),
        InitKind::Lengths => spec.offsets = offsets(elements + 1, 3 * elements),
        InitKind::Segments => spec.offsets = offsets(elements / 3, elements),
        _ => (),
    }
    spec
}

/// Returns the part of an `init` that describes the scales of quantised values, or the values of
/// scales.
fn pair(
    (dtype, shape): (Dtype, Vec<u64>),
    block: Vec<u64>,
    layout: ScaleLayout,
) -> Option<Box<PairInit>> {
    let (name, seed) = ("other".to_owned(), Some(3));
    let (std, has_global) = (None, false);
    Some(Box::new(PairInit { name, dtype, shape, seed, std, block, layout, has_global }))
}

/// Returns another type of scales for each type of values.
fn scale_type(values: Dtype) -> Dtype {
    match values {
        Dtype::Float4E2m1x2 => Dtype::Float8E4m3,
        Dtype::Int4x2 => Dtype::Float16,
        Dtype::Float8E4m3 => Dtype::Bfloat16,
        Dtype::Float8E5m2 => Dtype::Float8E8m0,
        _ => Dtype::Float32,
    }
}

/// Checks quantised values whose scales belong to blocks of several dimensions, in each layout of
/// the scales.
pub(super) async fn scale_layouts(bench: &Bench) -> Result<String, String> {
    const SHAPE: [u64; 3] = [3, 200, 90];
    const FIRST: u64 = 40;
    let elements = SHAPE.iter().product::<u64>() - FIRST;
    let mut compared = 0;
    for dtype in [
        Dtype::Float4E2m1x2,
        Dtype::Int4x2,
        Dtype::Uint4x2,
        Dtype::Float8E4m3,
        Dtype::Float8E5m2,
        Dtype::Int8,
        Dtype::Uint8,
    ] {
        let across = (SHAPE[2] * dtype.parts()).div_ceil(16);
        for (layout, block, scales) in [
            (ScaleLayout::Rows, vec![2, 64, 16], vec![2, 4, across]),
            (ScaleLayout::Transposed, vec![1, 64, 16], vec![across, 4, 3]),
            (ScaleLayout::Tiles128x4, vec![1, 1, 16], vec![3, 256, across.div_ceil(4) * 4]),
        ] {
            let mut spec = init(InitKind::Quantized);
            if dtype.zero_points().is_some() {
                let zeros = (Dtype::Int32, scales.clone());
                spec.zeros_pair = pair(zeros, Vec::new(), ScaleLayout::Rows);
            }
            if layout == ScaleLayout::Rows {
                let global = (Dtype::Float32, vec![1]);
                spec.global_pair = pair(global, Vec::new(), ScaleLayout::Rows);
            }
            spec.pair = pair((scale_type(dtype), scales), block, layout);
            let params = InitParams::new(&spec, (dtype, &SHAPE), "tensor")
                .map_err(|error| error.to_string())?;
            let arguments = vec![Argument::Buffer(0), described(params, FIRST, elements, dtype)];
            let launch = bench.support("wg_write", arguments, BLOCKS);
            let undefined = BufferContent::Undefined;
            let buffers = vec![buffer("tensor", dtype, elements, Role::Output, undefined)];
            let job = bench.job(launch, buffers);
            has_bits(bench, job, &spec, (dtype, &SHAPE), FIRST).await?;
            compared += 1;
        }
    }
    Ok(format!("{compared} combinations are equal to the CPU's"))
}

/// Checks that the worker's comparison kernel finds no difference in a tensor's content, and that
/// it finds one if the expected content begins at another element.
async fn is_known_again(
    bench: &Bench,
    spec: &TensorInit,
    dtype: Dtype,
    elements: u64,
) -> Result<(), String> {
    const NOTHING: u64 = 1 << 40;
    let mut nothing = init(InitKind::Full);
    nothing.fill_value = Some(NOTHING as f64);
    let params =
        InitParams::new(spec, (dtype, &[elements]), "tensor").map_err(|error| error.to_string())?;
    for first in [0, 4] {
        // In uniform content every part equals the first.
        let uniform = matches!(spec.kind, InitKind::Zeros | InitKind::Ones | InitKind::Full);
        // The sequence begins far below the smallest value of a one-byte type.
        let saturated = spec.kind == InitKind::Arange && dtype.is_float() && dtype.size() == 1;
        // These kinds are not defined beyond the end of the tensor.
        let ends = matches!(spec.kind, InitKind::Segments | InitKind::Sorted);
        if first > 0 && (uniform || saturated || ends || dtype == Dtype::Bool) {
            continue;
        }
        let buffers = vec![
            buffer(
                "tensor",
                dtype,
                elements,
                Role::Inout,
                BufferContent::Init(Box::new(spec.clone())),
            ),
            buffer(
                "lowest",
                Dtype::Uint64,
                1,
                Role::Inout,
                BufferContent::Init(Box::new(nothing.clone())),
            ),
        ];
        let content = described(params, first, elements, dtype);
        let arguments = vec![Argument::Buffer(0), content, Argument::Buffer(1)];
        let job = bench.job(bench.support("wg_look", arguments, BLOCKS), buffers);
        let outcome = bench.succeed(job).await?;
        let words = bench.words(&outcome, 1)?;
        let found = u64::from(words[0]) | u64::from(words[1]) << 32;
        let right = if first == 0 { found == NOTHING } else { found < elements };
        ensure(right, || {
            format!(
                "{elements} elements of {dtype} {:?} compared from element {first} on: byte {found}",
                spec.kind
            )
        })?;
    }
    Ok(())
}

const KINDS: [InitKind; 16] = [
    InitKind::Zeros,
    InitKind::Ones,
    InitKind::Full,
    InitKind::Arange,
    InitKind::Uniform,
    InitKind::Randn,
    InitKind::Randint,
    InitKind::Permutation,
    InitKind::Sorted,
    InitKind::Offsets,
    InitKind::Lengths,
    InitKind::Segments,
    InitKind::Choice,
    InitKind::Quantized,
    InitKind::Scales,
    InitKind::ZeroPoints,
];

/// Checks that the job's only buffer finally has the content of `spec` from element `first` on.
async fn has_bits(
    bench: &Bench,
    mut job: WorkerJob<EvaluatePlan>,
    spec: &TensorInit,
    (dtype, shape): (Dtype, &[u64]),
    first: u64,
) -> Result<(), String> {
    job.task.keep_outputs.clear();
    let elements = (shape.iter().product::<u64>() - first) as usize;
    let mut expected = vec![0; elements * dtype.size()];
    warpgauge_tensor::fill_parallel(spec, (dtype, shape), "tensor", first, &mut expected)
        .map_err(|error| error.to_string())?;
    let outcome = bench.succeed(job).await?;
    let actual = outcome.told.outputs.first().map(|output| output.blake3.as_str());
    let hash = blake3::hash(&expected).to_hex();
    ensure(actual == Some(hash.as_str()), || {
        format!("{elements} elements of {dtype} {:?} from {first} on differ", spec.kind)
    })
}
