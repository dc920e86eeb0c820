//! An order on its way, as the stages have it.

use crate::kept::KeptKernel;
pub(crate) use warpgauge_executor::{Progress, ProgressEvent};
use warpgauge_model::JobStage;
use warpgauge_nsight::ToolFile;
use warpgauge_turns::Owner;
use warpgauge_worker::RunEvent;

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

    pub(crate) fn emit(&self, event: ProgressEvent) {
        self.progress.emit(event);
    }

    pub(crate) fn stage(&self, stage: JobStage) {
        self.emit(ProgressEvent::Stage(stage));
    }

    /// What a worker tells of a run.
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
