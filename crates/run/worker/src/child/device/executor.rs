//! The device of a worker, and all state that outlives a job.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::counters::Counters;
use super::ready::Ready;
use super::runners::Runners;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::io::stdout::Printed;
use crate::child::memory::residue::Residue;
use crate::child::memory::tools::Tools;
use crate::child::secret::Secret;
use crate::protocol::{Blame, GpuReading};
use uuid::Uuid;
use warpgauge_device::libraries::Libraries;
use warpgauge_device::loader::LoadedDriver;
use warpgauge_device::locked::{LockMemory, Locks};
use warpgauge_device::support::{InitParams, NearTolerance, Support};
use warpgauge_device::{
    BlockingKernel, Context, DeviceBuffer, DeviceError, EmulatorControl, EventPool, GpuMonitor,
    GpuSettings, PinnedPool, RangeContent, SharedWipe, Staging, Stamps, Stream,
};
use warpgauge_model::gate_page::Digest;
use warpgauge_model::{Cause, DeviceInfo, DeviceKind, FailureCode, Image, Unavailable};
use warpgauge_tensor::{Dtype, InitKind, TensorInit};

/// Maximum page-locked memory for copies that is kept between jobs, bytes.
const PINNED_BYTES: usize = 256 << 20;

/// Largest value of the byte that fills guard bands; the smallest is 1.
const GUARD_BYTES: usize = 126;

/// Size of the copies, hashes and fills of a new worker's warm-up, bytes.
const WARM_BYTES: usize = 4 << 20;

/// Size of the memory that can be hashed without a further allocation, bytes.
const HASHED_BYTES: u64 = 256 << 20;

/// Number of keys that a judge copies to the device ahead.
const KEYS_AHEAD: usize = 3;

/// Memory written to flush L2, in quarters of the size of L2. On an H200, times no longer change
/// from three quarters on (`docs/measurement.md`).
const FLUSHED_QUARTERS: u64 = 4;

/// Maximum number of launches of a batch. It determines the number of event pairs.
pub(crate) const BATCH: usize = 256;

/// A worker's device, and all state that outlives a job.
pub(crate) struct Executor {
    pub(crate) context: Context,
    pub(crate) stream: Stream,
    pub(crate) device: DeviceInfo,
    pub(crate) support: Option<Support>,
    pub(crate) pinned: Rc<PinnedPool>,
    pub(crate) events: EventPool,
    /// Memory written between launches to evict all other data from L2.
    pub(crate) flush: Option<DeviceBuffer>,
    pub(crate) emulator: Option<EmulatorControl>,
    pub(crate) printed: Printed,
    /// Memory for decrypting and hashing, while it is not in use.
    lock_memory: RefCell<Option<LockMemory>>,
    /// Random keys that a judge has copied to the device ahead, for one job.
    keys: RefCell<Vec<Digest>>,
    /// Objects that only a GPU's timing needs; `None` on the emulated device.
    pub(crate) timing: Option<TimingAids>,
    /// State for reading hardware counters. Present only in workers that read counters.
    pub(crate) counters: Option<Counters>,
    /// Libraries of ready-made functions, each opened when a job first calls it.
    pub(crate) libraries: Libraries,
    /// Modules of the current job that were loaded ahead.
    pub(crate) ready: RefCell<Vec<Ready>>,
    /// Processes that make the launches that this process judges.
    pub(crate) runners: Option<Runners>,
    /// Whether this process judges, and runs no submitted code.
    pub(crate) is_judge: bool,
    guard: u8,
    /// NVML's view of the GPU, or why it is unavailable.
    pub(crate) monitor: Result<Arc<GpuMonitor>, String>,
    /// Settings of the GPU, such as its clocks.
    pub(crate) settings: Option<GpuSettings>,
    /// Median time of an empty kernel, milliseconds, once measured.
    pub(crate) empty_launch_ms: Option<f64>,
}

/// Objects that keep the host and earlier launches from affecting a GPU's timing, and that read its
/// clock.
pub(crate) struct TimingAids {
    pub blocking_kernel: BlockingKernel,
    pub stamps: Stamps,
    pub wipe: SharedWipe,
}

impl Executor {
    /// Creates a context on the device.
    pub(crate) fn open(
        loaded: &LoadedDriver,
        ordinal: u32,
        printed: Printed,
    ) -> Result<Self, DeviceError> {
        let mut device = loaded.driver.device_info(ordinal)?;
        let context = loaded.driver.open(ordinal)?;
        if let Some(emulator) = loaded.emulator {
            // The emulator counts from its start. Counting is enabled again only for the one launch
            // that needs it.
            emulator.set_counting(false)?;
        }
        let monitor = GpuMonitor::of(&device);
        device.unmonitored = monitoring_refusal(&monitor);
        let monitor = monitor.map(Arc::new);
        Ok(Self {
            stream: Stream::new(&context)?,
            support: None,
            pinned: PinnedPool::new(&context, PINNED_BYTES),
            events: EventPool::new(&context, 2 * BATCH + 2)?,
            flush: None,
            emulator: loaded.emulator,
            printed,
            lock_memory: RefCell::default(),
            keys: RefCell::default(),
            timing: None,
            counters: None,
            libraries: Libraries::new(Vec::new()),
            ready: RefCell::default(),
            runners: None,
            is_judge: false,
            settings: monitor.as_ref().ok().map(|monitor| monitor.settings()),
            monitor,
            empty_launch_ms: None,
            guard: 1 + Secret::new().below(GUARD_BYTES) as u8,
            context,
            device,
        })
    }

    pub(crate) fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// Loads the worker's built-in kernels. With `practise`, also warms them up on a GPU.
    pub(crate) fn load_support(
        &mut self,
        image: &Image,
        practise: bool,
    ) -> Result<(), DeviceError> {
        self.support = Some(Support::load(&self.context, image, &self.device)?);
        let practise = practise && self.device.kind == DeviceKind::Cuda;
        if practise { self.warm_up() } else { Ok(()) }
    }

    /// Performs all work that is slow the first time, so that the first job of a spare is as fast
    /// as any other. This allocates page-locked memory and memory to flush L2, makes the driver
    /// load the kernels and allocate local memory for scrubbing, and starts the threads that hash.
    fn warm_up(&mut self) -> Result<(), DeviceError> {
        let Some(support) = &self.support else { return Ok(()) };
        let mut timing = TimingAids {
            blocking_kernel: BlockingKernel::new(&self.context)?,
            stamps: Stamps::new(&self.context, self.device.multiprocessors)?,
            wipe: SharedWipe::new(&self.context, support)?,
        };
        let bytes = self.device.l2_bytes / 4 * FLUSHED_QUARTERS;
        if bytes > 0 {
            self.flush = Some(DeviceBuffer::new(&self.context, bytes, "flushing L2")?);
        }
        let staging = [WARM_BYTES, WARM_BYTES].map(|bytes| self.pinned.take(bytes));
        let memory = DeviceBuffer::new(&self.context, WARM_BYTES as u64, "warming up")?;
        let init = TensorInit::of_kind(InitKind::Randn);
        if let Ok(params) = InitParams::secret(&init, (Dtype::Float32, &[]), "warm_up") {
            let address = memory.address();
            let content = [RangeContent::tensor(params, 0, (address, WARM_BYTES))];
            support.write(&content, &self.stream)?;
            let mut inspection = support.inspect(&self.stream)?;
            inspection.first_others(&content)?;
            let near = NearTolerance { atol: 0.0, rtol: 0.0, allow_non_finite: false };
            inspection.first_not_near((address, address), 1, Dtype::Float32, near)?;
            inspection.read()?;
        }
        support.first_difference(memory.address(), &memory, WARM_BYTES, &self.stream)?;
        self.with_locks(support, |locks| {
            let range = (memory.address(), WARM_BYTES as u64);
            locks.turn(range.0, range, 0)?;
            locks.digests(&[range])
        })?;
        timing.wipe.queue(&self.stream)?;
        // Nothing may be loaded while a blocking kernel runs: the driver would wait for the device.
        timing.blocking_kernel.launch(support, &self.stream)?;
        timing.blocking_kernel.release();
        let target = self.pinned.take(timing.stamps.bytes());
        timing.stamps.take(support, target, &self.stream)?.finish()?;
        self.timing = Some(timing);
        for staging in staging {
            blake3::Hasher::new().update_rayon(staging.bytes());
        }
        let mut residue = Residue::default();
        residue.take_memory(memory);
        self.scrub(residue);
        Ok(())
    }

    /// Returns the objects needed to fill and compare buffers.
    pub(crate) fn tools(&self) -> JobResult<Tools<'_>> {
        let Some(support) = &self.support else {
            let text = "the server sent a job before the worker's built-in kernels".to_owned();
            return Err(Failed::new(FailureCode::InternalError, text, Blame::Environment));
        };
        Ok(Tools {
            context: &self.context,
            stream: &self.stream,
            support,
            pinned: &self.pinned,
            kind: self.device.kind,
        })
    }

    /// Encrypts, decrypts or hashes device memory.
    pub(crate) fn with_locks<T>(
        &self,
        support: &Support,
        work: impl FnOnce(&mut Locks<'_>) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let (context, stream) = (&self.context, &self.stream);
        let kept = self.lock_memory.borrow_mut().take();
        let memory = kept
            .map_or_else(|| LockMemory::new(context, HASHED_BYTES, stream), Ok::<_, DeviceError>)?;
        let mut locks = Locks::with(memory, context, support, stream);
        let done = work(&mut locks);
        self.lock_memory.replace(Some(locks.into_memory()));
        done
    }

    /// Returns `count` random keys that no other job uses. The locks have them in this order.
    pub(crate) fn take_keys(
        &self,
        count: usize,
        locks: &mut Locks<'_>,
    ) -> Result<Vec<Digest>, DeviceError> {
        let mut keys = self.keys.take();
        if keys.len() < count {
            keys = random_keys(count);
            locks.take_keys(&keys)?;
        }
        keys.truncate(count);
        Ok(keys)
    }

    /// Draws the keys of a judge's next job, and copies them to the device, if its last job used
    /// keys.
    pub(crate) fn renew_keys(&self) -> Result<(), DeviceError> {
        let Some(support) = self.support.as_ref().filter(|_| self.is_judge) else { return Ok(()) };
        if self.keys.borrow().is_empty() && self.lock_memory.borrow().is_some() {
            let keys = random_keys(KEYS_AHEAD);
            self.with_locks(support, |locks| locks.take_keys(&keys))?;
            self.keys.replace(keys);
        }
        Ok(())
    }

    /// Returns the byte for guard bands. It differs from the poison of outputs, and is random for
    /// each worker.
    pub(crate) fn guard_byte(&self) -> u8 {
        self.guard
    }

    /// Removes L2 persistence that an earlier launch may have requested.
    pub(crate) fn reset_persisting_l2(&self) -> JobResult<()> {
        self.context.reset_persisting_l2().map_err(environment)
    }

    /// Returns host memory for one reading of the clocks, or `None` if they cannot be read.
    pub(crate) fn stamp_staging(&self) -> Option<Staging> {
        self.timing.as_ref().map(|aids| self.pinned.take(aids.stamps.bytes()))
    }

    /// Returns the GPU's current state and its settings, or why they cannot be read.
    pub(crate) fn reading(&self) -> Result<GpuReading, String> {
        let health = self.monitor.as_ref().map_err(String::clone)?.health();
        Ok(GpuReading { health, settings: self.settings.clone().unwrap_or_default() })
    }

    /// Returns NVML's bit mask of the current reasons for reduced clocks, if the driver reports it.
    pub(crate) fn throttle_reasons(&self) -> Option<u64> {
        self.monitor.as_ref().ok()?.throttle_reasons().ok()
    }

    /// Suspends access checks if they are on. Earlier findings are kept.
    pub(crate) fn suspend_checks(&self, armed: bool) -> Result<(), DeviceError> {
        self.emulator.filter(|_| armed).map_or(Ok(()), |emulator| emulator.set_sanitize(false))
    }

    /// Resumes access checks if they are on.
    pub(crate) fn resume_checks(&self, armed: bool) -> Result<(), DeviceError> {
        self.emulator.filter(|_| armed).map_or(Ok(()), |emulator| emulator.set_sanitize(true))
    }

    /// Switches the emulator's checks on or off, and discards earlier findings.
    pub(crate) fn arm_checks(&self, on: bool) -> JobResult<()> {
        if let Some(emulator) = self.emulator {
            emulator.set_sanitize(on).map_err(environment)?;
            let _ = emulator.take_report();
        }
        Ok(())
    }
}

/// Returns keys from the operating system's random numbers.
fn random_keys(count: usize) -> Vec<Digest> {
    let key = |_| {
        let mut hasher = blake3::Hasher::new();
        // A UUID has 122 random bits.
        (0..4).for_each(|_| {
            hasher.update(Uuid::new_v4().as_bytes());
        });
        *hasher.finalize().as_bytes()
    };
    (0..count).map(key).collect()
}

/// Returns why a GPU cannot be monitored.
pub(crate) fn monitoring_refusal(monitor: &Result<GpuMonitor, String>) -> Option<Unavailable> {
    match monitor {
        Ok(monitor) => monitor.gpm_support().err().map(|error| error.unavailable()),
        Err(reason) => Some(Cause::NoMonitoring.because(reason.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_the_library_is_refused_with_the_reason() {
        let refused = monitoring_refusal(&Err("no such file".to_owned())).unwrap();
        assert_eq!((&*refused.code, &*refused.reason), ("no_monitoring", "no such file"));
    }
}
