//! Thread instructions a second of four kernels.
#![allow(missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use common::{Device, Params, Random};

/// Processor time of this process so far.
fn processor() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Runs a kernel five times and prints the best rate, by the clock and by processor time, which
/// does not suffer from what else the machine does.
fn rate(name: &str, dev: &Device, kernel: &str, grid: [u32; 3], block: [u32; 3], params: &Params) {
    let (mut best, mut least) = (f64::INFINITY, f64::INFINITY);
    let mut threads = 0;
    for _ in 0..5 {
        let (begin, spent) = (Instant::now(), processor());
        let report =
            dev.try_run(kernel, grid, block, 0, params).unwrap_or_else(|f| panic!("{kernel}: {f}"));
        best = best.min(begin.elapsed().as_secs_f64());
        least = least.min((processor() - spent).as_secs_f64());
        threads = report.counts.thread_instructions;
    }
    let (ms, giga, core) = (best * 1e3, threads as f64 / best / 1e9, threads as f64 / least / 1e9);
    println!(
        "{name:20} {threads:>10} thread instr {ms:>8.2} ms {giga:>5.2} G/s, {core:.2} per core"
    );
}

fn main() {
    let count = std::env::args().any(|a| a == "--count");
    let device = |name| {
        let mut dev = Device::new(name);
        dev.count = count;
        dev
    };
    let mut random = Random(1);
    let n = 1 << 20;

    let dev = device("vadd.80");
    let (x, y) = (dev.upload(&random.floats(n)), dev.upload(&random.floats(n)));
    let z = dev.alloc::<f32>(n);
    let params = Params::default().arg(x).arg(y).arg(z).arg(n as i32);
    rate("vector_add 1 M", &dev, "vector_add", [(n / 256) as u32, 1, 1], [256, 1, 1], &params);

    let dev = device("matmul.80");
    let m = 512;
    let (x, y) = (dev.upload(&random.floats(m * m)), dev.upload(&random.floats(m * m)));
    let z = dev.alloc::<f32>(m * m);
    let params = Params::default().arg(x).arg(y).arg(z).arg(m as i32).arg(m as i32).arg(m as i32);
    let grid = [m as u32 / 16, m as u32 / 16, 1];
    rate("matmul tiled 512^3", &dev, "matmul_tiled", grid, [16, 16, 1], &params);

    let dev = device("reduce.80");
    let x = dev.upload(&random.floats(n));
    let out = dev.upload(&[0f32]);
    let params = Params::default().arg(x).arg(out).arg(n as i32);
    rate("reduce_sum 1 M", &dev, "reduce_sum", [256, 1, 1], [256, 1, 1], &params);

    let dev = device("softmax.80");
    let (rows, cols) = (256, 1000);
    let x = dev.upload(&random.floats(rows * cols));
    let y = dev.alloc::<f32>(rows * cols);
    let params = Params::default().arg(x).arg(y).arg(rows as i32).arg(cols as i32);
    rate("softmax 256 x 1000", &dev, "softmax", [rows as u32, 1, 1], [256, 1, 1], &params);
}
