//! Kernels of many kinds, each against a reference on the CPU that works in another way, and each
//! under the sanitiser too, which must find nothing in them. There the counts of the instructions add
//! up to those of the launch.

mod crypto;
mod cub;
mod fft;
mod gemm;
mod graph;
mod groups;
mod image;
mod language;
mod learning;
mod math;
mod scan;
mod science;
mod sort;
mod toolkit;

use crate::common::{ARCHS, Device, Params, adds_up};

/// Parameters of a kernel, in order.
macro_rules! args {
    ($($v:expr),* $(,)?) => { crate::common::Params::default()$(.arg($v))* };
}
pub(crate) use args;

/// Whether the kernels run for every architecture, and not for the newest alone.
///
/// The texts for different architectures differ little, so that the newest is what a change is tried
/// with. All of them run with `WARPGAUGE_TEST_ARCHITECTURES=all`, which `cargo xtask test` sets where
/// `CI` is set, and so in `.ci/run`; and in nextest's profile `ci`.
fn every_architecture() -> bool {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|it| it == value);
    is("WARPGAUGE_TEST_ARCHITECTURES", "all") || is("NEXTEST_PROFILE", "ci")
}

/// Runs `f` for PTX of the last of these architectures, or of each ([`every_architecture`]), without
/// and with the sanitiser.
fn on(name: &str, archs: &[&str], f: impl Fn(&mut Device)) {
    let first = if every_architecture() { 0 } else { archs.len() - 1 };
    for arch in &archs[first..] {
        for sanitize in [false, true] {
            let mut d = Device::new(&format!("{name}.{arch}"));
            d.sanitize = sanitize;
            (d.count, d.by_instruction) = (sanitize, sanitize);
            d.memory.track_initialisation(sanitize);
            f(&mut d);
        }
    }
}

/// The same for a source that is compiled for all architectures.
fn everywhere(name: &str, f: impl Fn(&mut Device)) {
    on(name, &ARCHS, f);
}

/// Extents of a grid or block.
trait Shape {
    fn shape(self) -> [u32; 3];
}

impl Shape for usize {
    fn shape(self) -> [u32; 3] {
        [self as u32, 1, 1]
    }
}

impl Shape for (usize, usize) {
    fn shape(self) -> [u32; 3] {
        [self.0 as u32, self.1 as u32, 1]
    }
}

impl Shape for (usize, usize, usize) {
    fn shape(self) -> [u32; 3] {
        [self.0 as u32, self.1 as u32, self.2 as u32]
    }
}

/// Launches a kernel with `shared` bytes of dynamic shared memory. It must end, and the sanitiser
/// must find nothing.
fn go(d: &Device, kernel: &str, grid: impl Shape, block: impl Shape, shared: usize, p: &Params) {
    let report = d
        .try_run(kernel, grid.shape(), block.shape(), shared as u32, p)
        .unwrap_or_else(|f| panic!("{kernel}: {f}"));
    assert!(report.findings.is_empty(), "{kernel}: {:#?}", report.findings);
    assert_eq!(report.instructions.is_empty(), !d.by_instruction, "{kernel}");
    if d.by_instruction {
        adds_up(kernel, &report);
    }
}

/// Every element within `tolerance`, relative to the reference, or absolute where that is below 1.
fn close(got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*g) - w).abs();
        assert!(error <= tolerance * w.abs().max(1.0), "element {i}: {g}, not {w}");
    }
}

/// The same in double precision.
fn close64(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * w.abs().max(1.0), "element {i}: {g}, not {w}");
    }
}
