//! The Python interpreter, a child process of the compile child.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::protocol::{MAX_FRAME_BYTES, TritonWork};
use warpgauge_sandbox::calls::{self, ChildKind};
use warpgauge_sandbox::python;

/// The script that the interpreter runs.
pub(crate) const SOURCE: &str = concat!(
    include_str!("host.py"),
    include_str!("absent.py"),
    include_str!("source.py"),
    include_str!("arguments.py"),
    include_str!("within.py"),
    include_str!("tuning.py"),
    include_str!("kernel.py"),
    "\nmain()\n"
);

/// Maximum length of the interpreter's output that is kept, bytes. The rest is read and dropped.
const MAX_PRINTED_BYTES: usize = 64 << 10;

/// Maximum time for importing Triton. The deadline of the compile child is shorter.
const MOST_TO_WARM: Duration = Duration::from_secs(600);

/// Settings that the interpreter receives on its command line.
#[derive(Serialize)]
struct Settings<'a> {
    site_packages: &'a Path,
    arch: u32,
    /// Seccomp filter programs, in base64.
    filters: Vec<String>,
}

/// A running interpreter.
pub(super) struct Interpreter {
    process: Child,
    channel: UnixStream,
    printed: Vec<JoinHandle<String>>,
}

/// Message of the interpreter after it has imported Triton, before it reads submitted code.
#[derive(Deserialize)]
struct ReadyMessage {
    /// Path of Triton's assembler.
    ptxas: PathBuf,
}

/// An answer of the interpreter, and the text that it printed before.
pub(super) struct Answered {
    /// Path of Triton's assembler for the architecture.
    pub ptxas: PathBuf,
    pub message: Vec<u8>,
    pub printed: String,
}

/// How an interpreter ended that sent no answer.
pub(super) struct Ended {
    /// Whether the interpreter had imported Triton and accepted a kernel.
    pub was_ready: bool,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// Description of how the process ended, for a message.
    pub how: String,
    /// Text that the process printed.
    pub printed: String,
}

impl Interpreter {
    /// Starts the interpreter, which imports Triton before it receives a kernel.
    pub(super) fn start(work: &TritonWork) -> io::Result<Self> {
        let settings = Settings {
            site_packages: &work.site_packages,
            arch: work.arch,
            filters: calls::encoded_with_asking(ChildKind::Interpreter)
                .map_err(io::Error::other)?,
        };
        let program = python::interpreter(&work.python, SOURCE, &settings)?
            // This is Triton's default behaviour. It is set explicitly because Triton prints a
            // warning otherwise.
            .variable("TRITON_DEFAULT_FP_FUSION", "1");
        let (ours, theirs) = UnixStream::pair()?;
        let mut process = program
            .to_blocking()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut printed = Vec::new();
        printed.extend(process.stdout.take().map(keep_first));
        printed.extend(process.stderr.take().map(keep_first));
        Ok(Self { process, channel: ours, printed })
    }

    /// Sends the kernel and returns the interpreter's first answer.
    pub(super) fn ask(mut self, question: &str) -> Result<Answered, Ended> {
        let ready = self.supervised().and_then(|()| self.receive());
        let ready = ready.and_then(|message| Ok(serde_json::from_slice(&message)?));
        let Ok(ReadyMessage { ptxas }) = ready else { return Err(self.ended(false)) };
        // An interpreter that does not acknowledge the request ended before it ran the submission,
        // so the submission is not the cause.
        let taken = self.send(question.as_bytes()).and_then(|()| self.receive());
        if taken.is_err() {
            return Err(self.ended(false));
        }
        match self.receive() {
            Ok(message) => {
                let printed = self.ended(true).printed;
                Ok(Answered { ptxas, message, printed })
            }
            Err(_) => Err(self.ended(true)),
        }
    }

    /// Starts to supervise the number of the interpreter's threads. The interpreter requests this
    /// when it is ready.
    fn supervised(&self) -> io::Result<()> {
        match warpgauge_sandbox::threads::received(&self.channel, MOST_TO_WARM)? {
            Some(asking) => asking.supervise(warpgauge_sandbox::threads::most())?,
            None => eprintln!("this kernel does not count the threads of an interpreter"),
        }
        Ok(())
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(io::Error::other)?;
        self.channel.write_all(&length.to_le_bytes())?;
        self.channel.write_all(message)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut prefix = [0; 4];
        self.channel.read_exact(&mut prefix)?;
        let length = u32::from_le_bytes(prefix) as usize;
        if length > MAX_FRAME_BYTES {
            return Err(io::Error::other("the answer is too long"));
        }
        let mut message = Vec::new();
        // The vector grows as data arrives, so a length prefix reserves nothing.
        (&mut self.channel).take(length as u64).read_to_end(&mut message)?;
        if message.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(message)
    }

    /// Ends the interpreter if it is still running, and returns how it ended.
    fn ended(mut self, was_ready: bool) -> Ended {
        // The exit status is meaningful only if the process ended by itself. Such a process has
        // closed its end of the channel.
        let own_end = self.channel.read(&mut [0; 1]).is_ok_and(|read| read == 0);
        if !own_end {
            let _ = self.process.kill();
        }
        let status = self.process.wait();
        let printed =
            self.printed.into_iter().map(|reader| reader.join().unwrap_or_default()).collect();
        Ended {
            was_ready,
            signal: status.as_ref().ok().and_then(ExitStatusExt::signal).filter(|_| own_end),
            how: match status {
                _ if !own_end => "it sent an invalid answer".to_owned(),
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
            printed,
        }
    }
}

/// Reads a stream to its end, so that no writer blocks, and keeps the first part.
fn keep_first(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut part = [0; 8 << 10];
        while let Ok(count @ 1..) = stream.read(&mut part) {
            let room = MAX_PRINTED_BYTES - kept.len();
            kept.extend_from_slice(&part[..count.min(room)]);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}
