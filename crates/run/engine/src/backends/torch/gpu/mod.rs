//! Torch kernels on a GPU. The judge has a separate context on the device, beside the runners'
//! contexts.
//!
//! Inputs are in the judge's memory, which runners open. Results are in the runners' memory. The
//! judge opens it and copies the results as soon as a runner reports that it is done. `calls`
//! contains the sequence of calls, `batches` runs one batch of candidate and references, `timing`
//! times the candidate, and `beside` times candidate and reference in turns. `turn` contains the
//! times of locked calls, and `stage` the state on the device. `expect` computes expected results,
//! and `compared` compares them. `arena` contains the inputs, `shelf` copies of results, `blocks`
//! the runners' memory, and `modules` parameters of both sides' modules. `traced` records device
//! activity, and `counted` runs calls under a profiler.

mod arena;
mod batches;
pub(super) mod beside;
mod blocks;
pub(super) mod calls;
mod compared;
mod counted;
mod expect;
mod modules;
mod shelf;
mod stage;
mod timing;
pub(super) mod traced;
mod turn;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use warpgauge_device::support::{NearTolerance, Support};
use warpgauge_device::{Context, DeviceBuffer, DeviceError, DriverChoice, Stream, loader};
use warpgauge_model::{DeviceInfo, Image};
use warpgauge_tensor::Dtype;
use warpgauge_torch::DeviceNoise;
use warpgauge_validate::{ResolvedTolerance, sampled_ranges};

/// The judge's context on a device, with its kernels loaded.
pub(super) struct Gpu {
    context: Context,
    stream: Stream,
    support: Support,
    info: DeviceInfo,
    /// Image of the judge's kernels in base64, which runners load, too.
    kernels: String,
}

/// A context whose kernels are not loaded yet.
struct Opened {
    context: Context,
    stream: Stream,
    info: DeviceInfo,
}

/// The device of a judge process, which uses it for all of its orders.
pub(super) struct JudgeDevice {
    opened: Option<Opened>,
    gpu: Option<Gpu>,
}

impl JudgeDevice {
    /// Creates a context on a device.
    ///
    /// # Errors
    /// Returns the driver's message.
    pub(super) fn open(ordinal: u32, directory: &Path) -> Result<Self, String> {
        let loaded = loader::load(&DriverChoice::Cuda, directory).map_err(|e| e.to_string())?;
        let info = loaded.driver.device_info(ordinal).map_err(|error| error.to_string())?;
        let context = loaded.driver.open(ordinal).map_err(|error| error.to_string())?;
        let stream = Stream::new(&context).map_err(|error| error.to_string())?;
        Ok(Self { opened: Some(Opened { context, stream, info }), gpu: None })
    }

    /// Returns the device with the kernels that write inputs and compare outputs. The first order
    /// loads them.
    ///
    /// # Errors
    /// Returns the driver's message.
    pub(super) fn with(&mut self, image: &Image) -> Result<&Gpu, String> {
        if let Some(Opened { context, stream, info }) = self.opened.take() {
            let support = Support::load(&context, image, &info).map_err(|e| e.to_string())?;
            let kernels = STANDARD.encode(&image.bytes);
            self.gpu = Some(Gpu { context, stream, support, info, kernels });
        }
        self.gpu.as_ref().ok_or_else(|| "its kernels could not be loaded".to_owned())
    }
}

impl Gpu {
    /// Copies a sample of a tensor's elements to the host ([`sampled_ranges`]). The tensor is
    /// contiguous and begins at byte `at` of the buffer.
    fn sample(
        &self,
        (memory, at): (&DeviceBuffer, usize),
        (dtype, bytes): (Dtype, usize),
    ) -> Result<Vec<u8>, DeviceError> {
        let mut sample = Vec::new();
        for range in sampled_ranges(bytes, dtype) {
            let start = sample.len();
            sample.resize(start + range.len(), 0);
            memory.copy_to_host(at + range.start, &mut sample[start..], &self.stream)?;
        }
        Ok(sample)
    }

    /// Waits for other processes' work to end if more than half of the device's memory is in use,
    /// because processes of earlier evaluations may occupy memory that this evaluation needs.
    /// Returns the work that has not ended.
    ///
    /// # Errors
    /// Returns the driver's message.
    pub(super) fn with_memory(
        &self,
        noise: Option<DeviceNoise>,
    ) -> Result<Option<DeviceNoise>, String> {
        let (free, total) = self.context.memory_info().map_err(|error| error.to_string())?;
        Ok(match noise {
            Some(noise) if free < total / 2 => {
                noise.end();
                None
            }
            noise => noise,
        })
    }

    /// Returns the number of bytes to write so that the L2 cache contains nothing else. It is 256
    /// MiB, as in Triton's `do_bench`, or twice the size of L2, whichever is larger. During that
    /// write, the host launches the timed work.
    fn flush_bytes(&self) -> u64 {
        (256 << 20).max(2 * self.info.l2_bytes)
    }
}

/// Converts a tolerance to the form that the kernels on the device expect.
fn near(tolerance: &ResolvedTolerance) -> NearTolerance {
    let ResolvedTolerance { atol, rtol, allow_non_finite, .. } = *tolerance;
    NearTolerance { atol, rtol, allow_non_finite }
}
