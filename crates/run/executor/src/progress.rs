//! Events of a running order.

use std::path::PathBuf;

use warpgauge_job_views::SweepEvent;
use warpgauge_model::{JobStage, PartialStatistics};

use super::kept::KeptKernel;

/// Receives the events of an order. Implementations must not block.
pub trait Progress: Send + Sync {
    /// Handles the next event.
    fn emit(&self, event: ProgressEvent);
}

/// An event of a running order.
#[derive(Debug)]
pub enum ProgressEvent {
    /// A new stage has begun.
    Stage(JobStage),
    /// A run has begun on the device.
    RunStarted,
    /// Progress of the run's timed launches.
    Trials {
        /// Number of timed launches so far in the run; in a side-by-side comparison, the number of
        /// blocks.
        done: u32,
        /// Statistics of the launch times, if the worker measures times and has enough samples.
        statistics: Option<PartialStatistics>,
    },
    /// Progress of a sweep's points or a gate's comparisons.
    Points {
        done: usize,
        /// Total number of points or comparisons.
        all: usize,
    },
    Sweep(SweepEvent),
    /// A kernel of the order, with the result of its compilation.
    Kernel(Box<KeptKernel>),
    /// A file that a tool wrote. It may be removed after [`Progress::emit`] returns.
    File(PathBuf),
    /// An output to be stored. Its file may be removed after [`Progress::emit`] returns.
    Output {
        /// Name of the output.
        name: String,
        /// The elements, little-endian, packed in C order.
        file: PathBuf,
    },
}
