//! What is told of an order on its way.

use std::path::PathBuf;

use warpgauge_model::JobStage;
use warpgauge_report::{SweepPoint, SweepStarted};
use warpgauge_tools::Artifact;
use warpgauge_turns::Owner;
use warpgauge_worker::RunEvent;

use super::kept::KeptKernel;

/// Who follows an order. Nothing here may block.
pub trait Progress: Send + Sync {
    /// Something happened.
    fn tell(&self, news: News);
}

/// News of an order.
#[derive(Debug)]
pub enum News {
    /// Another stage has begun.
    Stage(JobStage),
    /// A run has begun on the device.
    RunStarted,
    /// Timed launches of the run that are done.
    Trials {
        /// How many.
        done: u32,
        /// What they say so far, where times are taken.
        times: Option<RunTimes>,
    },
    /// Points of a sweep or comparisons of a gate that are done.
    Points {
        /// Done.
        done: usize,
        /// Of so many.
        all: usize,
    },
    /// A sweep is valid, and begins.
    SweepStarted(SweepStarted),
    /// A point of a sweep is done. Points come in order.
    SweepPoint(Box<SweepPoint>),
    /// A kernel of the order, with what was compiled of it.
    Kernel(Box<KeptKernel>),
    /// A file that a tool left. It is there until [`Progress::tell`] returns.
    File(PathBuf),
    /// The elements of an output that is to be kept. The file is there until [`Progress::tell`] returns.
    Output {
        /// The output's name.
        name: String,
        /// Its elements, little-endian, packed in C order.
        file: PathBuf,
    },
}

/// Times of the trials so far, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunTimes {
    /// Median.
    pub median_ms: f64,
    /// Its 95 % confidence interval.
    pub ci_ms: (f64, f64),
}

/// An order on its way: its name, whose it is, and who follows it.
#[derive(Clone, Copy)]
pub(crate) struct ActiveOrder<'a> {
    id: &'a str,
    owner: Owner,
    progress: &'a dyn Progress,
}

impl<'a> ActiveOrder<'a> {
    pub(crate) fn new(id: &'a str, owner: Owner, progress: &'a dyn Progress) -> Self {
        Self { id, owner, progress }
    }

    /// In whose turn it is carried out.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// What it is called.
    pub(crate) fn id(&self) -> &str {
        self.id
    }

    pub(crate) fn tell(&self, news: News) {
        self.progress.tell(news);
    }

    pub(crate) fn stage(&self, stage: JobStage) {
        self.tell(News::Stage(stage));
    }

    /// What a worker tells of a run.
    pub(crate) fn on_run(&self, event: RunEvent) {
        self.tell(match event {
            RunEvent::Started => News::RunStarted,
            RunEvent::Progress { trials, times } => News::Trials {
                done: trials,
                times: times
                    .map(|times| RunTimes { median_ms: times.median_ms, ci_ms: times.ci_ms }),
            },
            RunEvent::Executed => News::Stage(JobStage::Verifying),
        });
    }

    pub(crate) fn points(&self, done: usize, all: usize) {
        self.tell(News::Points { done, all });
    }

    pub(crate) fn keep(&self, kernel: KeptKernel) {
        self.tell(News::Kernel(Box::new(kernel)));
    }

    pub(crate) fn keep_files(&self, files: &[Artifact]) {
        for file in files {
            self.tell(News::File(file.path.clone()));
        }
    }
}
