//! Starting a program, and waiting for its end.

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

/// Errors that are kept of a program's error stream, bytes.
const STDERR_BYTES: usize = 1 << 20;

/// Longest wait for the rest of what a tree printed after its end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A program to run.
#[derive(Debug, Clone)]
pub struct ProcessLaunch {
    /// The program.
    pub program: ChildProgram,
    /// What it reads from its standard input; nothing: that is closed.
    pub input: Vec<u8>,
    /// Bytes of its output that are kept.
    pub stdout_bytes: usize,
    /// Largest file that it may write, bytes.
    pub file_bytes: u64,
}

/// A running program. Dropping it ends all its tree.
pub struct ContainedProcess {
    child: Child,
    mark: String,
    stdout: Capture,
    stderr: Capture,
    /// Tasks that feed and read its streams.
    streams: Vec<JoinHandle<()>>,
    started: Instant,
}

/// How a program ended.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnd {
    /// Its exit status; `None` if it had to be ended.
    pub status: Option<ExitStatus>,
    /// What it printed.
    pub stdout: CapturedText,
    /// What it said of errors.
    pub stderr: CapturedText,
    /// How long it ran.
    pub wall: Duration,
}

impl ProcessEnd {
    /// Whether it ended by itself, and well.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it ended, in words.
    pub fn description(&self) -> String {
        match self.status {
            Some(status) => status.to_string(),
            None => format!("stopped after {:.1} s", self.wall.as_secs_f64()),
        }
    }
}

impl ContainedProcess {
    /// Starts a program. Must be called within a runtime.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(launch: &ProcessLaunch) -> io::Result<Self> {
        let reads = !launch.input.is_empty();
        Self::start_with(launch, if reads { Stdio::piped() } else { Stdio::null() })
    }

    /// The same with a standard input of the caller's, in place of the launch's.
    ///
    /// # Errors
    /// It cannot be started.
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
            // One that ends without reading says why on its own.
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

    /// Waits for the program alone to end. Safe to cancel.
    pub async fn exited(&mut self) {
        // Where the system does not tell, its end is waited for in vain: `finish` has a deadline.
        let _ = self.child.wait().await;
    }

    /// Waits for the program to end, ends what it left running, and tells how it went. After
    /// `deadline` it is ended with all its tree.
    pub async fn finish(mut self, deadline: Instant) -> ProcessEnd {
        let status = timeout_at(deadline, self.child.wait()).await;
        self.end(status.ok().and_then(Result::ok)).await
    }

    /// Ends the program with all its tree.
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

/// Bounds the files of a process and of those that it starts from now on. It has not got far.
fn bound(process: Pid, file_bytes: u64) {
    let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let _ = prlimit(Some(process), Resource::Fsize, limit(file_bytes));
    let _ = prlimit(Some(process), Resource::Core, limit(0));
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started.
pub async fn run(launch: &ProcessLaunch, time_limit: Duration) -> io::Result<ProcessEnd> {
    Ok(ContainedProcess::start(launch)?.finish(Instant::now() + time_limit).await)
}

impl ProcessLaunch {
    /// Output that is kept, unless said otherwise: 16 MiB.
    pub const STDOUT_BYTES: usize = 16 << 20;
    /// Largest file, unless said otherwise: 2 GiB.
    pub const FILE_BYTES: u64 = 2 << 30;

    /// A launch with the usual bounds.
    pub fn new(program: ChildProgram) -> Self {
        Self {
            program,
            input: Vec::new(),
            stdout_bytes: Self::STDOUT_BYTES,
            file_bytes: Self::FILE_BYTES,
        }
    }
}

/// A tool of NVIDIA's, or one that is started like them: it knows what uses a GPU knows, and
/// `directory`, which exists, is where it runs, its home, and the place of its temporary files.
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
        // More than a pipe holds.
        launch.input = vec![b'x'; 200_000];
        let end = run(&launch, LONG).await.unwrap();
        assert_eq!(end.stdout.text.len(), 200_004);
        launch = shell(directory.path(), "echo unread");
        launch.input = vec![b'x'; 200_000];
        assert_eq!(run(&launch, LONG).await.unwrap().stdout.text, "unread\n");
    }

    /// A process that left its group and its session, and whose parent is gone.
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
        // Only now it is certain that the bound is in force.
        tokio::fs::write(directory.path().join("go"), "go\n").await.unwrap();
        let end = running.finish(Instant::now() + LONG).await;
        assert!(!end.succeeded());
        let written = std::fs::metadata(directory.path().join("big")).unwrap().len();
        assert!(written <= 5_000, "{written}");
    }
}
