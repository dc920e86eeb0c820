//! The frames between the server and a worker, and the version check.

use serde::{Deserialize, Serialize};

use super::job::WorkerJob;
use super::outcome::RunOutcome;
use warpgauge_device::{GpuHealth, GpuSettings};
use warpgauge_model::{DeviceInfo, Image, PartialStatistics};
use warpgauge_sandbox::device_worker::Confinement;

/// Version of this protocol. Server and worker must have the same version.
pub const PROTOCOL_VERSION: u32 = 18;

/// Maximum size of a frame, bytes. The largest frames contain machine code.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

/// A frame from the server to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// The first frame.
    Hello {
        /// The server's [`PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// The worker's built-in kernels (seeded initialisation, scrubbing), compiled for its device.
    Support(Image),
    /// Announces a socket for the next job, which connects a judge with a runner.
    Socket,
    /// Runs one job.
    Run(Box<WorkerJob>),
    /// Releases the hardware counters, so that another process can read them. The worker answers
    /// with `Idle`.
    Release,
    /// Ends the worker.
    Exit,
}

/// State and settings of a GPU at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuReading {
    pub health: GpuHealth,
    pub settings: GpuSettings,
}

/// A frame from a worker to the server.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// Answer to `Hello`: the context exists and the device is known.
    Ready {
        /// The worker's [`PROTOCOL_VERSION`].
        protocol: u32,
        /// The worker's device.
        device: Box<DeviceInfo>,
        /// The worker's confinement: what it may access.
        confinement: Box<Confinement>,
        /// State and settings of the GPU, or why they cannot be read.
        reading: Box<Result<GpuReading, String>>,
    },
    /// Answer to `Support` and `Release`: the worker waits for jobs.
    Idle,
    /// The first launch begins. The candidate's time limit counts from here.
    Started,
    /// Progress of the timed launches.
    Progress {
        /// Number of timed launches so far in the run; in a side-by-side comparison, the number of
        /// blocks.
        trials: u32,
        /// Statistics of the launch times, if the worker measures times and has enough samples.
        statistics: Option<PartialStatistics>,
    },
    /// The worker verifies a launch or runs references. The candidate's time limit is paused.
    Verifying,
    /// The candidate's launches continue, and its time limit runs again.
    Resumed,
    /// The candidate makes no more launches.
    Executed,
    /// The job ended, with or without success. The worker then scrubs the device and sends
    /// `Scrubbed`.
    Done(Box<RunOutcome>),
    /// The device no longer holds data of the job, as far as the worker could verify.
    Scrubbed {
        /// Duration of the scrub, milliseconds of wall clock.
        scrub_ms: f64,
        /// Why the worker must not take another job. Usually, it could not verify that all data is
        /// removed.
        retire: Option<String>,
    },
    /// The job ended and the context is lost. The worker exits after this frame.
    Lost(Box<RunOutcome>),
    /// The worker could not start.
    Unable {
        /// The cause and a remedy.
        reason: String,
    },
}
