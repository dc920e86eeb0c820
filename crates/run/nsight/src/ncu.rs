//! Runs a worker, a whole program, or a served program under Nsight Compute.
//!
//! Each profile takes two runs: the first writes a report, the second converts it to CSV. Text that
//! a kernel prints thus cannot mix with the values, and the report can be stored. The worker
//! selects the profiled launch by marking its beginning and its end through the driver.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

pub use super::ncu_values::{collected, collected_all};
use super::run::{self, ToolFile, Usable};
use super::watched::{run_served, run_watched};
use super::{ToolName, Tools};
use warpgauge_metrics::ncu::parse_log;
use warpgauge_metrics::{CacheControl, ClockControl, Conditions, Replay};
use warpgauge_model::{CacheState, Cause, Unavailable};
use warpgauge_sandbox::contained::{self, ProcessEnd, ProcessLaunch};
use warpgauge_sandbox::program::ChildProgram;
use warpgauge_worker::protocol::{
    EvaluatePlan, RunOutcome, TracePlan, TraceView, TracedRun, WorkerJob,
};
use warpgauge_worker::{Lease, OneShotEnd};

/// Maximum number of runs while another process holds the counters.
const ATTEMPTS: u32 = 4;

/// Delay before the second run. It doubles before each later run.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Maximum number of runs, each without the unsupported metrics that earlier runs reported. A run
/// reports one such metric.
const REFUSALS: u32 = 8;

/// Time limit for converting a report to CSV.
const IMPORT_LIMIT: Duration = Duration::from_secs(60);

/// Maximum size of the CSV output, bytes. The `full` set of one kernel takes about 100 KB.
const CSV_BYTES: usize = 32 << 20;

/// Maximum number of bytes kept of the output that a program prints under the tool. Error messages
/// quote it.
const PRINTED_BYTES: usize = 64 << 10;

/// Maximum length of a list of metrics in one argument, bytes. Linux permits 128 KiB.
const ARGUMENT_BYTES: usize = 100 << 10;

/// Metrics that Nsight Compute reads: a list, or a predefined set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metrics {
    /// Metrics with these NVIDIA names.
    Named(Vec<String>),
    /// A predefined set of the tool: `basic` or `full`.
    Set(String),
}

/// The process whose kernels are profiled.
#[derive(Debug, Clone, Copy)]
pub enum NcuTarget<'a> {
    /// A worker that runs one job; the kernel of the job is profiled.
    Job(&'a WorkerJob<EvaluatePlan>),
    /// A whole program, which ends by itself or at the time limit. Its first launches are profiled.
    Program {
        program: &'a ChildProgram,
        /// Content of the program's standard input.
        stdin: &'a [u8],
        /// The directory that the program and the tool may write to.
        writes: &'a Path,
        /// Maximum number of profiled launches.
        launches: u32,
    },
    /// A program that waits for requests, and marks the profiled range itself.
    Served {
        /// Starts the program and answers its requests.
        service: &'a dyn ProgramServer,
        /// The directory that the program and the tool may write to.
        writes: &'a Path,
        /// Maximum number of profiled launches.
        launches: u32,
    },
}

/// Serves a program that runs under a tool. The program may have to be run more than once.
pub trait ProgramServer: fmt::Debug + Sync {
    /// Begins a run. Returns the program to start and the future that serves it. `directory`
    /// contains the tool's files.
    ///
    /// # Errors
    /// Returns why the program cannot be started.
    fn begin(&self, directory: &Path) -> Result<ServedRun<'_>, Unavailable>;
}

/// A program that runs under Nsight Compute, with the future that serves it.
pub struct ServedRun<'a> {
    /// The program to start.
    pub program: ChildProgram,
    /// The program's standard input, through which it communicates.
    pub stdin: OwnedFd,
    /// Serves the program while it runs. The future makes the program end, and completes when the
    /// program has ended.
    pub serving: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
}

/// Configuration of a profile with Nsight Compute.
#[derive(Debug, Clone)]
pub struct ProfileRun<'a> {
    /// The process that launches kernels.
    pub subject: NcuTarget<'a>,
    /// Existing private directory for this profile only.
    pub directory: &'a Path,
    /// The metrics to read.
    pub metrics: Metrics,
    /// State of the caches at a launch.
    pub cache: CacheState,
    /// How the tool controls the clocks.
    pub clocks: ClockControl,
    /// Time limit from the start until the values are read.
    pub time_limit: Duration,
}

/// Result of a profile with Nsight Compute.
#[derive(Debug)]
pub struct NcuOutput {
    /// Tables in the format of `ncu --csv --page raw --print-units base`. There is one table, or
    /// several if the list of metrics was too long for one command line.
    pub tables: Vec<String>,
    /// The tool's log. A kernel cannot write to it.
    pub log: String,
    /// Name and version of the tool.
    pub tool: String,
    /// The measuring conditions, except the number of passes, which is in the log.
    pub conditions: Conditions,
    /// Report files, which are stored with the job.
    pub artifacts: Vec<ToolFile>,
}

/// Profiles one launch of a job on a leased device, or launches of a program that runs there.
/// Leaves out metrics that the tool does not support, because it would reject all metrics.
/// [`collected`] lists them with the other missing metrics.
///
/// # Errors
/// Returns why there are no values, with a code and a remedy.
pub async fn profile(
    tools: &Tools,
    lease: &mut Lease,
    request: &ProfileRun<'_>,
) -> Result<NcuOutput, Unavailable> {
    for round in 1.. {
        let known = ProfileRun { metrics: without(&request.metrics, tools), ..request.clone() };
        let directory = run::directory(request.directory, &format!("ncu-{round}"))?;
        let known = ProfileRun { directory: &directory, ..known };
        let why = match profile_known(tools, lease, &known).await {
            Err(why) if why.cause() == Some(Cause::UnknownMetric) => why,
            answer => return answer,
        };
        let Metrics::Named(names) = &known.metrics else { return Err(why) };
        let refused: Vec<String> =
            names.iter().filter(|name| is_refused(name, &why.reason)).cloned().collect();
        if refused.is_empty() || round == REFUSALS {
            return Err(why);
        }
        tools.refused().extend(refused);
    }
    Err(Cause::Unknown.because("no run of Nsight Compute was tried"))
}

/// Returns the metrics without those that the tool is known not to support.
fn without(metrics: &Metrics, tools: &Tools) -> Metrics {
    let Metrics::Named(names) = metrics else { return metrics.clone() };
    let refused = tools.refused();
    Metrics::Named(names.iter().filter(|name| !refused.contains(*name)).cloned().collect())
}

/// Returns whether a message reports the metric as not found. The message contains the metric's
/// name, or the pattern of its rollups, which the tool generates from a name without a rollup.
fn is_refused(name: &str, message: &str) -> bool {
    let Some((_, named)) = message.split_once("Failed to find metric ") else { return false };
    let named = named.split_whitespace().next().unwrap_or_default();
    let base = |text: &str| text.split(['.', '\\']).next().unwrap_or_default().to_owned();
    match named.strip_prefix("regex:^") {
        Some(pattern) => base(pattern) == base(name),
        None => named == name,
    }
}

async fn profile_known(
    tools: &Tools,
    lease: &mut Lease,
    request: &ProfileRun<'_>,
) -> Result<NcuOutput, Unavailable> {
    let ncu = run::usable(tools, ToolName::Ncu).await?;
    let deadline = Instant::now() + request.time_limit;
    let Ok(_counters) = tokio::time::timeout_at(deadline, lease.claim_counters()).await else {
        return Err(
            Cause::CountersBusy.because("another profile of this service did not end in time")
        );
    };
    let mut profiled: Option<NcuOutput> = None;
    for (index, part) in parts(&request.metrics).into_iter().enumerate() {
        let one = patiently(&ncu, lease, request, &part, index, deadline).await?;
        match &mut profiled {
            None => profiled = Some(one),
            Some(all) => {
                all.tables.extend(one.tables);
                all.log.push_str(&one.log);
                all.artifacts.extend(one.artifacts);
            }
        }
    }
    profiled.ok_or_else(|| Cause::NoData.because("no metric was requested"))
}

/// Runs the tool, and repeats the run while another process holds the counters.
async fn patiently(
    ncu: &Usable,
    lease: &mut Lease,
    request: &ProfileRun<'_>,
    metrics: &[OsString],
    part: usize,
    deadline: Instant,
) -> Result<NcuOutput, Unavailable> {
    let mut delay = FIRST_DELAY;
    let mut attempt = 1;
    loop {
        let directory = run::directory(request.directory, &format!("{part}-{attempt}"))?;
        let answer = once(ncu, lease, request, metrics, directory, deadline).await;
        let busy = answer.as_ref().is_err_and(|why| why.cause() == Some(Cause::CountersBusy));
        if !busy || attempt == ATTEMPTS || Instant::now() + delay >= deadline {
            return answer;
        }
        tokio::time::sleep(delay).await;
        (delay, attempt) = (delay * 2, attempt + 1);
    }
}

async fn once(
    ncu: &Usable,
    lease: &mut Lease,
    request: &ProfileRun<'_>,
    metrics: &[OsString],
    directory: PathBuf,
    deadline: Instant,
) -> Result<NcuOutput, Unavailable> {
    let (report, log_file) = (directory.join("kernel.ncu-rep"), directory.join("ncu.log"));
    let mut wrapper = flags(ncu.path(), request, &report, &log_file);
    wrapper.extend_from_slice(metrics);
    let time_limit = deadline.saturating_duration_since(Instant::now());
    let end = match request.subject {
        NcuTarget::Job(job) => {
            let plan = TracePlan { view: TraceView::Counters, cache: request.cache };
            let shot = run::shot(wrapper, &directory, time_limit);
            lease.run_under(&shot, job.with(plan)).await
        }
        NcuTarget::Program { program, stdin, writes, .. } => {
            let program = program.clone().under(&wrapper);
            let launch = ProcessLaunch { input: stdin.to_vec(), ..ProcessLaunch::new(program) };
            let launch = ProcessLaunch { stdout_bytes: PRINTED_BYTES, ..launch };
            untold(run_watched(&launch, writes, time_limit).await?)
        }
        NcuTarget::Served { service, writes, .. } => {
            let ServedRun { program, stdin, serving } = service.begin(writes)?;
            let launch = ProcessLaunch::new(program.under(&wrapper));
            let launch = ProcessLaunch { stdout_bytes: PRINTED_BYTES, ..launch };
            let running = run_served(&launch, stdin, writes, time_limit);
            let (tool, ()) = tokio::join!(running, serving);
            untold(tool?)
        }
    };
    let log = run::log(&log_file, &end.tool);
    let failed = |problem| run::failed(ToolName::Ncu, &end, problem, &log, time_limit);
    let Some(artifact) = ToolFile::new("kernel.ncu-rep", report) else {
        return Err(failed(parse_log(&log).problems.into_iter().next()));
    };
    if end.outcome.failure.is_some() || end.tool.status.is_none() {
        return Err(failed(None));
    }
    let table = import(ncu, &artifact.path, &directory, deadline).await?;
    Ok(NcuOutput {
        tables: vec![table],
        tool: named(ncu),
        conditions: Conditions {
            clock_control: Some(request.clocks),
            cache_control: Some(cache_control(request.cache)),
            replay: Some(Replay::Kernel),
            ..Conditions::default()
        },
        artifacts: vec![artifact],
        log,
    })
}

/// Describes the exit of a program that does not report an outcome.
fn untold(tool: ProcessEnd) -> OneShotEnd<TracedRun> {
    OneShotEnd { outcome: RunOutcome::default().map(|()| TracedRun::default()), tool }
}

fn cache_control(cache: CacheState) -> CacheControl {
    match cache {
        CacheState::Cold => CacheControl::All,
        CacheState::Hot => CacheControl::None,
    }
}

/// Returns the command line of Nsight Compute, except the metrics.
fn flags(ncu: &Path, request: &ProfileRun<'_>, report: &Path, log: &Path) -> Vec<OsString> {
    let clocks = match request.clocks {
        ClockControl::None => "none",
        ClockControl::Base => "base",
        ClockControl::Boost => "boost",
    };
    let caches = match cache_control(request.cache) {
        CacheControl::All => "all",
        CacheControl::None => "none",
    };
    let mut flags: Vec<OsString> = vec![ncu.into()];
    // A user's settings must not affect the measurement.
    flags.extend(["--config-file", "off"].map(OsString::from));
    flags.extend(["--replay-mode", "kernel"].map(OsString::from));
    flags.extend(["--clock-control", clocks, "--cache-control", caches].map(OsString::from));
    match request.subject {
        NcuTarget::Job(_) => {
            flags.extend(["--target-processes", "application-only"].map(OsString::from));
            flags.extend(
                ["--profile-from-start", "off", "--check-exit-code", "yes"].map(OsString::from),
            );
        }
        // The started program becomes another program, which the tool treats as another process.
        // Its exit code is known from the run without the tool.
        NcuTarget::Program { launches, .. } | NcuTarget::Served { launches, .. } => {
            flags.extend(["--target-processes", "all"].map(OsString::from));
            let count = launches.to_string();
            flags.extend(["--launch-count", &count, "--check-exit-code", "no"].map(OsString::from));
            if matches!(request.subject, NcuTarget::Served { .. }) {
                flags.extend(["--profile-from-start", "off"].map(OsString::from));
            }
        }
    }
    flags.extend(["-f".into(), "-o".into(), report.into(), "--log-file".into(), log.into()]);
    flags
}

/// Returns the arguments that request the metrics, as one list of arguments for each run. Each list
/// is short enough for a command line.
fn parts(metrics: &Metrics) -> Vec<Vec<OsString>> {
    let named = match metrics {
        Metrics::Set(set) => return vec![vec!["--set".into(), set.into()]],
        Metrics::Named(named) => named,
    };
    let mut lists: Vec<String> = Vec::new();
    for name in named {
        match lists.last_mut().filter(|list| list.len() + name.len() < ARGUMENT_BYTES) {
            Some(list) => {
                list.push(',');
                list.push_str(name);
            }
            None => lists.push(name.clone()),
        }
    }
    lists.into_iter().map(|list| vec!["--metrics".into(), list.into()]).collect()
}

/// Returns the name and the version of Nsight Compute.
///
/// # Errors
/// Returns why the tool cannot be used.
pub async fn version(tools: &Tools) -> Result<String, Unavailable> {
    Ok(named(&run::usable(tools, ToolName::Ncu).await?))
}

fn named(ncu: &Usable) -> String {
    format!("Nsight Compute {}", ncu.version().unwrap_or("of unknown version"))
}

/// Converts a report that this service did not create to CSV.
///
/// # Errors
/// Returns why the report cannot be read, with a code and a remedy.
pub async fn read_report(
    tools: &Tools,
    report: &Path,
    directory: &Path,
) -> Result<String, Unavailable> {
    let ncu = run::usable(tools, ToolName::Ncu).await?;
    import(&ncu, report, directory, Instant::now() + IMPORT_LIMIT).await
}

/// Converts a report of Nsight Compute to CSV.
async fn import(
    ncu: &Usable,
    report: &Path,
    directory: &Path,
    deadline: Instant,
) -> Result<String, Unavailable> {
    let program = contained::tool(ncu.path(), directory)
        .args(["--config-file", "off", "--import"])
        .arg(report)
        .args(["--csv", "--page", "raw", "--print-units", "base"]);
    let launch = ProcessLaunch { stdout_bytes: CSV_BYTES, ..ProcessLaunch::new(program) };
    let limit = deadline.saturating_duration_since(Instant::now()).min(IMPORT_LIMIT);
    let unreadable = |text: String| Cause::Unreadable.because(text);
    let end = contained::run(&launch, limit)
        .await
        .map_err(|error| unreadable(format!("cannot start {}: {error}", ncu.path().display())))?;
    if end.status.is_none() {
        return Err(Cause::TimedOut.because(format!("reading the report took {limit:?}")));
    }
    if !end.succeeded() || end.stdout.left_out > 0 {
        let said = run::quoted(&format!("{}\n{}", end.stdout.text, end.stderr.text));
        let how = end.description();
        return Err(unreadable(format!("ncu cannot read the report ({how}); its output: {said}")));
    }
    Ok(end.stdout.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_several_runs() {
        let names: Vec<String> =
            (0..5_000).map(|n| format!("unit__name_of_metric.{n:05}")).collect();
        let parts = parts(&Metrics::Named(names.clone()));
        assert!(parts.len() > 1);
        assert!(parts.iter().all(|part| part[0] == "--metrics" && part[1].len() <= ARGUMENT_BYTES));
        let lists = parts.iter().map(|part| part[1].to_str().unwrap());
        let all: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
        assert_eq!(all, names);
        assert_eq!(super::parts(&Metrics::Named(Vec::new())).len(), 0);
        assert_eq!(super::parts(&Metrics::Set("full".to_owned())), [["--set", "full"]]);
    }

    #[test]
    fn a_refused_metric_is_known_by_its_name_or_its_pattern() {
        let pattern = "Nsight Compute: Failed to find metric \
                       regex:^derived__local_spilling_requests\\.(sum|min|max|avg|pct|ratio)$";
        assert!(is_refused("derived__local_spilling_requests", pattern));
        assert!(!is_refused("derived__local_spilling_requests_pct", pattern));
        assert!(is_refused("a__b.sum", "Failed to find metric a__b.sum"));
        assert!(!is_refused("a__b.avg", "Failed to find metric a__b.sum"));
        assert!(!is_refused("a__b.sum", "Failed to profile \"a__b.sum\""));
    }
}
