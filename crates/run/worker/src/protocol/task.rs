//! The tasks that a worker performs on a program: one per job.

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
use warpgauge_validate::{Arrangement, ResolvedTolerance};

/// A task of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum WorkerTask {
    /// Launches and verifies the program; times it if the plan requests it.
    Evaluate(Box<EvaluatePlan>),
    /// Times the program and a candidate side by side.
    Pair(Box<PairPlan>),
    /// Reads hardware counters.
    Count(CountPlan),
    /// Launches the program for a tool that watches this process. Nothing is timed or verified.
    Trace(TracePlan),
    /// Launches the program repeatedly while the driver monitors the GPU.
    Monitor(MonitorPlan),
    /// Judges launches that other processes make.
    Judge(Box<JudgePlan>),
    /// Makes launches for a judge in another process, until the judge is done.
    Serve,
}

impl WorkerTask {
    /// Returns an empty result of the task.
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

    /// Returns whether reference kernels compute the expected outputs.
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

/// Plan of one kind of task, with the type of its result.
pub trait TaskPlan: Into<WorkerTask> {
    /// Result of the task. Its default value is an empty result.
    type Output: Default;

    /// Returns the result of an outcome if it is of this kind.
    fn told(outcome: TaskOutcome) -> Option<Self::Output>;
}

/// Connects a plan with its variants of [`WorkerTask`] and [`TaskOutcome`].
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

/// Plan of an evaluation: what to measure, and which outputs to keep.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EvaluatePlan {
    /// Expected outputs. Without checks, outputs are only hashed.
    pub checks: Checks,
    /// Indices of buffers whose content is written to the job's directory as raw elements.
    pub keep_outputs: Vec<usize>,
    /// Timing plan. With `None` the program runs once, untimed.
    pub trials: Option<TrialPlan>,
    /// Whether the emulator checks memory accesses.
    pub sanitize: bool,
    /// Whether to look for trivial kernels that would pass without doing the work.
    pub lint: bool,
    /// Whether the emulator counts the operations of one additional launch.
    pub count: bool,
}

/// Expected outputs and tolerances.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Checks {
    /// Kernels that compute expected outputs, each with the outputs that it provides.
    pub references: Vec<ReferenceRun>,
    /// Expected content from files: index of the buffer, and file of raw elements. The content for
    /// the contract's inputs comes first, then the content for the inputs of each seed in `drawn`.
    pub files: Vec<(usize, PathBuf)>,
    /// Seeds of additional inputs for which `files` has content. The submitter does not know them.
    /// The contract's generators make the inputs from them.
    pub drawn: Vec<u64>,
    /// Permitted error of each element of a file in addition to the tolerance: index of the buffer,
    /// and file of binary64 numbers.
    pub bounds: Vec<(usize, PathBuf)>,
    pub tolerances: Tolerances,
    /// Buffers whose tolerance is derived, wholly or in part, from the expected outputs: index of
    /// the buffer, and the fields that the caller gives.
    pub open: Vec<(usize, Option<Tolerance>)>,
    /// How to compare outputs that have more than one correct form.
    pub arrangements: Vec<Arrangement>,
}

impl Checks {
    /// Returns whether references run before the candidate, in order to measure tolerances.
    pub fn measures_tolerances(&self) -> bool {
        let is_open = |output: &usize| self.open.iter().any(|(open, _)| open == output);
        self.references.iter().any(|reference| reference.outputs.iter().any(is_open))
    }

    /// Returns whether an output is correct in more than one order or form.
    pub fn is_arranged(&self, buffer: usize) -> bool {
        self.arrangements.iter().any(|one| one.outputs().any(|output| output == buffer))
    }

    /// Adopts the tolerances that an evaluation has derived.
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
    /// Returns the tolerance of a buffer, if the buffer is checked.
    pub fn of(&self, buffer: usize) -> Option<&ResolvedTolerance> {
        self.0.iter().find(|(index, _)| *index == buffer).map(|(_, tolerance)| tolerance)
    }

    /// Returns whether no buffer is checked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Launches that compute expected outputs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReferenceRun {
    /// Launches that use the program's buffers.
    pub launches: Launches,
    /// The same launches, compiled without fused multiply-add. The difference shows how rounding
    /// affects integers.
    pub unfused: Option<Launches>,
    /// Indices of the buffers whose expected content these launches compute.
    pub outputs: Vec<usize>,
}

/// Plan of the timed launches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Rule that decides when enough launches are timed.
    pub stop: StopRule,
    /// Minimum duration of the warm-up, seconds.
    pub min_warmup_s: f64,
    /// State of the L2 cache at each launch.
    pub cache: CacheState,
    /// Activity of the device between timed launches.
    pub regime: Regime,
    /// Whether each launch gets random inputs that no earlier launch had. This requires a contract
    /// with random inputs whose expected outputs can be computed.
    pub fresh_inputs: bool,
    /// Approximate number of timed launches whose outputs are verified.
    pub audits: u32,
    /// Approximate number of timed launches that a separate process judges. If it is 0, there is no
    /// such process.
    pub sealed: u32,
    /// Number of consecutive launches between which module state is not restored, if the kernel's
    /// modules keep any state.
    pub lasting: u32,
    /// The candidate's time limit, seconds.
    pub time_limit_s: f64,
}

/// Plan of timing two kernels side by side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairPlan {
    /// Launches of the candidate. The job's program is the reference.
    pub rival: Launches,
    /// Tolerance between the candidate's outputs and the program's, by buffer index. Buffers
    /// without a tolerance are not compared.
    pub tolerances: Tolerances,
    /// How to compare outputs that have more than one correct form.
    pub arrangements: Vec<Arrangement>,
    /// Rule that decides when enough blocks are measured.
    pub policy: ComparePolicy,
    /// Number of timed launches in each of a block's four slots.
    pub trials_per_slot: u32,
    /// Time limit for all blocks, seconds. After it, the blocks measured so far decide.
    pub max_time_s: f64,
    /// State of the L2 cache at each launch.
    pub cache: CacheState,
    /// Whether launches get random inputs that no earlier launch had.
    pub fresh_inputs: bool,
}

/// Plan of monitoring a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorPlan {
    /// Minimum time between two readings, milliseconds.
    pub window_ms: u32,
}

/// Plan of reading hardware counters, for a worker that only reads counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountPlan {
    /// NVIDIA's names of the metrics.
    pub metrics: Vec<String>,
    /// State of the L2 cache at each launch.
    pub cache: CacheState,
    /// Maximum number of launches.
    pub max_passes: u32,
}

/// Plan of launches under a tool that watches the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePlan {
    pub view: TraceView,
    /// State of the L2 cache at each launch, as far as this process controls it.
    pub cache: CacheState,
}

/// Data that a tool collects while a worker runs under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceView {
    /// Hardware counters. The worker makes one launch outside the tool's view, then a single launch
    /// for the tool.
    Counters,
    /// The timeline: several launches, the preparation of each, and the copies of the outputs.
    Timeline {
        /// Number of launches that the tool observes.
        launches: u32,
    },
    /// Every memory access: one launch on buffers without guard bands. Only the defined content is
    /// written, and nothing is read back.
    Checks,
}
