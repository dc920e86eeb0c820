//! compute-sanitizer round a worker.
//!
//! The worker does nothing that could be taken for the kernel's: buffers have nothing round them,
//! only what the contract defines is written to them, and nothing is read back. Kernels are not
//! chosen by name, which a submitter chooses: those of the worker must be without findings.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::run::{self, Usable};
use super::{ToolName, Tools};
use warpgauge_metrics::sanitizer::{self as reader, SanitizerLog};
use warpgauge_model::{CacheState, FailureCode, Unavailable};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{
    Blame, EvaluatePlan, RunOutcome, TracePlan, TraceView, TracedRun, WorkerJob,
};

/// Records that are written: each thread of a wrong kernel has one.
const RECORDS: u32 = 1_000;

/// Bytes after each allocation that belong to none, so that an access past the end of one is not an access
/// to the next.
const PADDING_BYTES: u32 = 4_096;

/// Log that holds that many records, bytes.
const LOG_BYTES: u64 = 16 << 20;

/// A checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Accesses outside of allocations, misaligned, or after they were freed.
    Memcheck,
    /// Races on shared memory.
    Racecheck,
    /// Reads of global memory that nothing wrote.
    Initcheck,
    /// Barriers that not all threads reach, and the like.
    Synccheck,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memcheck, Self::Racecheck, Self::Initcheck, Self::Synccheck];

    /// Its name, as contracts and the tool have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck",
            Self::Racecheck => "racecheck",
            Self::Initcheck => "initcheck",
            Self::Synccheck => "synccheck",
        }
    }
}

/// What to check, and how.
#[derive(Debug, Clone)]
pub struct CheckRun<'a> {
    /// The job whose kernel is launched.
    pub job: &'a WorkerJob<EvaluatePlan>,
    /// Existing private directory for this check alone.
    pub directory: &'a Path,
    /// The checker.
    pub check: Check,
    /// From here to the findings.
    pub time_limit: Duration,
}

/// What a check yields.
#[derive(Debug)]
pub struct SanitizerOutput {
    /// What the tool found, by its log; a kernel cannot print to it.
    pub log: SanitizerLog,
    /// The tool and its version.
    pub tool: String,
    /// What the worker told of the run. A kernel with findings may have failed.
    pub outcome: RunOutcome<TracedRun>,
    /// How long it took.
    pub wall: Duration,
}

/// Checks one launch of a job on a leased device.
///
/// # Errors
/// Why it could not be checked, with a code and what would help.
pub async fn check(
    tools: &Tools,
    lease: &mut Lease,
    request: &CheckRun<'_>,
) -> Result<SanitizerOutput, Unavailable> {
    let sanitizer = run::usable(tools, ToolName::ComputeSanitizer).await?;
    let directory = run::directory(request.directory, request.check.name())?;
    let log_file = directory.join("sanitizer.log");
    let wrapper = flags(&sanitizer, request, &log_file);
    let plan = TracePlan { view: TraceView::Checks, cache: CacheState::Hot };
    let shot = run::shot(wrapper, &directory, request.time_limit);
    let end = lease.run_under(&shot, request.job.with(plan)).await;
    let log = reader::parse_log(&run::long_log(&log_file, LOG_BYTES));
    // The worker may have failed by what was found; then the tool tells what, and ends.
    let failure = end.outcome.failure.as_ref();
    let answered = failure.is_none_or(|failure| {
        failure.blame == Blame::Candidate || failure.code == FailureCode::WorkerDied
    });
    if !answered || end.tool.status.is_none() || !log.complete() {
        let said = run::log(&log_file, &end.tool);
        let problem = reader::cause(&said);
        let problem = problem.map(|cause| cause.because(run::quoted(&said)));
        let name = ToolName::ComputeSanitizer;
        return Err(run::failed(name, &end, problem, &said, request.time_limit));
    }
    Ok(SanitizerOutput {
        log,
        tool: format!("compute-sanitizer {}", sanitizer.version().unwrap_or("of unknown version")),
        outcome: end.outcome,
        wall: end.tool.wall,
    })
}

/// The tool and its flags.
fn flags(sanitizer: &Usable, request: &CheckRun<'_>, log: &Path) -> Vec<OsString> {
    let mut flags: Vec<OsString> = vec![sanitizer.path().into()];
    flags.extend(["--tool", request.check.name(), "--log-file"].map(OsString::from));
    flags.push(log.into());
    flags.extend(["--target-processes", "application-only"].map(OsString::from));
    flags.extend(["--print-limit".into(), RECORDS.to_string().into()]);
    // Frames of this program tell the submitter nothing.
    flags.extend(["--show-backtrace", "device"].map(OsString::from));
    flags.extend(["--check-exit-code", "no"].map(OsString::from));
    flags.extend(["--launch-timeout", "60"].map(OsString::from));
    if request.check == Check::Memcheck {
        flags.extend(["--padding".into(), PADDING_BYTES.to_string().into()]);
        // Calls of this program that fail are none of the kernel's business.
        flags.extend(["--report-api-errors", "no"].map(OsString::from));
    }
    flags
}
