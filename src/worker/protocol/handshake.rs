//! The frames, and how both sides get to know each other.

use poem_openapi::Enum;
use serde::{Deserialize, Serialize};

use super::job::{Image, Job};
use super::outcome::RunOutcome;
use crate::compile::Target;
use crate::profile::Unavailable;

/// Version of this protocol; both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 5;

/// Largest frame, in bytes. Machine code is the largest thing that travels in one.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

/// From the server to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// First frame.
    Hello {
        /// The server's [`PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// Gives the worker its own kernels (seeded initialisation, scrubbing), compiled for its device.
    Support(Image),
    /// Run one job.
    Run(Box<Job>),
    /// Give hardware counters back, for whoever else wants to read them. Answered with `Idle`.
    Release,
    /// Finish.
    Exit,
}

/// From a worker to the server.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// Answer to `Hello`: context created, device known.
    Ready {
        /// The worker's [`PROTOCOL_VERSION`].
        protocol: u32,
        /// The device it holds.
        device: DeviceInfo,
    },
    /// Answer to `Support` and `Release`: waiting for jobs.
    Idle,
    /// The job's deadline starts now.
    Started,
    /// Stage reached and trials done.
    Progress {
        /// Timed trials finished.
        trials: u32,
        /// What they say so far, where times are taken.
        times: Option<TimesSoFar>,
    },
    /// The candidate's launches have ended; what follows is verification.
    Executed,
    /// The job ended, well or not. The worker scrubs the device now and then sends `Scrubbed`.
    Done(Box<RunOutcome>),
    /// The device holds nothing of the job any more, as far as could be shown.
    Scrubbed {
        /// How long it took, milliseconds of wall clock.
        scrub_ms: f64,
        /// Why the worker must not take another job: something could not be shown to be gone.
        retire: Option<String>,
    },
    /// The job ended and the context is lost: the worker exits after this frame.
    Lost(Box<RunOutcome>),
    /// The worker could not start.
    Unable {
        /// Why, and what to do.
        reason: String,
    },
}

/// Times of the trials so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimesSoFar {
    /// Median, milliseconds.
    pub median_ms: f64,
    /// Its 95 % confidence interval, milliseconds.
    pub ci_ms: (f64, f64),
}

/// A device as the driver describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// CUDA ordinal.
    pub ordinal: u32,
    /// `cuda` or `emulator`.
    pub kind: DeviceKind,
    /// Product name.
    pub name: String,
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// What to compile for.
    pub target: Target,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// L2 cache, bytes.
    pub l2_bytes: u64,
    /// Peak SM clock, kHz.
    pub clock_khz: u32,
    /// Peak memory clock, kHz.
    pub memory_clock_khz: u32,
    /// Memory bus width, bits.
    pub memory_bus_bits: u32,
    /// Shared memory one block may opt in to, bytes.
    pub max_shared_optin_bytes: u32,
    /// PCI address, `0000:1b:00.0`.
    pub pci_bus_id: String,
    /// What one multiprocessor holds at once.
    pub sm: SmLimits,
    /// Why the driver's monitoring (GPM) tells nothing of it; `None`: it does.
    pub unmonitored: Option<Unavailable>,
}

/// What one multiprocessor holds at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmLimits {
    /// Threads.
    pub threads: u32,
    /// Blocks; 0 if the driver does not say.
    pub blocks: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Shared memory, bytes.
    pub shared_bytes: u32,
    /// Shared memory that each block occupies beyond its own, bytes.
    pub reserved_shared_bytes: u32,
}

/// Where a kernel runs. Times of different kinds are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(Enum)]
#[oai(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A GPU through NVIDIA's driver.
    Cuda,
    /// The CPU, executing PTX.
    Emulator,
}
