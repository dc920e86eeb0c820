//! The judge's side of a judge process: its confinement, and the orders and descriptors that it
//! receives.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::awaited::awaited;
use super::fork::Runner;
use warpgauge_sandbox::calls::{ChildKind, allow_only};
use warpgauge_sandbox::enforcement::{self, FileAccess, ResourceLimits};
use warpgauge_sandbox::{device_worker, handed};

/// First argument with which this program becomes a judge process.
pub const COMMAND: &str = "__torch-judge";

/// Marker bytes. Each accompanies the descriptors of a runner, of a file, or of [`DeviceNoise`].
pub(crate) const RUNNER: u8 = b'r';
pub(crate) const FILE: u8 = b'f';
pub(crate) const NOISE: u8 = b'n';

/// Limit of the address space, bytes: four times the maximum size of a call's results, and the
/// process itself.
const ADDRESS_SPACE: u64 = 8 << 30;

/// Maximum size of a file that a judge writes, bytes: one tensor.
const LARGEST_FILE: u64 = 2 << 30;

/// Limit of the processor time, seconds: more than the longest deadline needs on many cores.
const CPU_SECONDS: u64 = 24 * 3600;

/// Maximum number of open files: a few for each runner and file.
const OPEN_FILES: u64 = 2048;

/// Time after its deadline at which the judge exits in any case, because the server may have ended.
const GRACE: Duration = Duration::from_secs(5);

/// Header of an order to a judge process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub runners: u8,
    pub files: u8,
    /// Whether other processes are still starting on the device.
    pub noise: bool,
    /// Time until the deadline.
    pub left: Duration,
}

impl Header {
    const BYTES: usize = 11;

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let left = u64::try_from(self.left.as_micros()).unwrap_or(u64::MAX).to_le_bytes();
        let mut bytes = [0; Self::BYTES];
        (bytes[0], bytes[1], bytes[2]) = (self.runners, self.files, u8::from(self.noise));
        bytes[3..].copy_from_slice(&left);
        bytes
    }

    fn of(bytes: [u8; Self::BYTES]) -> Self {
        let [runners, files, noise, left @ ..] = bytes;
        let left = Duration::from_micros(u64::from_le_bytes(left));
        Self { runners, files, noise: noise != 0, left }
    }
}

/// Bytes that a judge sends when it is ready for an order.
const READY: &[u8] = b"\n";

/// Header of an answer: its length in bytes, and whether the judge takes another order.
pub(crate) type AnswerHeader = [u8; 9];

/// Processes that are starting on the device for later orders. Nothing is timed until they are
/// ready. The other end of the stream is then closed.
#[derive(Debug)]
pub struct DeviceNoise(pub UnixStream);

/// Maximum wait for processes that are starting on the device.
const STARTING: Duration = Duration::from_secs(10);

impl DeviceNoise {
    /// Waits until the processes are ready, or until the maximum wait is over.
    pub fn end(self) {
        let _ = awaited(&self.0, Instant::now() + STARTING);
    }
}

/// The runners and files of one order. The process can access nothing else.
#[derive(Debug)]
pub struct JudgeProcess {
    /// Runners, in the order in which the server sent them.
    pub runners: Vec<Runner>,
    /// Files to write to, in the order in which the server sent them.
    pub files: Vec<File>,
    /// Processes that are still starting on the device.
    pub noise: Option<DeviceNoise>,
    /// Time by which the judge must answer.
    pub deadline: Instant,
    stream: UnixStream,
    /// Dropping this ends the thread that would exit the process after the deadline.
    _alive: mpsc::Sender<()>,
}

/// A judge's connection to the server, which is its only channel. Orders arrive one at a time.
#[derive(Debug)]
pub struct JudgeConnection(UnixStream);

impl JudgeConnection {
    /// Confines this process. `device` is the directory that the device's driver may write to.
    ///
    /// # Errors
    /// Fails if the system cannot confine the process.
    pub fn confined(device: Option<&Path>) -> io::Result<Self> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        confine(device)?;
        Ok(Self(stream))
    }

    /// Reports that the judge is ready for an order.
    ///
    /// # Errors
    /// Fails if the server has closed the connection.
    pub fn ready(&self) -> io::Result<()> {
        (&self.0).write_all(READY)
    }

    /// Waits for the next order. Returns `None` if the server has closed the connection.
    ///
    /// # Errors
    /// Fails if the server sent no valid header or descriptors.
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
        let noise = match header.noise {
            true => {
                let [noise] = handed::receive(&stream, NOISE)?;
                Some(DeviceNoise(noise.into()))
            }
            false => None,
        };
        let deadline = Instant::now() + header.left;
        Ok(Some(JudgeProcess { runners, files, noise, deadline, stream, _alive: alive }))
    }
}

impl JudgeProcess {
    /// Reads the order.
    ///
    /// # Errors
    /// Fails if the server has closed the connection, or the order cannot be parsed.
    pub fn order<T: DeserializeOwned>(&self) -> io::Result<T> {
        let mut length = [0; 8];
        (&self.stream).read_exact(&mut length)?;
        let order = (&self.stream).take(u64::from_le_bytes(length));
        let reader = BufReader::with_capacity(256 << 10, order);
        Ok(serde_json::from_reader(reader)?)
    }

    /// Sends the answer. `stays`: whether the judge takes another order.
    ///
    /// # Errors
    /// Fails if the server has closed the connection.
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
        // A driver reserves addresses for all of the device's memory and for other purposes.
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
    // The judge stops its runners, observes their state in /proc, and lets them continue.
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
        let header = Header {
            runners: 3,
            files: 255,
            noise: true,
            left: Duration::from_micros(123_456_789),
        };
        assert_eq!(Header::of(header.bytes()), header);
    }

    const CHILD: &str = "judge_process::tests::try_what_a_judge_might";

    #[test]
    #[ignore = "runs in a process that the test below starts"]
    fn try_what_a_judge_might() {
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero();
        let task = Threads::directory_of(parent.get()).unwrap();
        // Every child drops its privileges first: root's would open more of /proc.
        warpgauge_sandbox::privileges::drop_all(
            warpgauge_sandbox::privileges::KeptCapabilities::Nothing,
        )
        .unwrap();
        confine(None).unwrap();
        let read = |name: &str| File::open(format!("/proc/{parent}/{name}")).map(drop);
        let list = |path: &str| std::fs::read_dir(path).map(drop);
        // What the judge needs: the threads of a process whose directory it received.
        let now = Instant::now();
        let stopped = Threads::of(task).stopped(io::stdin(), now, now).unwrap_err();
        assert!(matches!(stopped, NotStopped::Running(_)), "{stopped}");
        // What else the judge can read.
        for there in ["stat", "status", "cmdline"] {
            read(there).unwrap();
        }
        list("/proc").unwrap();
        // What the judge cannot read or write.
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
