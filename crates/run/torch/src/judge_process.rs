//! The place of a judge, in the process that judges: what it may still touch, and what it is given.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fork::Runner;
use warpgauge_sandbox::calls::{ChildKind, allow_only};
use warpgauge_sandbox::enforcement::{self, FileAccess, ResourceLimits};
use warpgauge_sandbox::{device_worker, handed};

/// First argument of the program: this child is wanted.
pub const COMMAND: &str = "__torch-judge";

/// What comes with the descriptors of a runner, and of a file.
pub(crate) const RUNNER: u8 = b'r';
pub(crate) const FILE: u8 = b'f';

/// Address space: four times what one call may return, and what is needed beside.
const ADDRESS_SPACE: u64 = 8 << 30;

/// Largest file that it writes, bytes: one tensor.
const LARGEST_FILE: u64 = 2 << 30;

/// Processor time, seconds: beyond the longest deadline on many cores.
const CPU_SECONDS: u64 = 24 * 3600;

/// A few for each of its runners and files.
const OPEN_FILES: u64 = 2048;

/// It ends by itself that long after its deadline, whatever it does: the server may be gone.
const GRACE: Duration = Duration::from_secs(5);

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub runners: u8,
    pub files: u8,
    /// Time until the deadline.
    pub left: Duration,
}

impl Header {
    const BYTES: usize = 10;

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let left = u64::try_from(self.left.as_micros()).unwrap_or(u64::MAX).to_le_bytes();
        let mut bytes = [0; Self::BYTES];
        (bytes[0], bytes[1]) = (self.runners, self.files);
        bytes[2..].copy_from_slice(&left);
        bytes
    }

    fn of(bytes: [u8; Self::BYTES]) -> Self {
        let [runners, files, left @ ..] = bytes;
        Self { runners, files, left: Duration::from_micros(u64::from_le_bytes(left)) }
    }
}

/// Sent by a process that waits for an order.
const READY: &[u8] = b"\n";

/// What comes before an answer: its bytes, and whether the process takes another order.
pub(crate) type AnswerHeader = [u8; 9];

/// What a judge has: everything else is closed to this process.
#[derive(Debug)]
pub struct JudgeProcess {
    /// Runners, in the order in which they were handed over.
    pub runners: Vec<Runner>,
    /// Files to write to, likewise.
    pub files: Vec<File>,
    /// When there must be an answer.
    pub deadline: Instant,
    stream: UnixStream,
    /// Who waits for the end of the process sees that this one is gone.
    _alive: mpsc::Sender<()>,
}

/// The connection of a process that is to judge to the one that asks it: it has nothing else. Orders come one at a time.
#[derive(Debug)]
pub struct JudgeConnection(UnixStream);

impl JudgeConnection {
    /// Confines this process. `device`: it uses one, whose driver writes to this directory.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn confined(device: Option<&Path>) -> io::Result<Self> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        confine(device)?;
        Ok(Self(stream))
    }

    /// Says that it has what it needs for an order.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn ready(&self) -> io::Result<()> {
        (&self.0).write_all(READY)
    }

    /// Waits for what it is to judge. `None`: nobody wants it any more.
    ///
    /// # Errors
    /// The other side is none of ours.
    pub fn accept(&self) -> io::Result<Option<JudgeProcess>> {
        let stream = self.0.try_clone()?;
        let mut header = [0; Header::BYTES];
        match (&stream).read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let header = Header::of(header);
        let (alive, ended) = mpsc::channel::<()>();
        std::thread::Builder::new().name("deadline".into()).spawn(move || {
            let limit = header.left.saturating_add(GRACE);
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                std::process::exit(1);
            }
        })?;
        let mut runners = Vec::new();
        for _ in 0..header.runners {
            runners.push(Runner::of(handed::receive(&stream, RUNNER)?)?);
        }
        let mut files = Vec::new();
        for _ in 0..header.files {
            let [file] = handed::receive(&stream, FILE)?;
            files.push(file.into());
        }
        let deadline = Instant::now() + header.left;
        Ok(Some(JudgeProcess { runners, files, deadline, stream, _alive: alive }))
    }
}

impl JudgeProcess {
    /// What it is to judge.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn order<T: DeserializeOwned>(&self) -> io::Result<T> {
        let mut length = [0; 8];
        (&self.stream).read_exact(&mut length)?;
        let order = (&self.stream).take(u64::from_le_bytes(length));
        let reader = BufReader::with_capacity(256 << 10, order);
        Ok(serde_json::from_reader(reader)?)
    }

    /// Says what came of it. `stays`: it takes another order.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn answer(self, answer: &impl Serialize, stays: bool) -> io::Result<()> {
        let answer = serde_json::to_vec(answer)?;
        let mut header: AnswerHeader = [u8::from(stays); 9];
        header[..8].copy_from_slice(&(answer.len() as u64).to_le_bytes());
        (&self.stream).write_all(&header)?;
        (&self.stream).write_all(&answer)
    }
}

fn confine(device: Option<&Path>) -> io::Result<()> {
    let limits = ResourceLimits {
        // A driver reserves addresses for all of the device's memory, and more.
        address_space: if device.is_some() { u64::MAX } else { ADDRESS_SPACE },
        cpu_seconds: CPU_SECONDS,
        file_size: LARGEST_FILE,
        open_files: OPEN_FILES,
    };
    enforcement::limit_resources(&limits).map_err(io::Error::other)?;
    if let Some(directory) = device {
        device_worker::confine_judge(directory);
        return Ok(());
    }
    // It stops its runners, sees in /proc whether they are, and has them go on.
    let read = vec!["/proc".into()];
    let access = FileAccess { signals: true, read, ..FileAccess::default() };
    enforcement::close_file_system(&access).map_err(io::Error::other)?;
    allow_only(ChildKind::Judge);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::threads::{NotStopped, Threads};
    use super::*;

    #[test]
    fn a_header_survives_the_way() {
        let header = Header { runners: 3, files: 255, left: Duration::from_micros(123_456_789) };
        assert_eq!(Header::of(header.bytes()), header);
    }

    const CHILD: &str = "judge_process::tests::try_what_a_judge_might";

    #[test]
    #[ignore = "runs in a process that the test below starts"]
    fn try_what_a_judge_might() {
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero();
        let task = Threads::directory_of(parent.get()).unwrap();
        // As every child does before all else: root's would open more of /proc.
        warpgauge_sandbox::privileges::drop_all(
            warpgauge_sandbox::privileges::KeptCapabilities::Nothing,
        )
        .unwrap();
        confine(None).unwrap();
        let read = |name: &str| File::open(format!("/proc/{parent}/{name}")).map(drop);
        let list = |path: &str| std::fs::read_dir(path).map(drop);
        // What it needs: the threads of a process whose directory it was handed.
        let now = Instant::now();
        let stopped = Threads::of(task).stopped(io::stdin(), now, now).unwrap_err();
        assert!(matches!(stopped, NotStopped::Running(_)), "{stopped}");
        // What it has beside that.
        for there in ["stat", "status", "cmdline"] {
            read(there).unwrap();
        }
        list("/proc").unwrap();
        // What stays closed.
        let link = std::fs::read_link(format!("/proc/{parent}/fd/0")).map(drop);
        let closed = [
            ("memory", read("mem")),
            ("environment", read("environ")),
            ("mappings", read("maps")),
            ("an open file", link),
            ("a directory", list("/tmp")),
            ("the root", list("/")),
        ];
        for (what, tried) in closed {
            let kind = tried.err().map(|error| error.kind());
            assert_eq!(kind, Some(io::ErrorKind::PermissionDenied), "{what}");
        }
        let written = File::options().write(true).open("/proc/self/comm").map(drop);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_judge_observes_threads_and_reads_nothing_else_of_other_processes() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", CHILD])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        let why = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success() && said.contains("1 passed"), "{said}{why}");
    }
}
