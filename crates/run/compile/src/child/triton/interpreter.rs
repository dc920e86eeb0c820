//! The interpreter, as a child of this child.

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

/// What the interpreter runs.
pub(crate) const SOURCE: &str = concat!(
    include_str!("host.py"),
    include_str!("source.py"),
    include_str!("arguments.py"),
    include_str!("tuning.py"),
    include_str!("kernel.py"),
    "\nmain()\n"
);

/// Most of what is printed that is kept, bytes. The rest is read and dropped.
const MAX_PRINTED_BYTES: usize = 64 << 10;

/// Longest wait for Triton to be imported. The deadline of the compile child is shorter.
const MOST_TO_WARM: Duration = Duration::from_secs(600);

/// What the interpreter is told on its command line.
#[derive(Serialize)]
struct Settings<'a> {
    site_packages: &'a Path,
    arch: u32,
    /// Programs for seccomp, in base64.
    filters: Vec<String>,
}

/// A running interpreter.
pub(super) struct Interpreter {
    process: Child,
    channel: UnixStream,
    printed: Vec<JoinHandle<String>>,
}

/// What it says when it has imported Triton, before it meets a stranger's code.
#[derive(Deserialize)]
struct ReadyMessage {
    /// Triton's assembler.
    ptxas: PathBuf,
}

/// An answer, and what was printed meanwhile.
pub(super) struct Answered {
    /// Triton's assembler for the architecture.
    pub ptxas: PathBuf,
    pub message: Vec<u8>,
    pub printed: String,
}

/// It ended without an answer.
pub(super) struct Ended {
    /// It had imported Triton, and took a kernel.
    pub was_ready: bool,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// In words.
    pub how: String,
    /// What it printed.
    pub printed: String,
}

impl Interpreter {
    /// Starts it; it imports Triton while it waits.
    pub(super) fn start(work: &TritonWork) -> io::Result<Self> {
        let settings = Settings {
            site_packages: &work.site_packages,
            arch: work.arch,
            filters: calls::encoded_with_asking(ChildKind::Interpreter)
                .map_err(io::Error::other)?,
        };
        let program = python::interpreter(&work.python, SOURCE, &settings)?
            // As Triton behaves where nobody says anything, in words that it warns about.
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

    /// Sends it the kernel, and takes the first answer that comes.
    pub(super) fn ask(mut self, question: &str) -> Result<Answered, Ended> {
        let ready = self.supervised().and_then(|()| self.receive());
        let ready = ready.and_then(|message| Ok(serde_json::from_slice(&message)?));
        let Ok(ReadyMessage { ptxas }) = ready else { return Err(self.ended(false)) };
        // Who does not say that it took the question ended while it waited, and not for what it read.
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

    /// Has its threads counted, which it asks for once it is warm.
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
        // Grows with what arrives, not with what the prefix promises.
        (&mut self.channel).take(length as u64).read_to_end(&mut message)?;
        if message.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(message)
    }

    /// Ends it, if it did not end by itself, and tells how it ended.
    fn ended(mut self, was_ready: bool) -> Ended {
        // Only what ended by itself tells anything by its status, and it closed its end of the channel.
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
                _ if !own_end => "what it sent is no answer".to_owned(),
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
            printed,
        }
    }
}

/// Reads a stream to its end, so that nobody waits to print, and keeps the first part.
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
