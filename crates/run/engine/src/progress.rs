//! The stages' view of an order in progress. The main type is [`ActiveOrder`].

use crate::kept::KeptKernel;
pub(crate) use warpgauge_executor::{Progress, ProgressEvent};
use warpgauge_model::JobStage;
use warpgauge_nsight::ToolFile;
use warpgauge_turns::Owner;
use warpgauge_worker::RunEvent;

/// An order in progress: its id, its owner, and the receiver of its events.
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

    /// Returns the owner on whose behalf the order runs.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    pub(crate) fn id(&self) -> &str {
        self.id
    }

    pub(crate) fn emit(&self, event: ProgressEvent) {
        self.progress.emit(event);
    }

    pub(crate) fn stage(&self, stage: JobStage) {
        self.emit(ProgressEvent::Stage(stage));
    }

    /// Converts an event of a worker's run to a progress event of the order.
    pub(crate) fn on_run(&self, event: RunEvent) {
        self.emit(match event {
            RunEvent::Started => ProgressEvent::RunStarted,
            RunEvent::Progress { trials, statistics } => {
                ProgressEvent::Trials { done: trials, statistics }
            }
            RunEvent::Executed => ProgressEvent::Stage(JobStage::Verifying),
        });
    }

    pub(crate) fn points(&self, done: usize, all: usize) {
        self.emit(ProgressEvent::Points { done, all });
    }

    pub(crate) fn keep(&self, kernel: KeptKernel) {
        self.emit(ProgressEvent::Kernel(Box::new(kernel)));
    }

    pub(crate) fn keep_files(&self, files: &[ToolFile]) {
        for file in files {
            self.emit(ProgressEvent::File(file.path.clone()));
        }
    }
}
