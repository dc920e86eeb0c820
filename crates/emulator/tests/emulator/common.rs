//! A device for tests: memory, a module and launches.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use warpgauge_emulator::counts::INSTRUCTION_VALUES;
use warpgauge_emulator::{
    AllocKind, LaunchConfig, LaunchFault, LaunchOptions, LaunchReport, Memory, Module, launch,
};

/// The architectures for which there is PTX of most kernels, oldest first.
pub const ARCHS: [&str; 3] = ["75", "80", "90"];

pub struct Device {
    pub memory: Arc<Memory>,
    pub module: Module,
    pub printed: Mutex<Vec<u8>>,
    pub sanitize: bool,
    pub count: bool,
    pub by_instruction: bool,
    pub order: u64,
    pub seconds: u64,
    pub cooperative: bool,
}

/// Plain values that have bytes.
pub trait Plain: Copy + Default {
    fn bytes(self) -> Vec<u8>;
    fn from_bytes(b: &[u8]) -> Self;
    const SIZE: usize;
}

macro_rules! plain {
    ($($t:ty)*) => {$(
        impl Plain for $t {
            fn bytes(self) -> Vec<u8> { self.to_le_bytes().to_vec() }
            fn from_bytes(b: &[u8]) -> Self { <$t>::from_le_bytes(b.try_into().unwrap()) }
            const SIZE: usize = size_of::<$t>();
        }
    )*};
}
plain!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

/// Parameters as a kernel has them, each aligned to its size.
#[derive(Default, Clone)]
pub struct Params(pub Vec<u8>);

impl Params {
    pub fn arg<T: Plain>(mut self, v: T) -> Self {
        self.0.resize(self.0.len().next_multiple_of(T::SIZE), 0);
        self.0.extend(v.bytes());
        self
    }
}

/// Where the compiled kernels are.
pub fn ptx_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx")
}

/// PTX of a source for an architecture, by both of their names: `vadd.80`.
///
/// A text that differs from that for the architecture before in its `.target` alone has no file: it
/// is made here from the file of the newest architecture that is not newer.
pub fn ptx(name: &str) -> String {
    let (source, arch) = name.split_once('.').unwrap_or_else(|| panic!("{name}: which PTX?"));
    let asked: u32 = arch.parse().unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut path = ARCHS
        .iter()
        .rev()
        .filter(|arch| arch.parse::<u32>().is_ok_and(|arch| arch <= asked))
        .map(|arch| ptx_folder().join(format!("{source}.{arch}.ptx")));
    let path = path.find(|path| path.exists());
    let path = path.unwrap_or_else(|| panic!("{name}: no PTX for it or an older architecture"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    with_target(&text, &format!(".target sm_{arch}"))
}

/// A text with another `.target` line.
pub fn with_target(text: &str, target: &str) -> String {
    let place = text.find("\n.target ").expect("PTX names its target") + 1;
    let end = text[place..].find('\n').map_or(text.len(), |length| place + length);
    [&text[..place], target, &text[end..]].concat()
}

impl Device {
    pub fn new(name: &str) -> Self {
        Self::from_ptx(&ptx(name))
    }

    pub fn from_ptx(text: &str) -> Self {
        let memory = Arc::new(Memory::new());
        let module = Module::load(text, &memory, 0).unwrap_or_else(|e| panic!("{e}"));
        let printed = Mutex::default();
        Self {
            memory,
            module,
            printed,
            sanitize: false,
            count: false,
            by_instruction: false,
            order: 0,
            seconds: 60,
            cooperative: false,
        }
    }

    pub fn alloc<T: Plain>(&self, n: usize) -> u64 {
        self.memory.alloc((n * T::SIZE) as u64, AllocKind::Device(0)).unwrap()
    }

    pub fn upload<T: Plain>(&self, data: &[T]) -> u64 {
        let va = self.alloc::<T>(data.len());
        let bytes: Vec<u8> = data.iter().flat_map(|v| v.bytes()).collect();
        self.memory.write(va, &bytes).unwrap();
        va
    }

    pub fn download<T: Plain>(&self, va: u64, n: usize) -> Vec<T> {
        let mut bytes = vec![0; n * T::SIZE];
        self.memory.read(va, &mut bytes).unwrap();
        bytes.chunks(T::SIZE).map(T::from_bytes).collect()
    }

    pub fn try_run(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        params: &Params,
    ) -> Result<LaunchReport, Box<LaunchFault>> {
        let f = self.module.function(kernel).unwrap_or_else(|| panic!("no kernel {kernel}"));
        let cfg = LaunchConfig {
            grid,
            block,
            dynamic_shared_bytes: shared,
            cooperative: self.cooperative,
        };
        let print = |text: &[u8]| self.printed.lock().unwrap().extend_from_slice(text);
        let opts = LaunchOptions {
            deadline: Some(Instant::now() + Duration::from_secs(self.seconds)),
            cancel: None,
            printf: &print,
            sm_count: 8,
            device: 0,
            sanitize: self.sanitize,
            count: self.count,
            by_instruction: self.by_instruction,
            order: self.order,
        };
        launch(&f, &self.memory, &cfg, &params.0, &opts).map_err(Box::new)
    }

    pub fn run(&self, kernel: &str, grid: u32, block: u32, params: &Params) -> LaunchReport {
        self.try_run(kernel, [grid, 1, 1], [block, 1, 1], 0, params)
            .unwrap_or_else(|f| panic!("{kernel}: {f}"))
    }
}

/// Checks that the counts of instructions add up to those of the launch.
pub fn adds_up(kernel: &str, report: &LaunchReport) {
    let mut sums = [0; INSTRUCTION_VALUES];
    for one in &report.instructions {
        sums.iter_mut().zip(one.values()).for_each(|(sum, own)| *sum += own);
    }
    let c = &report.counts;
    let want = [
        c.warp_instructions,
        c.active_threads,
        c.thread_instructions,
        c.global_load_requests
            + c.global_store_requests
            + c.global_atomic_requests
            + c.global_reduction_requests,
        c.global_load_sectors + c.global_store_sectors + c.global_atomic_touched_sectors,
        c.global_load_ideal_sectors + c.global_store_ideal_sectors + c.global_atomic_ideal_sectors,
        c.shared_load_requests + c.shared_store_requests + c.shared_atomic_requests,
        c.shared_load_wavefronts + c.shared_store_wavefronts,
        c.shared_load_conflicts + c.shared_store_conflicts,
        c.local_load_requests + c.local_store_requests,
    ];
    assert_eq!(sums, want, "{kernel}");
}

/// Whether this process runs one test and no other: what a test measures of its process is its own.
pub fn alone() -> bool {
    let variable = |name| std::env::var(name).unwrap_or_default();
    variable("NEXTEST_EXECUTION_MODE") == "process-per-test" || !variable(ALONE).is_empty()
}

/// Runs one test again in a process of its own.
pub fn again(test: &str) {
    let program = std::env::current_exe().unwrap();
    let status = Command::new(program).args(["--exact", test]).env(ALONE, "1").status().unwrap();
    assert!(status.success(), "{test}: {status}");
}

const ALONE: &str = "WARPGAUGE_TEST_ALONE";

/// Numbers that are the same on every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Between −1 and 1.
    pub fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
}
