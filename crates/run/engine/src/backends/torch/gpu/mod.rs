//! Torch kernels on a GPU: the judge has a context of its own there, beside those of the runners.
//!
//! Inputs lie in memory of the judge's, which runners open; what they return lies in theirs, which the judge
//! opens and copies as soon as they say that they are done. `calls` has the order of the calls, `batches` one
//! batch of both sides, `timing` the candidate's times, `beside` both sides in turns, `turn` what the clock says of
//! locked calls, `expect` and `compared` what is right, `stage` what lies on the device, `arena` the inputs,
//! `shelf` the copies, `blocks` the runners' memory, `traced` what a device did, `counted`
//! calls that a tool looks at, `modules` the parameters of both sides.

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
use warpgauge_validate::{ResolvedTolerance, sampled_ranges};

/// The device, as a judge has it.
pub(super) struct Gpu {
    context: Context,
    stream: Stream,
    support: Support,
    info: DeviceInfo,
    /// Base64 of the support's image, which runners load too.
    kernels: String,
}

/// A context whose kernels have yet to come.
struct Opened {
    context: Context,
    stream: Stream,
    info: DeviceInfo,
}

/// The device of a process that judges, for all of its orders.
pub(super) struct JudgeDevice {
    opened: Option<Opened>,
    gpu: Option<Gpu>,
}

impl JudgeDevice {
    /// Makes a context.
    ///
    /// # Errors
    /// What the driver says.
    pub(super) fn open(ordinal: u32, directory: &Path) -> Result<Self, String> {
        let loaded = loader::load(&DriverChoice::Cuda, directory).map_err(|e| e.to_string())?;
        let info = loaded.driver.device_info(ordinal).map_err(|error| error.to_string())?;
        let context = loaded.driver.open(ordinal).map_err(|error| error.to_string())?;
        let stream = Stream::new(&context).map_err(|error| error.to_string())?;
        Ok(Self { opened: Some(Opened { context, stream, info }), gpu: None })
    }

    /// The device with the kernels that write inputs and compare outputs, which are loaded for the first order.
    ///
    /// # Errors
    /// What the driver says.
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
    /// Those elements of a tensor that are looked at where not all are ([`sampled_ranges`]). The tensor lies side by
    /// side, from byte `at` of a buffer on.
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

    /// Bytes that are written so that the second-level cache holds nothing else: as many as Triton's
    /// `do_bench` writes, or twice what it holds. While they are, the host launches what is timed.
    fn flush_bytes(&self) -> u64 {
        (256 << 20).max(2 * self.info.l2_bytes)
    }
}

/// A tolerance as the device takes it.
fn near(tolerance: &ResolvedTolerance) -> NearTolerance {
    let ResolvedTolerance { atol, rtol, allow_non_finite, .. } = *tolerance;
    NearTolerance { atol, rtol, allow_non_finite }
}
