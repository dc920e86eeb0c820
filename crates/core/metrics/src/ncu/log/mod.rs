//! Parses Nsight Compute's log: its progress, and the reasons for failures. The main type is
//! [`NcuLog`].

use warpgauge_model::{Cause, Unavailable};

/// Maximum number of lines that are read. The log has a line for each profiled kernel.
const MAX_LINES: usize = 200_000;
/// Maximum number of kernels and metrics that are kept.
const MAX_KEPT: usize = 10_000;
/// Maximum number of characters that are kept of a line.
const MAX_TEXT: usize = 400;

/// Content of a log of Nsight Compute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NcuLog {
    /// Profiled kernels by their names in the log (long names are truncated), with the number of
    /// passes.
    pub kernels: Vec<(String, u32)>,
    /// Metrics that the tool cannot access.
    pub unreadable: Vec<String>,
    /// Files that the tool wrote.
    pub reports: Vec<String>,
    /// Problems, worst first. The tool may have finished its work in spite of them.
    pub problems: Vec<Unavailable>,
    /// Exit code of the profiled program, if the log contains it.
    pub application_code: Option<i32>,
}

/// Messages of several versions with their causes; the first match in a line is used.
const TEXTS: [(&str, Cause); 30] = [
    ("ERR_NVGPUCTRPERM", Cause::NoPermission),
    ("does not have permission to access NVIDIA GPU Performance Counters", Cause::NoPermission),
    ("Confidential computing mode detected", Cause::UnsupportedMode),
    ("Profiling is not supported on vGPU", Cause::UnsupportedMode),
    ("is not supported on vGPU", Cause::UnsupportedMode),
    ("Multi-Instance GPU", Cause::UnsupportedMode),
    ("MIG instance", Cause::UnsupportedMode),
    ("driver resource was unavailable", Cause::CountersBusy),
    ("Failed to initialize the profiler: LibraryNotLoaded", Cause::NoProfilerLibrary),
    ("Failed to initialize the profiler", Cause::NoProfilerLibrary),
    ("driver is not compatible with Nsight Compute", Cause::DriverMismatch),
    ("Profiling is not supported on device", Cause::UnsupportedDevice),
    ("is not supported on this device", Cause::UnsupportedDevice),
    ("failed to connect to the CUDA driver", Cause::NoDriver),
    ("Failed to find metric", Cause::UnknownMetric),
    ("Unable to find metric", Cause::UnknownMetric),
    ("No space left on device", Cause::DiskFull),
    ("Failed to write", Cause::NoFiles),
    ("Could not deploy stock", Cause::NoFiles),
    ("Failed to add rules search path", Cause::NoFiles),
    ("Failed to add sections search path", Cause::NoFiles),
    ("Failed to create", Cause::NoFiles),
    ("Failed to open", Cause::NoFiles),
    ("Failed to prepare kernel for profiling", Cause::KernelFailed),
    ("Failed to profile", Cause::KernelFailed),
    ("Unknown Error on device", Cause::KernelFailed),
    ("No kernels were profiled", Cause::NoKernel),
    ("terminated before first instrumented API call", Cause::NoKernel),
    ("The application returned an error code", Cause::ApplicationFailed),
    ("Launching the workload is taking more time than expected", Cause::TimedOut),
];

/// Parses a log as `--log-file` writes it. Only the tool's lines, which begin with `==`, are read.
pub fn parse_log(text: &str) -> NcuLog {
    let mut log = NcuLog::default();
    let mut problems: Vec<(u8, Cause, Unavailable)> = Vec::new();
    let mut hint = None;
    for line in text.lines().take(MAX_LINES) {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        let Some((kind, message)) = tool_line(line) else { continue };
        match kind {
            "PROF" => log.progress(message),
            "WARNING" => log.warning(message),
            _ => {}
        }
        if let Some(code) = after(message, "returned an error code (") {
            log.application_code = code.split(')').next().and_then(|code| code.parse().ok());
        }
        if message.contains("--target-processes all") {
            hint.get_or_insert(message);
        }
        let known = TEXTS.iter().find(|(text, _)| message.contains(text)).map(|(_, cause)| *cause);
        let cause = match kind {
            "ERROR" => known.unwrap_or(Cause::Unknown),
            _ => match known {
                Some(cause) => cause,
                None => continue,
            },
        };
        if !problems.iter().any(|(_, seen, _)| *seen == cause) {
            let reason = format!("Nsight Compute: {}", cut(message));
            let rank = if kind == "ERROR" { rank(cause) } else { rank_of_warning(cause) };
            problems.push((rank, cause, cause.because(reason)));
        }
    }
    // The tool prints its advice on a separate line. It is a better remedy than a general one.
    if let Some(hint) = hint
        && let Some((.., problem)) = problems.iter_mut().find(|seen| seen.1 == Cause::NoKernel)
    {
        problem.reason = format!("{} {}", problem.reason, cut(hint.trim_end_matches('.')));
    }
    // Known root causes come before unknown errors and consequences, and those before warnings
    // that need not have stopped the tool.
    problems.sort_by_key(|(rank, ..)| *rank);
    log.problems = problems.into_iter().map(|(.., problem)| problem).collect();
    log
}

/// Returns the rank of a cause. Root causes have the lowest ranks; the failure of an application is
/// the consequence of another cause.
fn rank(cause: Cause) -> u8 {
    match cause {
        Cause::Unknown => 3,
        Cause::ApplicationFailed | Cause::NoKernel => 2,
        Cause::KernelFailed | Cause::NoFiles | Cause::TimedOut => 1,
        _ => 0,
    }
}

fn rank_of_warning(cause: Cause) -> u8 {
    match cause {
        Cause::NoFiles | Cause::TimedOut => 4,
        cause => rank(cause),
    }
}

/// Splits `==PROF== message` into kind and message.
fn tool_line(line: &str) -> Option<(&str, &str)> {
    let (kind, message) = line.strip_prefix("==")?.split_once("==")?;
    matches!(kind, "PROF" | "WARNING" | "ERROR").then(|| (kind, message.trim()))
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).map(|at| &text[at + mark.len()..])
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// Returns the reason why the tool did not work, if the log contains one.
pub fn cause(text: &str) -> Option<Cause> {
    let first = parse_log(text).problems.into_iter().next()?;
    first.cause()
}

impl NcuLog {
    fn progress(&mut self, message: &str) {
        if let Some(path) = message.strip_prefix("Report: ")
            && self.reports.len() < MAX_KEPT
        {
            self.reports.push(cut(path));
        }
        let profiled = message.strip_prefix("Profiling ").and_then(profiled);
        if let Some(kernel) = profiled
            && self.kernels.len() < MAX_KEPT
        {
            self.kernels.push(kernel);
        }
    }

    fn warning(&mut self, message: &str) {
        let Some(list) = after(message, "Unable to access the following ")
            .and_then(|rest| rest.split_once(": "))
            .filter(|(count, _)| count.ends_with("metrics") || count.ends_with("metric"))
        else {
            return;
        };
        let names = list.1.split(',').map(|name| name.trim().trim_end_matches('.'));
        let names = names.filter(|name| !name.is_empty()).map(cut);
        let room = MAX_KEPT - self.unreadable.len();
        self.unreadable.extend(names.take(room));
    }
}

/// Parses `"name" - 0: 0%....50%....100% - 8 passes`. Some versions do not print the index.
fn profiled(text: &str) -> Option<(String, u32)> {
    let text = text.strip_prefix('"')?;
    // Names may contain quotes.
    let ends = |at: usize| [" - ", ":"].iter().any(|mark| text[at + 1..].starts_with(mark));
    let (end, _) = text.match_indices('"').find(|(at, _)| ends(*at))?;
    let (name, rest) = (&text[..end], &text[end + 1..]);
    let rest = &rest[rest.find("100%")? + "100%".len()..];
    let rest = rest.trim_start().strip_prefix('-')?.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let passes = rest[..digits].parse().ok()?;
    rest[digits..].trim_start().starts_with("pass").then(|| (cut(name), passes))
}

#[cfg(test)]
mod tests;
