//! How a fleet is configured, what it tells, and how it fails.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::queue::LeaseNeeds;
use warpgauge_model::{DeviceInfo, DeviceState, Image, PartialStatistics, Target};
use warpgauge_sandbox::device_worker::Confinement;

/// Yields the worker's own kernels ([`warpgauge_device::support`]), compiled for a device.
pub type SupportSource = Arc<
    dyn Fn(Target) -> Pin<Box<dyn Future<Output = Result<Image, String>> + Send>> + Send + Sync,
>;

/// Which devices a fleet uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// All GPUs; the emulator where there is none.
    Auto,
    /// The emulator.
    Emulator,
    /// These GPUs, by CUDA ordinal.
    Ordinals(Vec<u32>),
}

/// How to run a fleet.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// The executable that has the worker subcommand.
    pub program: PathBuf,
    /// Devices to use.
    pub devices: DeviceChoice,
    /// The emulator's library; default: where [`warpgauge_device::loader::find_emulator`] finds it.
    pub emulator: Option<PathBuf>,
    /// CUPTI libraries there are.
    pub cupti: Vec<PathBuf>,
    /// Libraries of ready functions that workers of GPUs may call, and those that they need, best first.
    pub libraries: Vec<PathBuf>,
    /// Existing directory for files that live as long as the server.
    pub run_dir: PathBuf,
    /// Whether every device keeps a second worker ready.
    pub hot_spare: bool,
    /// Leases that may wait.
    pub queue_capacity: usize,
    /// Longest time for a worker to become ready, and for a job to reach its first launch.
    pub start_timeout: Duration,
}

/// Why a fleet cannot start.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The child that lists devices failed.
    #[error("list devices with {}: {reason}", program.display())]
    Probe {
        /// What was run.
        program: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// Neither a GPU nor the emulator.
    #[error(
        "no device to run kernels on: {reason}. Install NVIDIA's driver, or build the emulator \
         (`cargo build -p warpgauge-emulator`) and name its library in WARPGAUGE_EMULATOR"
    )]
    NoDevice {
        /// What is wrong with the driver.
        reason: String,
    },
    /// GPUs were asked for, and there is no driver.
    #[error("GPUs were asked for, but {reason}")]
    NoDriver {
        /// What is wrong with the driver.
        reason: String,
    },
    /// The emulator was asked for, and is not there.
    #[error(
        "the emulator was asked for, but its library is neither in WARPGAUGE_EMULATOR nor beside \
         this program; build it with `cargo build -p warpgauge-emulator`"
    )]
    NoEmulator,
    /// The emulator does not work.
    #[error("the emulator cannot be used: {reason}")]
    Emulator {
        /// What is wrong with it.
        reason: String,
    },
    /// A GPU was asked for that does not exist.
    #[error("there is no device {ordinal}: this host has {there}, counted from 0")]
    NoSuchDevice {
        /// Ordinal asked for.
        ordinal: u32,
        /// Devices there are.
        there: usize,
    },
    /// The system has no more threads.
    #[error("start the thread that starts workers")]
    Thread(#[source] std::io::Error),
}

/// Why there is no lease.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeaseError {
    /// As many wait as may.
    #[error("the queue is full ({waiting} waiting); try again in {} s", retry_after.as_secs())]
    QueueFull {
        /// How many wait.
        waiting: usize,
        /// When to try again.
        retry_after: Duration,
    },
    /// No device meets the need.
    #[error("no device of this server meets the need: {need:?}")]
    NoSuchDevice {
        /// What was asked for.
        need: Box<LeaseNeeds>,
    },
    /// No worker can be started on any device that meets the need.
    #[error("no worker can be started on device {device}: {reason}")]
    Failed {
        /// One of the devices.
        device: u32,
        /// Why not.
        reason: String,
    },
    /// The server stops.
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// What a job reports while it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunEvent {
    /// The first launch comes now; the time limit counts from here.
    Started,
    /// Timed launches so far.
    Progress {
        /// How many.
        trials: u32,
        /// Statistics of their times, where times are taken.
        statistics: Option<PartialStatistics>,
    },
    /// The candidate's launches have ended, and all that is verified is.
    Executed,
}

/// A device and its workers.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceStatus {
    /// The device.
    pub info: DeviceInfo,
    /// Whether it can be used.
    pub state: DeviceState,
    /// Whether it is leased, or being scrubbed.
    pub busy: bool,
    /// Workers that wait for a job.
    pub ready_workers: usize,
    /// Jobs sent to it.
    pub jobs_done: u64,
    /// Workers started in place of ones that were lost.
    pub restarts: u64,
    /// What its workers may touch; `None`: none was started yet.
    pub confinement: Option<Confinement>,
}
