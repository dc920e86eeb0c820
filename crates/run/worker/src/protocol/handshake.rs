//! The frames, and how both sides get to know each other.

use serde::{Deserialize, Serialize};

use super::job::WorkerJob;
use super::outcome::RunOutcome;
use warpgauge_model::{DeviceInfo, Image, PartialStatistics};
use warpgauge_sandbox::device_worker::Confinement;

/// Version of this protocol; both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 16;

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
    /// A socket follows, for the next job: of a judge to a runner, or the other way.
    Socket,
    /// Run one job.
    Run(Box<WorkerJob>),
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
        device: Box<DeviceInfo>,
        /// What it may touch.
        confinement: Box<Confinement>,
    },
    /// Answer to `Support` and `Release`: waiting for jobs.
    Idle,
    /// The job's deadline starts now.
    Started,
    /// Stage reached and trials done.
    Progress {
        /// Timed trials finished.
        trials: u32,
        /// Statistics of their times, where times are taken.
        statistics: Option<PartialStatistics>,
    },
    /// A launch of the candidate has ended and is verified before the next; the job's time limit stands
    /// still.
    Verifying,
    /// The candidate's launches go on, and its time limit.
    Resumed,
    /// The candidate's launches have ended for good.
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
