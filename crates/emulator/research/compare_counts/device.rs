//! A device that cudarc accesses through the driver of a GPU, or through the emulator in its place.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use libloading::Library;

use super::Failure;
use super::cases::{Arg, Case};

const PTX: &str = include_str!("kernels.ptx");

/// Counts of one launch, by name.
pub type Counts = BTreeMap<String, u64>;

/// A device on which the kernels are loaded.
pub struct Device {
    stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
    /// The emulator's library, which supplies its counts.
    emulator: Option<Library>,
}

/// An argument that has been copied to the device.
enum Passed {
    Buffer(CudaSlice<u8>),
    Int(i32),
    Float(f32),
    Half(u16),
    Pair(u32),
}

impl Device {
    /// Opens the first device of the emulator at a path, or of the host's driver without a path.
    pub fn open(emulator: Option<&Path>) -> Result<Self, Failure> {
        let emulator = emulator.map(load_emulator).transpose()?;
        let context = CudaContext::new(0)?;
        let module = context.load_module(Ptx::from_src(PTX))?;
        Ok(Self { stream: context.default_stream(), module, emulator })
    }

    /// Launches a case once. Returns a checksum of the written buffers, and the emulator's counts.
    pub fn run(&mut self, case: &Case) -> Result<(u64, Option<Counts>), Failure> {
        let function = self.module.load_function(case.kernel)?;
        let args = case.args.iter().map(|arg| self.pass(arg)).collect::<Result<Vec<_>, _>>()?;
        self.take()?;
        self.launch(case, &function, &args)?;
        let mut checksum = 0xcbf2_9ce4_8422_2325_u64;
        for (arg, passed) in case.args.iter().zip(&args) {
            if let (Passed::Buffer(buffer), Arg::Out(_) | Arg::InOut(_)) = (passed, arg) {
                for byte in self.stream.clone_dtoh(buffer)? {
                    checksum = (checksum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
                }
            }
        }
        Ok((checksum, self.take()?))
    }

    fn pass(&self, arg: &Arg) -> Result<Passed, Failure> {
        Ok(match arg {
            Arg::In(bytes) | Arg::InOut(bytes) => Passed::Buffer(self.stream.clone_htod(bytes)?),
            Arg::Out(bytes) => Passed::Buffer(self.stream.clone_htod(&vec![0u8; *bytes])?),
            Arg::Int(value) => Passed::Int(*value),
            Arg::Float(value) => Passed::Float(*value),
            Arg::Half(value) => Passed::Half(*value),
            Arg::Pair(value) => Passed::Pair(*value),
        })
    }

    fn launch(&self, case: &Case, f: &CudaFunction, args: &[Passed]) -> Result<(), Failure> {
        let mut launch = self.stream.launch_builder(f);
        for arg in args {
            match arg {
                Passed::Buffer(buffer) => launch.arg(buffer),
                Passed::Int(value) => launch.arg(value),
                Passed::Float(value) => launch.arg(value),
                Passed::Half(value) => launch.arg(value),
                Passed::Pair(value) => launch.arg(value),
            };
        }
        let config = LaunchConfig {
            grid_dim: case.grid,
            block_dim: case.block,
            shared_mem_bytes: case.shared,
        };
        // SAFETY: the arguments match the kernel's signature, and every kernel stays within buffers
        // of the sizes in `cases`.
        unsafe { launch.launch(config) }?;
        Ok(self.stream.synchronize()?)
    }

    /// Returns the counts of the launch since the last call, if there was one. More than one launch
    /// is an error. Returns `None` on a GPU.
    fn take(&self) -> Result<Option<Counts>, Failure> {
        let Some(library) = &self.emulator else { return Ok(None) };
        // SAFETY: the signature is the one that the emulator documents.
        let take: libloading::Symbol<'_, unsafe extern "C" fn(*mut u8, usize) -> usize> =
            unsafe { library.get(b"wgEmulatorTakeReport")? };
        let mut text = vec![0u8; 1 << 20];
        // SAFETY: the buffer has the given length.
        let length = unsafe { take(text.as_mut_ptr(), text.len()) };
        let text = text.get(..length).ok_or("the emulator's report is too long")?;
        let report: serde_json::Value = serde_json::from_slice(text)?;
        let kernels =
            report["kernels"].as_array().ok_or("the emulator's report has no list of kernels")?;
        match &kernels[..] {
            [] => Ok(None),
            [kernel] if kernel["launches"] == 1 => {
                Ok(Some(serde_json::from_value(kernel["counts"].clone())?))
            }
            _ => Err("the emulator's report contains more than one launch".into()),
        }
    }
}

/// Opens the emulator under the name that cudarc looks up as the driver.
fn load_emulator(path: &Path) -> Result<Library, Failure> {
    let directory = tempfile::tempdir()?;
    let alias = directory.path().join("libcuda.so");
    let renamed = warpgauge_device::elf::shorten_soname(&std::fs::read(path)?, "libcuda.so")?;
    std::fs::write(&alias, renamed)?;
    // SAFETY: loading the emulator runs no significant code; its file may be deleted once it is
    // mapped.
    Ok(unsafe { Library::new(alias)? })
}
