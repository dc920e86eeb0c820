//! Functions that the runs of all tools share.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{FoundTool, FoundTools, ToolName, Tools};
use warpgauge_model::{Cause, FailureCode, Unavailable};
use warpgauge_worker::protocol::{Blame, RunOutcome, TaskPlan, TracedRun, WorkerJob};
use warpgauge_worker::{Lease, OneShot, OneShotEnd};

/// Maximum length of a tool's log, bytes.
const LOG_BYTES: u64 = 1 << 20;

/// Number of characters at the end of a log that a message quotes.
const QUOTED_CHARS: usize = 600;

/// A file that a tool wrote, and that is stored with the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFile {
    /// Name under which the file is stored, e.g. `kernel.ncu-rep`.
    pub name: String,
    /// Path, which is valid until the job's directory is removed.
    pub path: PathBuf,
    /// Size of the file, bytes.
    pub bytes: u64,
}

impl ToolFile {
    /// Returns a file that a tool should have written; `None` if it is missing or empty.
    pub(super) fn new(name: &str, path: PathBuf) -> Option<Self> {
        let bytes = path.metadata().ok().filter(|file| file.is_file())?.len();
        (bytes > 0).then(|| Self { name: name.to_owned(), path, bytes })
    }
}

/// A tool that was found and works.
pub(super) struct Usable {
    found: Arc<FoundTools>,
    name: ToolName,
}

impl Usable {
    pub(super) fn tool(&self) -> Option<&FoundTool> {
        self.found.get(self.name)
    }

    pub(super) fn path(&self) -> &Path {
        self.tool().map_or(Path::new(self.name.program()), |tool| &tool.path)
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.tool()?.version.as_deref()
    }
}

/// Returns a tool, or the reason why it cannot be used.
pub(super) async fn usable(tools: &Tools, name: ToolName) -> Result<Usable, Unavailable> {
    let found = tools.found(false).await;
    match found.get(name) {
        None => Err(Unavailable {
            remedy: name.remedy().to_owned(),
            ..Cause::NoTool.because(format!("there is no {name} on this machine"))
        }),
        Some(FoundTool { problem: Some(problem), path, .. }) => {
            let text = format!("{} does not work: {problem}", path.display());
            Err(Cause::NoTool.because(text))
        }
        Some(_) => Ok(Usable { found, name }),
    }
}

/// Creates a private directory in the job's directory for one run of a tool.
pub(super) fn directory(parent: &Path, name: &str) -> Result<PathBuf, Unavailable> {
    use std::os::unix::fs::DirBuilderExt;
    let directory = parent.join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&directory).map(|()| directory.clone()).map_err(
        |error| {
            tracing::error!(directory = %directory.display(), %error, "no directory can be created for a tool");
            let text = format!("cannot create a directory for the tool's files: {error}");
            let full = error.kind() == std::io::ErrorKind::StorageFull;
            if full { Cause::DiskFull } else { Cause::NoFiles }.because(text)
        },
    )
}

/// Returns the beginning of a tool's log, followed by its output.
pub(super) fn log(file: &Path, end: &warpgauge_sandbox::contained::ProcessEnd) -> String {
    let mut text = long_log(file, LOG_BYTES);
    for printed in [&end.stdout.text, &end.stderr.text] {
        if !printed.trim().is_empty() {
            text.push('\n');
            text.push_str(printed);
        }
    }
    text
}

/// Returns the first bytes of a log.
pub(super) fn long_log(file: &Path, bytes: u64) -> String {
    let mut content = Vec::new();
    if let Ok(file) = std::fs::File::open(file) {
        // A partial log is better than none.
        let _ = file.take(bytes).read_to_end(&mut content);
    }
    String::from_utf8_lossy(&content).into_owned()
}

/// Returns why a run gave no result: the failure that the log contains, or how the tool and the
/// worker ended.
pub(super) fn failed(
    name: ToolName,
    end: &OneShotEnd<TracedRun>,
    known: Option<Unavailable>,
    log: &str,
    time_limit: Duration,
) -> Unavailable {
    let quoted = quoted(log);
    let said = if quoted.is_empty() { String::new() } else { format!("; its output: {quoted}") };
    let failure = end.outcome.failure.as_ref();
    let seconds = time_limit.as_secs_f64();
    // If a kernel fails by itself, the tool is not at fault, regardless of what the tool reports.
    if let Some(failure) = failure.filter(|failure| failure.blame == Blame::Candidate) {
        let text = format!("under {name}: {}{said}", failure.message);
        return Cause::ApplicationFailed.because(text);
    }
    if let Some(known) = known {
        return known;
    }
    let (cause, text) = match failure {
        Some(failure) if failure.code == FailureCode::Timeout => {
            (Cause::TimedOut, format!("{name} took longer than {seconds} s{said}"))
        }
        Some(failure) if failure.code == FailureCode::WorkerUnavailable => {
            let how = end.tool.description();
            (Cause::ToolDied, format!("{name}: {} ({how}){said}", failure.message))
        }
        Some(failure) => {
            (Cause::ApplicationFailed, format!("under {name}: {}{said}", failure.message))
        }
        None if end.tool.status.is_none() => {
            let text = format!("{name} did not finish its report within {seconds} s{said}");
            (Cause::TimedOut, text)
        }
        None => {
            let how = end.tool.description();
            let killed = end.tool.status.is_some_and(|status| status.code().is_none());
            let cause = if killed { Cause::ToolDied } else { Cause::Unknown };
            (cause, format!("{name} wrote no report ({how}){said}"))
        }
    };
    cause.because(text)
}

/// Returns the end of a log for use in a message.
pub(super) fn quoted(log: &str) -> String {
    let text = log.trim();
    let skipped = text.chars().count().saturating_sub(QUOTED_CHARS);
    text.chars().skip(skipped).collect::<String>().trim().replace('\n', " | ")
}

/// Returns the configuration of a worker that runs under a tool.
pub(super) fn shot(wrapper: Vec<OsString>, directory: &Path, time_limit: Duration) -> OneShot {
    OneShot { wrapper, variables: Vec::new(), directory: directory.to_owned(), time_limit }
}

/// Runs a job in a separate worker without a tool. `name` is the name of the worker's directory in
/// `parent`.
///
/// # Errors
/// Fails if the directory cannot be created.
pub async fn own_worker<P: TaskPlan>(
    lease: &mut Lease,
    parent: &Path,
    job: WorkerJob<P>,
    name: &str,
    time_limit: Duration,
) -> Result<RunOutcome<P::Output>, Unavailable> {
    let directory = directory(parent, name)?;
    Ok(lease.run_under(&shot(Vec::new(), &directory, time_limit), job).await.outcome)
}
