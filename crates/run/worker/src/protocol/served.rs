//! What a judge and the runners that it has launches made by say to each other.
//!
//! The judge owns buffers, inputs and expectations; a runner opens the buffers, has a stranger's code
//! in its context, and makes one launch at a time when it is told to. Frames go over a pair of sockets
//! that the server hands to both before their jobs; the judge speaks first, and each message has one
//! answer.

use serde::{Deserialize, Serialize};

use super::job::Launches;
use super::outcome::{Blame, RunFailure};
use super::task::{EvaluatePlan, PairPlan};
use warpgauge_device::{DeviceError, MemoryHandle};
use warpgauge_model::{CacheState, FunctionFacts, LaunchCounts};

/// A task whose every launch is made by a runner, and judged here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JudgePlan {
    /// What to find out.
    pub task: JudgedTask,
    /// Whether there is a runner of references beside that of the candidate, since they are no more
    /// trusted. Its socket comes second.
    pub has_reference: bool,
}

/// Tasks that can be judged from outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum JudgedTask {
    /// Launch and verify; time if wanted.
    Evaluate(Box<EvaluatePlan>),
    /// Time the program and a rival side by side.
    Pair(Box<PairPlan>),
    /// Judge some of the timed launches of another process, when it says so.
    Share(Box<EvaluatePlan>),
}

impl JudgedTask {
    /// Whether kernels run beside the candidate.
    pub fn has_references(&self) -> bool {
        match self {
            JudgedTask::Evaluate(plan) | JudgedTask::Share(plan) => {
                !plan.checks.references.is_empty()
            }
            JudgedTask::Pair(_) => true,
        }
    }
}

impl From<EvaluatePlan> for JudgedTask {
    fn from(plan: EvaluatePlan) -> Self {
        JudgedTask::Evaluate(Box::new(plan))
    }
}

impl From<PairPlan> for JudgedTask {
    fn from(plan: PairPlan) -> Self {
        JudgedTask::Pair(Box::new(plan))
    }
}

/// From a judge.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToRunner {
    /// Open these buffers in place of those before. Answered with `Done`.
    Open {
        /// In the order in which arguments name them.
        buffers: Vec<LentBuffer>,
        /// What the bands beside them hold.
        guard: u8,
        /// Whether the emulator is to check every access of the launches.
        checked: bool,
    },
    /// Load a program on the buffers. Answered with `Loaded`.
    Load {
        /// What it launches.
        launches: Launches,
        /// Whether constants of its modules are put back too.
        constants_too: bool,
        /// Who is to blame where it cannot be loaded.
        blame: Blame,
    },
    /// Launch a program, and wait for its end. Answered with `Launched`.
    Launch {
        /// Place among the programs loaded since the buffers were opened.
        program: usize,
        /// Whether variables of its modules are put back before.
        forget: bool,
        /// How.
        how: LaunchHow,
    },
    /// Tell what the emulator found since the buffers were opened. Answered with `Report`.
    Report,
    /// Unload all programs and close all buffers. Answered with `Done`.
    Close,
    /// Go on with launches of your own: the one that was handed over is judged. Answered with the next
    /// `Turn`.
    Yield,
}

/// A buffer of the judge's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LentBuffer {
    /// The block that it is alone in.
    pub handle: MemoryHandle,
    /// Size of the block.
    pub bytes: u64,
    /// Where in it the content begins, bytes.
    pub offset: u64,
}

/// How to launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchHow {
    /// And nothing else.
    Plain,
    /// Between two events.
    Timed(TimedLaunch),
    /// For the emulator's counts of it.
    Counted,
}

/// What comes right before a timed launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedLaunch {
    /// State of L2.
    pub cache: CacheState,
    /// Whether shared memory of all multiprocessors is cleared.
    pub wipe_shared: bool,
}

/// From a runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromRunner {
    /// Done.
    Done,
    /// A program was loaded.
    Loaded {
        /// What the driver says of the kernel launched first.
        facts: Option<FunctionFacts>,
        /// Why what its modules keep cannot be put back; `None`: it can.
        unlisted: Option<String>,
        /// Whether its modules may keep anything from one launch to the next.
        keeps_state: bool,
    },
    /// A launch has ended.
    Launched {
        /// Time between the events, milliseconds; 0 without.
        ms: f32,
        /// What the emulator counted.
        counts: Option<LaunchCounts>,
    },
    /// The next launch is the judge's.
    Turn {
        /// Launches that are to be, after it.
        later: u32,
    },
    /// What the emulator found.
    Report(Option<serde_json::Value>),
    /// A launch or what came before it failed.
    Failed(Box<DeviceError>),
    /// Something else did.
    Unable(Box<RunFailure>),
}
