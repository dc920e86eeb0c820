//! What happens while an order is carried out.

use std::path::PathBuf;

use warpgauge_job_views::SweepEvent;
use warpgauge_model::{JobStage, PartialStatistics};

use super::kept::KeptKernel;

/// Follows an order. Nothing here may block.
pub trait Progress: Send + Sync {
    /// Takes the next event.
    fn emit(&self, event: ProgressEvent);
}

/// Something that happened while an order was carried out.
#[derive(Debug)]
pub enum ProgressEvent {
    /// Another stage has begun.
    Stage(JobStage),
    /// A run has begun on the device.
    RunStarted,
    /// Timed launches of the run that are done.
    Trials {
        /// How many.
        done: u32,
        /// Statistics of their times, where times are taken.
        statistics: Option<PartialStatistics>,
    },
    /// Points of a sweep or comparisons of a gate that are done.
    Points {
        /// Done.
        done: usize,
        /// Of so many.
        all: usize,
    },
    /// An event of a sweep.
    Sweep(SweepEvent),
    /// A kernel of the order, with what was compiled of it.
    Kernel(Box<KeptKernel>),
    /// A file that a tool left. It is there until [`Progress::emit`] returns.
    File(PathBuf),
    /// The elements of an output that is to be kept. The file is there until [`Progress::emit`] returns.
    Output {
        /// The output's name.
        name: String,
        /// Its elements, little-endian, packed in C order.
        file: PathBuf,
    },
}
