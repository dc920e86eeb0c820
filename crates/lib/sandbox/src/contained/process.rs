//! Starts a program and waits for it to end. The main type is [`ContainedProcess`].

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::capture::{Capture, CapturedText};
use super::tree::{self, MARK_VARIABLE};
use crate::child::{Child, PreparedChild, Streams};
use crate::program::{ChildProgram, Environment};

/// The maximum number of bytes kept from the beginning of a program's standard error.
const STDERR_BYTES: usize = 1 << 20;

/// The maximum wait for remaining output after a tree has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A program to run, with its input and its limits.
#[derive(Debug, Clone)]
pub struct ProcessLaunch {
    pub program: ChildProgram,
    /// The content of the standard input. If it is empty, the program has no input.
    pub input: Vec<u8>,
    /// The maximum number of bytes kept from the beginning of the output.
    pub stdout_bytes: usize,
    /// The size of the largest file that the program may write, in bytes.
    pub file_bytes: u64,
}

/// A running program. Dropping it ends its whole tree.
pub struct ContainedProcess {
    child: Child,
    mark: String,
    stdout: Capture,
    stderr: Capture,
    /// The tasks that write and read the program's streams.
    streams: Vec<JoinHandle<()>>,
    started: Instant,
}

/// The result of running a program.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnd {
    /// The exit status, or `None` if the program was stopped.
    pub status: Option<ExitStatus>,
    pub stdout: CapturedText,
    pub stderr: CapturedText,
    /// The time for which the program ran.
    pub wall: Duration,
}

impl ProcessEnd {
    /// Returns whether the program ended by itself and reported success.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Describes how the program ended.
    pub fn description(&self) -> String {
        match self.status {
            Some(status) => status.to_string(),
            None => format!("stopped after {:.1} s", self.wall.as_secs_f64()),
        }
    }
}

impl ContainedProcess {
    /// Starts a program. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(launch: &ProcessLaunch) -> io::Result<Self> {
        let reads = !launch.input.is_empty();
        Self::start_with(launch, if reads { Stdio::piped() } else { Stdio::null() })
    }

    /// Starts a program with the given standard input instead of the launch's input.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start_with(launch: &ProcessLaunch, stdin: Stdio) -> io::Result<Self> {
        let mark = uuid::Uuid::new_v4().to_string();
        let program = launch.program.clone().variable(MARK_VARIABLE, &mark);
        let mut child =
            PreparedChild::new(&program, Streams { stdin, ..Streams::piped() }).now()?;
        if let Some(process) = child.id() {
            bound(process, launch.file_bytes);
        }
        let (stdout, stderr) = (Capture::new(launch.stdout_bytes), Capture::new(STDERR_BYTES));
        let mut streams = Vec::new();
        if let Some(mut pipe) = child.take_stdin() {
            let input = launch.input.clone();
            // A program that ends without reading its input reports the reason itself.
            streams.push(tokio::spawn(async move { drop(pipe.write_all(&input).await) }));
        }
        if let Some(pipe) = child.take_stdout() {
            streams.push(tokio::spawn(stdout.clone().drain(pipe)));
        }
        if let Some(pipe) = child.take_stderr() {
            streams.push(tokio::spawn(stderr.clone().drain(pipe)));
        }
        Ok(Self { child, mark, stdout, stderr, streams, started: Instant::now() })
    }

    /// Waits until the program itself has ended. The wait may be cancelled.
    pub async fn exited(&mut self) {
        // If the system does not report the end, `finish` still has a deadline.
        let _ = self.child.wait().await;
    }

    /// Waits for the program to end, ends the processes that it left running, and returns the
    /// result. At `deadline`, the program is stopped with its whole tree.
    pub async fn finish(mut self, deadline: Instant) -> ProcessEnd {
        let status = timeout_at(deadline, self.child.wait()).await;
        self.end(status.ok().and_then(Result::ok)).await
    }

    /// Stops the program with its whole tree.
    pub async fn stop(self) -> ProcessEnd {
        self.end(None).await
    }

    async fn end(mut self, status: Option<ExitStatus>) -> ProcessEnd {
        let wall = self.started.elapsed();
        self.kill();
        for stream in self.streams.drain(..) {
            let _ = timeout(DRAIN_TIMEOUT, stream).await;
        }
        ProcessEnd { status, stdout: self.stdout.captured(), stderr: self.stderr.captured(), wall }
    }

    fn kill(&mut self) {
        self.child.kill();
        tree::end_marked(&self.mark);
    }
}

impl Drop for ContainedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Limits the file sizes of a process that has just started, and of the processes that it starts
/// later.
fn bound(process: Pid, file_bytes: u64) {
    let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let _ = prlimit(Some(process), Resource::Fsize, limit(file_bytes));
    let _ = prlimit(Some(process), Resource::Core, limit(0));
}

/// Runs a program until it ends.
///
/// # Errors
/// The program cannot be started.
pub async fn run(launch: &ProcessLaunch, time_limit: Duration) -> io::Result<ProcessEnd> {
    Ok(ContainedProcess::start(launch)?.finish(Instant::now() + time_limit).await)
}

impl ProcessLaunch {
    /// The default number of bytes of output to keep: 16 MiB.
    pub const STDOUT_BYTES: usize = 16 << 20;
    /// The default size of the largest file: 2 GiB.
    pub const FILE_BYTES: u64 = 2 << 30;

    /// Creates a launch with the default limits.
    pub fn new(program: ChildProgram) -> Self {
        Self {
            program,
            input: Vec::new(),
            stdout_bytes: Self::STDOUT_BYTES,
            file_bytes: Self::FILE_BYTES,
        }
    }
}

/// Prepares an NVIDIA tool or a similar program. It receives the environment for CUDA. `directory`
/// must exist. It becomes the tool's working directory, home directory, and directory for temporary
/// files.
pub fn tool(path: impl Into<PathBuf>, directory: &Path) -> ChildProgram {
    let homes = ["HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"];
    let program = ChildProgram::new(path, Environment::Cuda).within(directory);
    homes.into_iter().fold(program, |program, name| program.variable(name, directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(directory: &Path, script: &str) -> ProcessLaunch {
        ProcessLaunch::new(tool("/bin/sh", directory).arg("-c").arg(script))
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn output_status_and_environment() {
        let directory = tempfile::tempdir().unwrap();
        let script = "echo out; echo err >&2; env; pwd; exit 3";
        let end = run(&shell(directory.path(), script), LONG).await.unwrap();
        assert_eq!(end.status.unwrap().code(), Some(3));
        assert!(!end.succeeded());
        assert!(end.stdout.text.starts_with("out\n"));
        assert_eq!(end.stderr.text, "err\n");
        let place = directory.path().display();
        for line in [format!("HOME={place}"), format!("TMPDIR={place}"), "LC_ALL=C".to_owned()] {
            assert!(end.stdout.text.lines().any(|found| found == line), "{line}");
        }
        assert!(!end.stdout.text.contains("CARGO"), "{}", end.stdout.text);
    }

    #[tokio::test]
    async fn it_reads_what_it_is_given_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut launch = shell(directory.path(), "cat; echo end");
        assert_eq!(run(&launch, LONG).await.unwrap().stdout.text, "end\n");
        // The input exceeds the capacity of a pipe.
        launch.input = vec![b'x'; 200_000];
        let end = run(&launch, LONG).await.unwrap();
        assert_eq!(end.stdout.text.len(), 200_004);
        launch = shell(directory.path(), "echo unread");
        launch.input = vec![b'x'; 200_000];
        assert_eq!(run(&launch, LONG).await.unwrap().stdout.text, "unread\n");
    }

    /// The process left its group and its session, and its parent has ended.
    #[tokio::test]
    async fn what_leaves_its_group_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let script = "setsid sh -c 'echo $$ > left; exec tail -f /dev/null' & \
                      until [ -s left ]; do :; done; exec tail -f /dev/null";
        let mut running = ContainedProcess::start(&shell(directory.path(), script)).unwrap();
        let left = directory.path().join("left");
        let number = loop {
            match std::fs::read_to_string(&left) {
                Ok(text) if text.ends_with('\n') => break text.trim().parse::<u32>().unwrap(),
                _ => tokio::task::yield_now().await,
            }
        };
        assert!(running.child.is_running());
        let end = running.stop().await;
        assert!(end.status.is_none());
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z"))
        };
        let gone = async {
            while lives() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, gone).await.expect("it ends");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_and_its_output_kept() {
        let directory = tempfile::tempdir().unwrap();
        let script = "echo begun; exec tail -f /dev/null";
        let end = run(&shell(directory.path(), script), Duration::from_millis(300)).await.unwrap();
        assert!(end.status.is_none());
        assert_eq!(end.stdout.text, "begun\n");
        assert!(end.description().contains("stopped after"), "{}", end.description());
    }

    #[tokio::test]
    async fn files_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let mut launch =
            shell(directory.path(), "read line < go; exec head -c 100000 /dev/zero > big");
        launch.file_bytes = 5_000;
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            directory.path().join("go"),
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        let running = ContainedProcess::start(&launch).unwrap();
        // The limit is certain to be in force only now.
        tokio::fs::write(directory.path().join("go"), "go\n").await.unwrap();
        let end = running.finish(Instant::now() + LONG).await;
        assert!(!end.succeeded());
        let written = std::fs::metadata(directory.path().join("big")).unwrap().len();
        assert!(written <= 5_000, "{written}");
    }
}
