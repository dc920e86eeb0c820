//! Seeded content is the same bits on the device and on the CPU.

use super::bench::{Bench, buffer, init};
use super::checks::ensure;
use crate::protocol::{Argument, Content, EvaluatePlan, Job};
use warpgauge_contract::Role;
use warpgauge_device::support::InitParams;
use warpgauge_tensor::{Dtype, InitKind, TensorInit};

/// Every element type and kind: the bits of the worker's content and of its kernel, entered in the
/// middle of a stream, equal the CPU's.
pub(super) async fn init_bits(bench: &Bench) -> Result<String, String> {
    const ELEMENTS: u64 = 100_003;
    const FIRST: u64 = 12_345_678_900;
    let mut compared = 0;
    for dtype in Dtype::ALL {
        for kind in KINDS {
            let mut spec = init(kind);
            spec.fill_value = Some(1.0);
            spec.start = dtype.is_float().then_some(-1000.5);
            spec.step = dtype.is_float().then_some(0.37);
            let Ok(params) = InitParams::new(&spec, dtype, "tensor") else {
                continue;
            };
            let content = Content::Init(spec.clone());
            let buffers = vec![buffer("tensor", dtype, ELEMENTS, Role::Inout, content)];
            let launch = bench.launch("st_nothing", vec![Argument::Buffer(0)], 1);
            let job = bench.job(launch, buffers);
            has_bits(bench, job, &spec, dtype, 0).await?;
            let elements = ELEMENTS / 10;
            let arguments = vec![
                Argument::Buffer(0),
                Argument::Scalar(FIRST.to_ne_bytes().to_vec()),
                Argument::Scalar(elements.to_ne_bytes().to_vec()),
                Argument::Scalar(bytemuck::bytes_of(&params).to_vec()),
            ];
            let launch = bench.support("wg_init", arguments, 4);
            let undefined = Content::Undefined;
            let buffers = vec![buffer("tensor", dtype, elements, Role::Output, undefined)];
            has_bits(bench, bench.job(launch, buffers), &spec, dtype, FIRST).await?;
            compared += 1;
        }
    }
    Ok(format!("{compared} combinations are equal to the CPU's"))
}

const KINDS: [InitKind; 7] = [
    InitKind::Zeros,
    InitKind::Ones,
    InitKind::Full,
    InitKind::Arange,
    InitKind::Uniform,
    InitKind::Randn,
    InitKind::Randint,
];

/// The job's only buffer ends with the content of `spec` from element `first` on.
async fn has_bits(
    bench: &Bench,
    mut job: Job<EvaluatePlan>,
    spec: &TensorInit,
    dtype: Dtype,
    first: u64,
) -> Result<(), String> {
    job.task.keep_outputs.clear();
    let elements = job.program.buffers[0].shape[0] as usize;
    let mut expected = vec![0; elements * dtype.size()];
    warpgauge_tensor::fill_parallel(spec, dtype, "tensor", first, &mut expected)
        .map_err(|error| error.to_string())?;
    let outcome = bench.succeed(job).await?;
    let actual = outcome.told.outputs.first().map(|output| output.blake3.as_str());
    let hash = blake3::hash(&expected).to_hex();
    ensure(actual == Some(hash.as_str()), || {
        format!("{elements} elements of {dtype} {:?} from {first} on differ", spec.kind)
    })
}
