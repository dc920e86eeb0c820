//! Thread instructions a second of four kernels, in the three modes of a launch.
//!
//! `checked` is the ordinary mode, which has no faster one: every access of every lane is checked
//! for bounds, alignment, life of the allocation and permission to write, and a wrong one is a
//! fault. `counted` counts memory traffic as well, `sanitised` also looks for uninitialised reads,
//! races and divergent barriers.

#[path = "../tests/emulator/common.rs"]
mod common;

use std::hint::black_box;
use std::time::Duration;

use common::{Device, Params, Random};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// A kernel with its data in place.
struct Case {
    name: &'static str,
    device: Device,
    kernel: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    params: Params,
}

impl Case {
    /// Runs the kernel once; how many thread instructions that were.
    fn run(&self) -> u64 {
        let Self { device, kernel, grid, block, params, .. } = self;
        let report = device
            .try_run(kernel, *grid, *block, 0, params)
            .unwrap_or_else(|fault| panic!("{kernel}: {fault}"));
        assert!(report.findings.is_empty(), "{kernel}: {:?}", report.findings[0]);
        report.counts.thread_instructions
    }
}

/// A device with a module, in one of the modes; the sanitiser needs to know from the start.
fn device(module: &str, mode: &str) -> Device {
    let mut device = Device::new(module);
    device.count = mode == "counted";
    device.sanitize = mode == "sanitised";
    device.memory.track_initialisation(device.sanitize);
    device
}

fn vector_add(mode: &str) -> Case {
    let (device, mut random, n) = (device("vadd.80", mode), Random(1), 1 << 20);
    let (x, y) = (device.upload(&random.floats(n)), device.upload(&random.floats(n)));
    let z = device.alloc::<f32>(n);
    let params = Params::default().arg(x).arg(y).arg(z).arg(n as i32);
    let (grid, block) = ([(n / 256) as u32, 1, 1], [256, 1, 1]);
    Case { name: "vector_add_1M", device, kernel: "vector_add", grid, block, params }
}

fn matmul(mode: &str) -> Case {
    let (device, mut random, m) = (device("matmul.80", mode), Random(1), 512);
    let (x, y) = (device.upload(&random.floats(m * m)), device.upload(&random.floats(m * m)));
    let z = device.alloc::<f32>(m * m);
    let params = Params::default().arg(x).arg(y).arg(z).arg(m as i32).arg(m as i32).arg(m as i32);
    let (grid, block) = ([m as u32 / 16, m as u32 / 16, 1], [16, 16, 1]);
    Case { name: "matmul_tiled_512", device, kernel: "matmul_tiled", grid, block, params }
}

fn reduce_sum(mode: &str) -> Case {
    let (device, mut random, n) = (device("reduce.80", mode), Random(1), 1 << 20);
    let (x, out) = (device.upload(&random.floats(n)), device.upload(&[0f32]));
    let params = Params::default().arg(x).arg(out).arg(n as i32);
    let (grid, block) = ([256, 1, 1], [256, 1, 1]);
    Case { name: "reduce_sum_1M", device, kernel: "reduce_sum", grid, block, params }
}

fn softmax(mode: &str) -> Case {
    let (device, mut random) = (device("softmax.80", mode), Random(1));
    let (rows, cols) = (256, 1000);
    let x = device.upload(&random.floats(rows * cols));
    let y = device.alloc::<f32>(rows * cols);
    let params = Params::default().arg(x).arg(y).arg(rows as i32).arg(cols as i32);
    let (grid, block) = ([rows as u32, 1, 1], [256, 1, 1]);
    Case { name: "softmax_256x1000", device, kernel: "softmax", grid, block, params }
}

fn throughput(criterion: &mut Criterion) {
    for mode in ["checked", "counted", "sanitised"] {
        let mut group = criterion.benchmark_group(mode);
        for case in [vector_add(mode), matmul(mode), reduce_sum(mode), softmax(mode)] {
            group.throughput(Throughput::Elements(case.run()));
            group.bench_function(case.name, |bencher| bencher.iter(|| black_box(case.run())));
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    // A launch takes tens of milliseconds: few samples say enough.
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4));
    targets = throughput
}
criterion_main!(benches);
