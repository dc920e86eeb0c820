//! Messages between a judge and the runners that make launches for it.
//!
//! The judge owns buffers, inputs and expectations. A runner opens the buffers, has submitted code
//! in its context, and makes one launch at a time when the judge requests it. Frames are sent over
//! a pair of sockets; the server hands one end to each process before its job. The judge sends the
//! first message, and the runner answers each message. A runner that makes its own launches
//! announces its first turn without a request.

use serde::{Deserialize, Serialize};

use super::job::Launches;
use super::outcome::{Blame, RunFailure};
use super::steps::LineTimes;
use super::task::{EvaluatePlan, PairPlan};
use warpgauge_device::{DeviceError, MemoryHandle};
use warpgauge_model::gate_page::Digest;
use warpgauge_model::{CacheState, FunctionFacts, LaunchCounts};

/// Plan of a judge: the task, and which runners make the launches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JudgePlan {
    pub task: JudgedTask,
    /// Whether a second runner makes the launches of references, which are not trusted either. The
    /// judge receives that runner's socket second.
    pub has_reference: bool,
}

/// Tasks that a judge can perform on launches of other processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum JudgedTask {
    /// Launches and verifies the program; times it if the plan requests it.
    Evaluate(Box<EvaluatePlan>),
    /// Times the program and a candidate side by side.
    Pair(Box<PairPlan>),
    /// Judges some of the timed launches of another process, when that process hands them over.
    Share(Box<EvaluatePlan>),
}

impl JudgedTask {
    /// Returns whether a reference kernel runs in addition to the candidate.
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

/// A message from a judge to a runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToRunner {
    /// Opens these buffers in place of the previous ones. The runner answers with `Done`.
    Open {
        /// Buffers in the order in which arguments name them.
        buffers: Vec<LentBuffer>,
        /// Byte that fills the guard bands around the buffers.
        guard: u8,
        /// Whether the emulator checks every access of the launches.
        checked: bool,
        /// Encrypted content of the buffers for launches that the runner hands over, if the judge
        /// prepared any.
        sets: Option<LentSets>,
    },
    /// Opens prepared sets in place of previous buffers. The runner answers with `Done`.
    OpenSets { sets: LentSets },
    /// Loads a program for the buffers. The runner answers with `Loaded`.
    Load {
        /// Launches of the program.
        launches: Launches,
        /// Whether the runner also restores constants of the program's modules.
        constants_too: bool,
        /// Who is at fault if the program cannot be loaded.
        blame: Blame,
    },
    /// Launches a program and waits until it ends. The runner answers with `Launched`.
    Launch {
        /// Index among the programs loaded since the buffers were opened.
        program: usize,
        /// Whether the runner first restores variables of the program's modules.
        forget: bool,
        how: LaunchHow,
    },
    /// Decrypts a prepared set to the buffers, makes the launch that the runner hands over, and
    /// copies the buffers back to the set. The runner answers with `Committed`, and continues with
    /// its own launches.
    Unlock { set: u32, key: Digest, how: TimedLaunch },
    /// Launches a program on each prepared set, whose content is not encrypted. The runner answers
    /// with `Done`.
    Expect { program: usize },
    /// Requests the emulator's findings since the buffers were opened. The runner answers with
    /// `Report`.
    Report,
    /// Unloads all programs and closes all buffers. The runner answers with `Done`.
    Close,
    /// The judge is ready for the first launch that the runner hands over, or has verified the last
    /// one. The runner continues with its own launches. It answers with its next `Turn` or
    /// `NoTurns`.
    Yield,
}

/// A buffer that the judge owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LentBuffer {
    /// Handle of the block that contains only this buffer and its guard bands.
    pub handle: MemoryHandle,
    /// Size of the block, bytes.
    pub bytes: u64,
    /// Offset of the content in the block, bytes.
    pub offset: u64,
}

/// Memory with prepared content of the buffers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LentSets {
    pub handle: MemoryHandle,
    /// Size of the memory, bytes. Each set contains the blocks of all buffers in order.
    pub bytes: u64,
    /// Size of each block, and offset of the content in it, bytes.
    pub blocks: Vec<(u64, u64)>,
}

/// How a launch is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchHow {
    /// The launch is not measured.
    Plain,
    /// Two events measure the time of the launch.
    Timed(TimedLaunch),
    /// The emulator counts the launch's operations.
    Counted,
    /// Each step of a list is timed separately. The runner answers with `Steps`.
    Steps,
}

/// Preparation right before a timed launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedLaunch {
    /// State of the L2 cache.
    pub cache: CacheState,
    /// Whether the runner clears shared memory of all multiprocessors.
    pub wipe_shared: bool,
}

/// A message from a runner to its judge.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromRunner {
    Done,
    /// A program was loaded.
    Loaded {
        /// Properties of the first kernel that the driver reports.
        facts: Option<FunctionFacts>,
        /// Why the state of the program's modules cannot be restored; `None` if it can.
        unlisted: Option<String>,
        /// Whether the program's modules may keep any state between launches.
        keeps_state: bool,
    },
    /// A launch has ended.
    Launched {
        /// Time between the events, milliseconds; 0 for a launch that is not timed.
        ms: f32,
        /// The emulator's counts of the launch.
        counts: Option<LaunchCounts>,
    },
    /// A launch on a prepared set has ended, and the buffers are copied back to the set.
    Committed {
        /// Time between the events, milliseconds.
        ms: f32,
        /// Hash of the copy.
        digest: Digest,
    },
    /// All steps of a list have ended.
    Steps(Vec<LineTimes>),
    /// The runner hands its next launch over to the judge.
    Turn {
        /// Number of launches that the runner plans to hand over after this one.
        later: u32,
    },
    /// The runner hands over no more launches, and does not use the buffers until the judge answers
    /// with `Yield`. They stay open until it closes the connection.
    NoTurns,
    /// The emulator's findings.
    Report(Option<serde_json::Value>),
    /// A launch or its preparation failed.
    Failed(Box<DeviceError>),
    /// Another operation failed.
    Unable(Box<RunFailure>),
}
