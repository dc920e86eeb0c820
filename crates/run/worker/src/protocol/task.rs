//! What is done with a program: one task in one job.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::job::Launches;
use super::outcome::{
    CountedRun, EvaluatedRun, MonitoredRun, OutputCheck, PairedRun, TaskOutcome, TracedRun,
};
use super::served::{JudgePlan, JudgedTask};
use warpgauge_contract::Tolerance;
use warpgauge_model::{CacheState, Regime};
use warpgauge_statistics::StopRule;
use warpgauge_statistics::paired::ComparePolicy;
use warpgauge_validate::ResolvedTolerance;

/// One of the things that a worker can do with a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum WorkerTask {
    /// Launch and verify it; time it if wanted.
    Evaluate(Box<EvaluatePlan>),
    /// Time it and a rival side by side.
    Pair(Box<PairPlan>),
    /// Read hardware counters of it.
    Count(CountPlan),
    /// Launch it for a tool that watches this process. Nothing is timed or verified.
    Trace(TracePlan),
    /// Launch it again and again while the driver monitors the GPU.
    Monitor(MonitorPlan),
    /// Judge launches that other processes make.
    Judge(Box<JudgePlan>),
    /// Make launches that another process judges, for as long as it has any.
    Serve,
}

impl WorkerTask {
    /// What is told of it as long as nothing was found out.
    pub fn nothing(&self) -> TaskOutcome {
        match self {
            WorkerTask::Evaluate(_) => TaskOutcome::Evaluated(Box::default()),
            WorkerTask::Pair(_) => TaskOutcome::Paired(PairedRun::default()),
            WorkerTask::Count(_) => TaskOutcome::Counted(CountedRun::default()),
            WorkerTask::Trace(_) => TaskOutcome::Traced(TracedRun::default()),
            WorkerTask::Monitor(_) => TaskOutcome::Monitored(MonitoredRun::default()),
            WorkerTask::Judge(plan) => match plan.task {
                JudgedTask::Evaluate(_) | JudgedTask::Share(_) => {
                    TaskOutcome::Evaluated(Box::default())
                }
                JudgedTask::Pair(_) => TaskOutcome::Paired(PairedRun::default()),
            },
            WorkerTask::Serve => TaskOutcome::Served,
        }
    }

    /// Whether kernels of the contract's author compute what is expected.
    pub fn has_references(&self) -> bool {
        match self {
            WorkerTask::Evaluate(plan) => !plan.checks.references.is_empty(),
            WorkerTask::Judge(plan) => plan.task.has_references(),
            WorkerTask::Pair(_)
            | WorkerTask::Count(_)
            | WorkerTask::Trace(_)
            | WorkerTask::Monitor(_)
            | WorkerTask::Serve => false,
        }
    }
}

/// A task of one kind, and what comes of it.
pub trait TaskPlan: Into<WorkerTask> {
    /// What a worker tells of it; as it is by default, nothing was found out.
    type Output: Default;

    /// What was told, if it is of this kind.
    fn told(outcome: TaskOutcome) -> Option<Self::Output>;
}

/// Says which variant of [`WorkerTask`] and of [`TaskOutcome`] a plan is of.
macro_rules! plan {
    ($plan:ident: $told:ident, $into:expr, $outcome:pat => $is:expr) => {
        impl From<$plan> for WorkerTask {
            fn from(plan: $plan) -> Self {
                $into(plan.into())
            }
        }

        impl TaskPlan for $plan {
            type Output = $told;

            fn told(outcome: TaskOutcome) -> Option<$told> {
                match outcome {
                    $outcome => Some($is),
                    _ => None,
                }
            }
        }
    };
}

plan!(EvaluatePlan: EvaluatedRun, WorkerTask::Evaluate, TaskOutcome::Evaluated(told) => *told);
plan!(PairPlan: PairedRun, WorkerTask::Pair, TaskOutcome::Paired(told) => told);
plan!(CountPlan: CountedRun, WorkerTask::Count, TaskOutcome::Counted(told) => told);
plan!(TracePlan: TracedRun, WorkerTask::Trace, TaskOutcome::Traced(told) => told);
plan!(MonitorPlan: MonitoredRun, WorkerTask::Monitor, TaskOutcome::Monitored(told) => told);

/// What to find out about a program, and what to keep of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EvaluatePlan {
    /// What its outputs must be; with none they are only hashed.
    pub checks: Checks,
    /// Buffers whose content is written to the job's directory as raw elements.
    pub keep_outputs: Vec<usize>,
    /// Timing plan; `None`: run once, do not time.
    pub trials: Option<TrialPlan>,
    /// Whether findings of the emulator's memory checks are wanted.
    pub sanitize: bool,
    /// Whether to look for what would pass without doing the work.
    pub lint: bool,
    /// Whether the emulator's counts of one more launch are wanted.
    pub count: bool,
}

/// What outputs must be.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Checks {
    /// Kernels that compute expected outputs, each with the outputs it is asked for.
    pub references: Vec<ReferenceRun>,
    /// Expected content given as data: buffer index, file of raw elements. The content for the contract's
    /// inputs comes first, then that for the inputs of each seed in `drawn`.
    pub files: Vec<(usize, PathBuf)>,
    /// Seeds, unknown to the submitter, of the inputs that `files` has further content for. Random elements are
    /// those that the contract's generators make of them.
    pub drawn: Vec<u64>,
    /// How far each of those elements may be off beside the tolerance: buffer index, file of binary64.
    pub bounds: Vec<(usize, PathBuf)>,
    /// Tolerance of each buffer that is checked.
    pub tolerances: Tolerances,
    /// What the caller gives of those tolerances that follow, wholly or in part, from what is expected: buffer index,
    /// and the tolerance given.
    pub open: Vec<(usize, Option<Tolerance>)>,
}

impl Checks {
    /// Whether references run before the candidate does, to measure how close is close enough.
    pub fn measures_tolerances(&self) -> bool {
        let is_open = |output: &usize| self.open.iter().any(|(open, _)| open == output);
        self.references.iter().any(|reference| reference.outputs.iter().any(is_open))
    }

    /// Takes over the tolerances that an evaluation settled.
    pub fn take_settled(&mut self, told: &[OutputCheck]) {
        for OutputCheck { buffer, comparison } in told {
            let own = self.tolerances.0.iter_mut().find(|(index, _)| index == buffer);
            if let Some((_, tolerance)) = own {
                *tolerance = comparison.tolerance;
                self.open.retain(|(index, _)| index != buffer);
            }
        }
    }
}

/// Tolerances by buffer index.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tolerances(pub Vec<(usize, ResolvedTolerance)>);

impl Tolerances {
    /// Tolerance of a buffer, if it is checked.
    pub fn of(&self, buffer: usize) -> Option<&ResolvedTolerance> {
        self.0.iter().find(|(index, _)| *index == buffer).map(|(_, tolerance)| tolerance)
    }

    /// Whether no buffer is checked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Launches that compute what is expected, and the outputs that they define.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReferenceRun {
    /// What computes them, on the program's buffers.
    pub launches: Launches,
    /// The same, compiled without fused multiply-add, where that says what rounding does to whole numbers.
    pub unfused: Option<Launches>,
    /// Indices of the buffers whose expected content it computes.
    pub outputs: Vec<usize>,
}

/// How often to launch and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// When there are enough timed launches.
    pub stop: StopRule,
    /// Shortest warm-up, seconds.
    pub min_warmup_s: f64,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// What the device does between timed launches.
    pub regime: Regime,
    /// Whether each launch gets random inputs that none before it saw, where the contract has
    /// random inputs and its expectation can be computed for them.
    pub fresh_inputs: bool,
    /// Timed launches whose outputs are verified, about.
    pub audits: u32,
    /// Timed launches that another process judges, about; 0: none, and no such process is there.
    pub sealed: u32,
    /// Launches that follow one another with what the kernel's modules keep, if they keep anything.
    pub lasting: u32,
    /// The candidate's time limit, seconds.
    pub time_limit_s: f64,
}

/// How to time two kernels side by side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairPlan {
    /// The launches of the candidate; the job's program is the reference.
    pub rival: Launches,
    /// How far its outputs may be from those of the program, by buffer index; without one a buffer
    /// is not looked at.
    pub tolerances: Tolerances,
    /// When there are enough blocks.
    pub policy: ComparePolicy,
    /// Timed launches in each of a block's four slots.
    pub trials_per_slot: u32,
    /// Time for all blocks, seconds; then what there is decides.
    pub max_time_s: f64,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// Whether launches get random inputs that none before them saw.
    pub fresh_inputs: bool,
}

/// How long to monitor a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorPlan {
    /// Shortest time between two readings, milliseconds.
    pub window_ms: u32,
}

/// Hardware counters to read, by a worker that is for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountPlan {
    /// NVIDIA's metrics.
    pub metrics: Vec<String>,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// Launches that it may take.
    pub max_passes: u32,
}

/// Launches for a tool round the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePlan {
    /// What the tool is to see.
    pub view: TraceView,
    /// State of L2 at each launch, as far as this process sets it.
    pub cache: CacheState,
}

/// What a tool round a worker is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceView {
    /// Hardware counters: after one launch that it does not see, one launch and nothing else.
    Counters,
    /// The timeline: so many launches, what each needs before it, and the copies of the outputs.
    Timeline {
        /// How many.
        launches: u32,
    },
    /// Every access: one launch on buffers with nothing round them, of which only the defined
    /// content is written, and none is read.
    Checks,
}
