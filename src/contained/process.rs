//! Starting a program, and waiting for its end.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::capture::{Capture, Captured};
use super::tree::{self, MARK_VARIABLE};
use crate::environment;

/// Errors that are kept of a program's error stream, bytes.
const STDERR_BYTES: usize = 1 << 20;

/// Longest wait for the rest of what a tree printed after its end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A program to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables of its environment beside the inherited ones.
    pub variables: Vec<(OsString, OsString)>,
    /// Existing directory that it may fill: where it runs, its home, and its temporary files.
    pub directory: PathBuf,
    /// Bytes of its output that are kept.
    pub stdout_bytes: usize,
    /// Largest file that it may write, bytes.
    pub file_bytes: u64,
}

/// A running program. Dropping it ends all its tree.
pub struct Contained {
    child: Child,
    /// Its group, until it was waited for: then the number may be another's.
    group: Option<Pid>,
    mark: String,
    stdout: Capture,
    stderr: Capture,
    readers: Vec<JoinHandle<()>>,
    started: Instant,
}

/// How a program ended.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Its exit status; `None` if it had to be ended.
    pub status: Option<ExitStatus>,
    /// What it printed.
    pub stdout: Captured,
    /// What it said of errors.
    pub stderr: Captured,
    /// How long it ran.
    pub wall: Duration,
}

impl End {
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

impl Contained {
    /// Starts a program. Must be called within a runtime.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(launch: &Launch) -> io::Result<Self> {
        let (program, arguments) = launch
            .command
            .split_first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mark = uuid::Uuid::new_v4().to_string();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&launch.directory);
        command.env_clear().envs(environment::of_child());
        for name in ["HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, &launch.directory);
        }
        command.env(MARK_VARIABLE, &mark);
        command.envs(launch.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        bound(group, launch.file_bytes);
        let (stdout, stderr) = (Capture::new(launch.stdout_bytes), Capture::new(STDERR_BYTES));
        let mut readers = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            readers.push(tokio::spawn(stdout.clone().drain(pipe)));
        }
        if let Some(pipe) = child.stderr.take() {
            readers.push(tokio::spawn(stderr.clone().drain(pipe)));
        }
        Ok(Self { child, group, mark, stdout, stderr, readers, started: Instant::now() })
    }

    /// Waits for the program alone to end. Safe to cancel.
    pub async fn exited(&mut self) {
        if self.child.wait().await.is_ok() {
            self.group = None;
        }
    }

    /// Waits for the program to end, ends what it left running, and tells how it went. After
    /// `deadline` it is ended with all its tree.
    pub async fn finish(mut self, deadline: Instant) -> End {
        let status = match timeout_at(deadline, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.group = None;
                Some(status)
            }
            Ok(Err(_)) | Err(_) => None,
        };
        self.end(status).await
    }

    /// Ends the program with all its tree.
    pub async fn stop(self) -> End {
        self.end(None).await
    }

    async fn end(mut self, status: Option<ExitStatus>) -> End {
        let wall = self.started.elapsed();
        self.kill();
        for reader in self.readers.drain(..) {
            let _ = timeout(DRAIN_TIMEOUT, reader).await;
        }
        End { status, stdout: self.stdout.captured(), stderr: self.stderr.captured(), wall }
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        tree::end_marked(&self.mark);
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Bounds the files of a process and of those that it starts from now on. It has not got far.
fn bound(process: Option<Pid>, file_bytes: u64) {
    let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let _ = prlimit(process, Resource::Fsize, limit(file_bytes));
    let _ = prlimit(process, Resource::Core, limit(0));
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started.
pub async fn run(launch: &Launch, time_limit: Duration) -> io::Result<End> {
    Ok(Contained::start(launch)?.finish(Instant::now() + time_limit).await)
}

/// A launch of `command` in `directory` with usual bounds.
impl Launch {
    /// Output that is kept, unless said otherwise: 16 MiB.
    pub const STDOUT_BYTES: usize = 16 << 20;
    /// Largest file, unless said otherwise: 2 GiB.
    pub const FILE_BYTES: u64 = 2 << 30;

    /// A launch with the usual bounds.
    pub fn new(command: Vec<OsString>, directory: &Path) -> Self {
        Self {
            command,
            variables: Vec::new(),
            directory: directory.to_owned(),
            stdout_bytes: Self::STDOUT_BYTES,
            file_bytes: Self::FILE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(directory: &Path, script: &str) -> Launch {
        let command = ["/bin/sh", "-c", script].map(OsString::from).into();
        Launch::new(command, directory)
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

    /// A process that left its group and its session, and whose parent is gone.
    #[tokio::test]
    async fn what_leaves_its_group_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let script = "setsid sh -c 'echo $$ > left; exec tail -f /dev/null' & \
                      until [ -s left ]; do :; done; exec tail -f /dev/null";
        let mut running = Contained::start(&shell(directory.path(), script)).unwrap();
        let left = directory.path().join("left");
        let number = loop {
            match std::fs::read_to_string(&left) {
                Ok(text) if text.ends_with('\n') => break text.trim().parse::<u32>().unwrap(),
                _ => tokio::task::yield_now().await,
            }
        };
        assert!(running.child.try_wait().unwrap().is_none());
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
        let running = Contained::start(&launch).unwrap();
        // Only now it is certain that the bound is in force.
        tokio::fs::write(directory.path().join("go"), "go\n").await.unwrap();
        let end = running.finish(Instant::now() + LONG).await;
        assert!(!end.succeeded());
        let written = std::fs::metadata(directory.path().join("big")).unwrap().len();
        assert!(written <= 5_000, "{written}");
    }
}
