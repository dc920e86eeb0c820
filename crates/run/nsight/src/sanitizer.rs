//! Runs a worker under compute-sanitizer.
//!
//! The worker does nothing that could be attributed to the kernel: buffers have no guard bands,
//! only the content that the contract defines is written to them, and nothing is read back. Kernels
//! are not selected by name, because the submitter chooses the names. The worker's built-in kernels
//! must therefore cause no findings.

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

/// Maximum number of records. Each thread of a wrong kernel causes one record.
const RECORDS: u32 = 1_000;

/// Unused bytes after each allocation, so that an access past the end does not hit the next
/// allocation.
const PADDING_BYTES: u32 = 4_096;

/// Maximum length of a log, bytes. A log with the maximum number of records fits.
const LOG_BYTES: u64 = 16 << 20;

/// Checker of compute-sanitizer: a value of its option `--tool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Accesses outside allocations, misaligned accesses, and accesses to freed memory.
    Memcheck,
    /// Races on shared memory.
    Racecheck,
    /// Reads of global memory that was never written.
    Initcheck,
    /// Barriers that not all threads reach, and similar errors.
    Synccheck,
}

impl Check {
    /// All checkers of compute-sanitizer.
    pub const ALL: [Self; 4] = [Self::Memcheck, Self::Racecheck, Self::Initcheck, Self::Synccheck];

    /// Returns the checker's name in contracts and in the tool.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck",
            Self::Racecheck => "racecheck",
            Self::Initcheck => "initcheck",
            Self::Synccheck => "synccheck",
        }
    }
}

/// Configuration of a run of compute-sanitizer.
#[derive(Debug, Clone)]
pub struct CheckRun<'a> {
    /// The job whose kernel is launched.
    pub job: &'a WorkerJob<EvaluatePlan>,
    /// Existing private directory for this check only.
    pub directory: &'a Path,
    /// The checker to run.
    pub check: Check,
    /// Time limit from the start until the findings are read.
    pub time_limit: Duration,
}

/// Result of a run of compute-sanitizer.
#[derive(Debug)]
pub struct SanitizerOutput {
    /// The findings in the tool's log. A kernel cannot write to the log.
    pub log: SanitizerLog,
    /// Name and version of the tool.
    pub tool: String,
    /// The worker's outcome. A kernel with findings may have failed.
    pub outcome: RunOutcome<TracedRun>,
    /// Duration of the run.
    pub wall: Duration,
}

/// Checks one launch of a job on a leased device.
///
/// # Errors
/// Returns why the launch could not be checked, with a code and a remedy.
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
    // The worker may have failed because of a finding, which the tool has then reported.
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

/// Returns the command line of compute-sanitizer.
fn flags(sanitizer: &Usable, request: &CheckRun<'_>, log: &Path) -> Vec<OsString> {
    let mut flags: Vec<OsString> = vec![sanitizer.path().into()];
    flags.extend(["--tool", request.check.name(), "--log-file"].map(OsString::from));
    flags.push(log.into());
    flags.extend(["--target-processes", "application-only"].map(OsString::from));
    flags.extend(["--print-limit".into(), RECORDS.to_string().into()]);
    // Stack frames of this program do not concern the submitter.
    flags.extend(["--show-backtrace", "device"].map(OsString::from));
    flags.extend(["--check-exit-code", "no"].map(OsString::from));
    flags.extend(["--launch-timeout", "60"].map(OsString::from));
    if request.check == Check::Memcheck {
        flags.extend(["--padding".into(), PADDING_BYTES.to_string().into()]);
        // Failed API calls of this program do not concern the kernel.
        flags.extend(["--report-api-errors", "no"].map(OsString::from));
    }
    flags
}
