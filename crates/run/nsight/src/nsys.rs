//! Runs a worker or a whole program under Nsight Systems, which records the activity of the GPU and
//! the driver over time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::run::{self, ToolFile, Usable};
use super::watched::run_watched;
use super::{ToolName, Tools};
use warpgauge_metrics::nsys as reader;
use warpgauge_model::{CacheState, Cause, Unavailable};
use warpgauge_sandbox::contained::{self, ProcessEnd, ProcessLaunch};
use warpgauge_sandbox::program::ChildProgram;
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{EvaluatePlan, TracePlan, TraceView, WorkerJob};

/// Time limit for reading one table of `nsys stats`.
const TABLE_LIMIT: Duration = Duration::from_secs(60);

/// Maximum size of a table of `nsys stats`, bytes.
const TABLE_BYTES: usize = 8 << 20;

/// Maximum number of bytes kept of the output that a program prints under the tool. Error messages
/// quote it.
const PRINTED_BYTES: usize = 64 << 10;

/// A table of `nsys stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NsysTable {
    /// Durations of kernels.
    Kernels,
    /// Durations of copies and fills.
    MemoryTime,
    /// Sizes of copies and fills.
    MemorySize,
    /// Durations of API calls.
    Calls,
    /// Every kernel, copy and fill, with its start and duration.
    Trace,
    /// Launches, with the times of the API call, of the wait in the queue, and of the kernel. Older
    /// versions do not support this table.
    Launches,
}

impl NsysTable {
    pub const ALL: [Self; 6] = [
        Self::Kernels,
        Self::MemoryTime,
        Self::MemorySize,
        Self::Calls,
        Self::Trace,
        Self::Launches,
    ];

    /// Returns the table's names: the name since version 2023.1, and the older name.
    pub fn names(self) -> [&'static str; 2] {
        match self {
            Self::Kernels => ["cuda_gpu_kern_sum", "gpukernsum"],
            Self::MemoryTime => ["cuda_gpu_mem_time_sum", "gpumemtimesum"],
            Self::MemorySize => ["cuda_gpu_mem_size_sum", "gpumemsizesum"],
            Self::Calls => ["cuda_api_sum", "cudaapisum"],
            Self::Trace => ["cuda_gpu_trace", "gputrace"],
            Self::Launches => ["cuda_kern_exec_sum", "kernexecsum"],
        }
    }
}

/// Configuration of a trace with Nsight Systems.
#[derive(Debug, Clone)]
pub struct TraceRun<'a> {
    /// The job whose kernel is launched.
    pub job: &'a WorkerJob<EvaluatePlan>,
    /// Existing private directory for this profile only.
    pub directory: &'a Path,
    /// Number of launches to trace.
    pub launches: u32,
    /// State of the L2 cache at each launch.
    pub cache: CacheState,
    /// Time limit from the start until the tables are read.
    pub time_limit: Duration,
}

/// Result of a trace with Nsight Systems.
#[derive(Debug)]
pub struct NsysOutput {
    /// Tables as `nsys stats --format csv` prints them.
    pub tables: BTreeMap<NsysTable, String>,
    /// Missing tables, each with the reason.
    pub missing: BTreeMap<NsysTable, Unavailable>,
    /// Output of the tool.
    pub log: String,
    /// Name and version of the tool.
    pub tool: String,
    /// Report files, which are stored with the job.
    pub artifacts: Vec<ToolFile>,
    /// Device memory of the job's buffers according to the worker, bytes.
    pub memory_bytes: Option<u64>,
}

/// Traces a job on a leased device.
///
/// # Errors
/// Returns why there is no trace, with a code and a remedy.
pub async fn trace(
    tools: &Tools,
    lease: &mut Lease,
    request: &TraceRun<'_>,
) -> Result<NsysOutput, Unavailable> {
    let nsys = run::usable(tools, ToolName::Nsys).await?;
    let deadline = Instant::now() + request.time_limit;
    let directory = run::directory(request.directory, "nsys")?;
    let report = directory.join("kernel.nsys-rep");
    let plan = TracePlan {
        view: TraceView::Timeline { launches: request.launches },
        cache: request.cache,
    };
    let wrapper = flags(nsys.path(), &directory.join("kernel"));
    let shot = run::shot(wrapper, &directory, request.time_limit);
    let end = lease.run_under(&shot, request.job.with(plan)).await;
    let log = run::log(Path::new(""), &end.tool);
    let name = ToolName::Nsys;
    let Some(artifact) = ToolFile::new("kernel.nsys-rep", report) else {
        let problem = reader::cause(&log).map(|cause| cause.because(run::quoted(&log)));
        return Err(run::failed(name, &end, problem, &log, request.time_limit));
    };
    if end.outcome.failure.is_some() || end.tool.status.is_none() {
        return Err(run::failed(name, &end, None, &log, request.time_limit));
    }
    let memory_bytes = end.outcome.told.memory_bytes;
    Ok(NsysOutput { memory_bytes, ..read(&nsys, artifact, log, &directory, deadline).await? })
}

/// Traces a whole program from its start to its end. `program` ends by itself or at `time_limit`,
/// which includes the time for the tables. `input` is its standard input; its output is not kept.
/// The program and the tool may write only to `directory`.
///
/// # Errors
/// Returns why there is no trace, with a code and a remedy.
pub async fn trace_program(
    tools: &Tools,
    program: &ChildProgram,
    input: Vec<u8>,
    directory: &Path,
    time_limit: Duration,
) -> Result<NsysOutput, Unavailable> {
    let nsys = run::usable(tools, ToolName::Nsys).await?;
    let deadline = Instant::now() + time_limit;
    let report = directory.join("program.nsys-rep");
    let program = program.clone().under(&flags_of_program(nsys.path(), &directory.join("program")));
    let launch =
        ProcessLaunch { input, stdout_bytes: PRINTED_BYTES, ..ProcessLaunch::new(program) };
    let end = run_watched(&launch, directory, time_limit).await?;
    let log = run::log(Path::new(""), &end);
    let Some(artifact) = ToolFile::new("program.nsys-rep", report) else {
        let why = match (&end.status, reader::cause(&log)) {
            (_, Some(cause)) => cause,
            (None, None) => Cause::TimedOut,
            (Some(_), None) => Cause::ToolDied,
        };
        let how = end.description();
        return Err(why.because(format!("nsys wrote no report ({how}): {}", run::quoted(&log))));
    };
    if end.status.is_none() {
        let seconds = time_limit.as_secs_f64();
        return Err(Cause::TimedOut.because(format!("nsys did not end within {seconds} s")));
    }
    read(&nsys, artifact, log, directory, deadline).await
}

/// Reads all tables of a report of Nsight Systems.
async fn read(
    nsys: &Usable,
    artifact: ToolFile,
    log: String,
    directory: &Path,
    deadline: Instant,
) -> Result<NsysOutput, Unavailable> {
    let mut traced = NsysOutput {
        tables: BTreeMap::new(),
        missing: BTreeMap::new(),
        log,
        tool: format!("Nsight Systems {}", nsys.version().unwrap_or("of unknown version")),
        artifacts: vec![artifact],
        memory_bytes: None,
    };
    let report = traced.artifacts[0].path.clone();
    for which in NsysTable::ALL {
        match table(nsys, which, &report, directory, deadline).await {
            Ok(text) => drop(traced.tables.insert(which, text)),
            Err(why) => drop(traced.missing.insert(which, why)),
        }
    }
    if traced.tables.is_empty() {
        let first = traced.missing.into_values().next();
        return Err(first.unwrap_or_else(|| Cause::NoData.because("nsys printed nothing")));
    }
    Ok(traced)
}

/// Returns the command line of Nsight Systems for a worker. `output` is the report's path without
/// its extension.
fn flags(nsys: &Path, output: &Path) -> Vec<OsString> {
    let of_worker = [
        // Only the range that the worker marks is recorded.
        "--capture-range=cudaProfilerApi",
        // The worker ends by itself after it has answered.
        "--capture-range-end=stop",
        "--kill=none",
    ];
    with_flags(nsys, &of_worker, output)
}

/// Returns the command line of Nsight Systems for a whole program, which is recorded from start to
/// end.
fn flags_of_program(nsys: &Path, output: &Path) -> Vec<OsString> {
    with_flags(nsys, &["--kill=sigkill", "--wait=primary"], output)
}

fn with_flags(nsys: &Path, own: &[&str], output: &Path) -> Vec<OsString> {
    let mut flags: Vec<OsString> = vec![nsys.into(), "profile".into()];
    flags.extend(["--trace=cuda", "--sample=none", "--cpuctxsw=none"].map(OsString::from));
    flags.extend(own.iter().map(OsString::from));
    let common = ["--force-overwrite=true", "--stats=false", "--show-output=false"];
    flags.extend(common.map(OsString::from));
    flags.extend(["-o".into(), output.into()]);
    flags
}

/// Reads one table. Uses its older name if the newer one is unknown.
async fn table(
    nsys: &Usable,
    which: NsysTable,
    report: &Path,
    directory: &Path,
    deadline: Instant,
) -> Result<String, Unavailable> {
    let mut said = String::new();
    for name in which.names() {
        let end = stats(nsys, name, report, directory, deadline).await?;
        if end.status.is_none() {
            return Err(
                Cause::TimedOut.because(format!("nsys stats --report {name} did not end in time"))
            );
        }
        // nsys reports an unknown table only on standard error, and exits successfully.
        let told = end.stdout.text.trim();
        if end.succeeded() && end.stdout.left_out == 0 && !told.is_empty() {
            return Ok(end.stdout.text);
        }
        said = run::quoted(&format!("{told}\n{}", end.stderr.text));
        let silent = end.succeeded() && told.is_empty() && end.stderr.text.trim().is_empty();
        if silent || reader::cause(&said) == Some(Cause::NoData) {
            let text = format!("nothing was recorded for {name}");
            return Err(Cause::NoData.because(text));
        }
    }
    let text = format!("nsys stats returned no {}: {said}", which.names()[0]);
    Err(reader::cause(&said).unwrap_or(Cause::UnknownReport).because(text))
}

async fn stats(
    nsys: &Usable,
    name: &str,
    report: &Path,
    directory: &Path,
    deadline: Instant,
) -> Result<ProcessEnd, Unavailable> {
    let program = contained::tool(nsys.path(), directory)
        .args(["stats", "--report", name, "--format", "csv"])
        .args(["--force-export=true", "--quiet"])
        .arg(report);
    let launch = ProcessLaunch { stdout_bytes: TABLE_BYTES, ..ProcessLaunch::new(program) };
    let limit = deadline.saturating_duration_since(Instant::now()).min(TABLE_LIMIT);
    contained::run(&launch, limit)
        .await
        .map_err(|error| Cause::ToolDied.because(format!("cannot start nsys stats: {error}")))
}
