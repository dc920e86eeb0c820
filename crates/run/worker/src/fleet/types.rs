//! Configuration, status and errors of a fleet.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use thiserror::Error;

use crate::protocol::GpuReading;
use crate::queue::LeaseNeeds;
use warpgauge_model::{DeviceInfo, DeviceState, Image, PartialStatistics, Target};
use warpgauge_sandbox::device_worker::Confinement;

/// Returns the worker's built-in kernels ([`warpgauge_device::support`]), compiled for a device.
pub type SupportSource = Arc<
    dyn Fn(Target) -> Pin<Box<dyn Future<Output = Result<Image, String>> + Send>> + Send + Sync,
>;

/// Selection of the devices that a fleet uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// All GPUs, or the emulator if there are none.
    Auto,
    Emulator,
    /// GPUs with these CUDA ordinals.
    Ordinals(Vec<u32>),
}

/// Configuration of a fleet.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// The executable that implements the worker's hidden subcommand.
    pub program: PathBuf,
    pub devices: DeviceChoice,
    /// The emulator's library. By default [`warpgauge_device::loader::find_emulator`] searches for
    /// it.
    pub emulator: Option<PathBuf>,
    /// Available CUPTI libraries.
    pub cupti: Vec<PathBuf>,
    /// Libraries of ready-made functions that workers of GPUs may call, and libraries that these
    /// need, best first.
    pub libraries: Vec<PathBuf>,
    /// Existing directory for files that are kept until the server ends.
    pub run_dir: PathBuf,
    /// Whether every device keeps a second worker ready.
    pub hot_spare: bool,
    /// Maximum number of lease requests that wait.
    pub queue_capacity: usize,
    /// Time limit for a worker to become ready, and for a job until its first launch.
    pub start_timeout: Duration,
}

/// Reason why a fleet cannot start.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The child process that lists devices failed.
    #[error("cannot list devices with {}: {reason}", program.display())]
    Probe {
        /// The program that was run.
        program: PathBuf,
        reason: String,
    },
    /// There is neither a GPU nor the emulator.
    #[error(
        "no device to run kernels on: {reason}. Install NVIDIA's driver, or build the emulator \
         (`cargo build -p warpgauge-emulator`) and name its library in WARPGAUGE_EMULATOR"
    )]
    NoDevice {
        /// Description of the problem with the driver.
        reason: String,
    },
    /// The configuration requires GPUs, and the driver is missing or fails.
    #[error(
        "GPUs were requested, but {reason}. Install NVIDIA's driver, or leave out `--device` (devices.use) to use the \
         emulator"
    )]
    NoDriver {
        /// Description of the problem with the driver.
        reason: String,
    },
    /// The configuration requires the emulator, and its library is missing.
    #[error(
        "the emulator was requested, but its library is neither in WARPGAUGE_EMULATOR nor beside \
         this program; build it with `cargo build -p warpgauge-emulator`"
    )]
    NoEmulator,
    #[error("the emulator cannot be used: {reason}")]
    Emulator {
        /// Description of the problem with the emulator.
        reason: String,
    },
    /// The configuration names a GPU that does not exist.
    #[error(
        "there is no device {ordinal}: the number of devices on this host is {there}, and \
         their numbers start at 0"
    )]
    NoSuchDevice {
        /// The configured ordinal.
        ordinal: u32,
        /// Number of devices on this host.
        there: usize,
    },
    /// The system cannot start another thread.
    #[error("cannot start the thread that starts workers")]
    Thread(#[source] std::io::Error),
}

/// Reason why a lease cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeaseError {
    /// The queue is full.
    #[error("the queue is full ({waiting} waiting); try again in {} s", retry_after.as_secs())]
    QueueFull {
        /// Number of waiting requests.
        waiting: usize,
        /// Time after which to retry.
        retry_after: Duration,
    },
    /// No device meets the requirements.
    #[error("no device of this server meets the requirements: {need}")]
    NoSuchDevice {
        /// The requirements of the lease.
        need: Box<LeaseNeeds>,
    },
    /// No worker can be started on any device that meets the requirements.
    #[error("no worker can be started on device {device}: {reason}")]
    Failed {
        /// One of the devices that meet the requirements.
        device: u32,
        reason: String,
    },
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// Event of a job that is running in a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunEvent {
    /// The first launch begins now. The time limit counts from here.
    Started,
    /// Timed launches have been made.
    Progress {
        /// Number of timed launches so far in the run; in a side-by-side comparison, the number of
        /// blocks.
        trials: u32,
        /// Statistics of the launch times, if the worker measures times and has enough samples.
        statistics: Option<PartialStatistics>,
    },
    /// The candidate's launches and their verification have ended.
    Executed,
}

/// State of a GPU when a worker read it last.
#[derive(Debug, Clone, PartialEq)]
pub struct LastReading {
    pub at: SystemTime,
    /// Whether the worker read it after timed launches, and not at its own start.
    pub after_launches: bool,
    pub reading: GpuReading,
}

impl LastReading {
    pub(super) fn now(reading: GpuReading, after_launches: bool) -> Self {
        Self { at: SystemTime::now(), after_launches, reading }
    }
}

/// Status of a device and its workers.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceStatus {
    pub info: DeviceInfo,
    /// Whether the device can be used.
    pub state: DeviceState,
    /// Whether the device is leased or being scrubbed.
    pub busy: bool,
    /// Number of workers that wait for a job.
    pub ready_workers: usize,
    /// Number of jobs sent to the device.
    pub jobs_done: u64,
    /// Number of workers started beyond the intended number, to replace others.
    pub restarts: u64,
    /// Confinement of the device's workers; `None` before the first worker has started.
    pub confinement: Option<Confinement>,
    /// State of the GPU after the last evaluation or, before the first one, at the start of a
    /// worker. An error is the reason why it is not known.
    pub reading: Result<LastReading, String>,
}
