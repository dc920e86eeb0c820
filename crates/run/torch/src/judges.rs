//! Processes that judge, from outside: one for each order, started before it is needed.
//!
//! What is submitted decides how much memory judging takes, and how long: so it is done where both can be
//! bounded and the end costs one order its verdict. A process takes one order, runners and files, gives
//! one answer and ends; whoever waits for it ends it when the deadline is over.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::awaited::awaited;
use super::fork::Runner;
use super::judge_process::{COMMAND, FILE, Header, RUNNER};
use super::printed::Printed;
use warpgauge_sandbox::child::{Child, PreparedChild, Streams};
use warpgauge_sandbox::handed;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// How long beyond the deadline an answer is waited for: a judge that notices the end tells more of it.
const GRACE: Duration = Duration::from_millis(500);

/// Longest time that making a context is waited for.
const PREPARATION: Duration = Duration::from_secs(10);

/// Longest time that one which has answered takes to end.
const LEAVING: Duration = Duration::from_secs(2);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// It could not be started.
    #[error("the process that judges cannot be started: {0}")]
    NotStarted(String),
    /// The deadline was over before it had one.
    #[error("the deadline was over before there was a verdict")]
    TimedOut,
    /// It ended without one.
    #[error("the process that judges ended without a verdict: {0}")]
    Died(String),
    /// The answer is larger than it may be.
    #[error("the answer has more than {0} bytes")]
    TooLarge(u64),
}

/// What goes to a judge beside its order.
#[derive(Debug, Default)]
pub struct JudgeResources {
    /// Runners, in the order in which it gets them.
    pub runners: Vec<Runner>,
    /// Files that it writes to.
    pub files: Vec<File>,
}

/// Starts those that judge.
#[derive(Debug)]
pub struct Judges {
    program: ChildProgram,
    spare: Arc<Mutex<Option<Waiting>>>,
    /// Those that were asked, and give back what they have of a device.
    leaving: Mutex<Vec<Child>>,
    has_device: bool,
}

/// One that waits for an order.
#[derive(Debug)]
struct Waiting {
    child: Child,
    stream: UnixStream,
    said: Printed,
}

/// One that was asked. It ends with whoever waits for its answer.
struct Asked<'a> {
    judges: &'a Judges,
    child: Option<Child>,
    said: Printed,
}

impl Judges {
    /// `program` is this program: it has the subcommand that [`JudgeProcess`](super::JudgeProcess) serves. `device`: its
    /// ordinal, and a directory that the driver may write to.
    pub fn new(program: PathBuf, device: Option<(u32, &Path)>) -> Self {
        let has_device = device.is_some();
        let program = match device {
            None => ChildProgram::new(program, Environment::Empty).arg(COMMAND),
            Some((ordinal, directory)) => ChildProgram::new(program, Environment::Cuda)
                .arg(COMMAND)
                .arg(ordinal.to_string())
                .arg(directory),
        };
        Self { program, spare: Arc::default(), leaving: Mutex::default(), has_device }
    }

    /// Has one wait for the next order. Must be called within a runtime.
    pub fn prepare(&self) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.as_mut().is_none_or(|waiting| !waiting.child.is_running()) {
            // Whoever needs one tries again, and tells why it does not go.
            *spare = self.start().ok();
        }
    }

    /// The same, and comes back when it has made its context, if it has a device, and uses it no more.
    pub async fn prepared(&self) {
        self.prepare();
        let stream = {
            let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            spare.as_ref().and_then(|waiting| waiting.stream.try_clone().ok())
        };
        let Some(stream) = stream else { return };
        let until = Instant::now() + PREPARATION;
        // Its first word, or its end. Whoever needs it finds out which.
        let _ = tokio::task::spawn_blocking(move || awaited(&stream, until)).await;
    }

    /// Comes back when those that were asked are gone from the device.
    pub async fn left(&self) {
        let leaving =
            std::mem::take(&mut *self.leaving.lock().unwrap_or_else(PoisonError::into_inner));
        for mut child in leaving {
            child.ended_within(LEAVING).await;
        }
    }

    fn start(&self) -> io::Result<Waiting> {
        let (stream, theirs) = UnixStream::pair()?;
        let (said, messages) = Printed::pipe()?;
        let streams = Streams {
            stdin: Stdio::from(OwnedFd::from(theirs)),
            stdout: Stdio::null(),
            stderr: Stdio::from(messages),
        };
        let child = PreparedChild::new(&self.program, streams).now()?;
        Ok(Waiting { child, stream, said })
    }

    /// Hands an order over and waits for the answer, which has at most `most` bytes.
    ///
    /// If the future is dropped, the judge ends; runners are ended by whoever holds their killers.
    ///
    /// # Errors
    /// There is none.
    pub async fn ask<Q, A>(
        &self,
        order: Arc<Q>,
        resources: JudgeResources,
        deadline: Instant,
        most: u64,
    ) -> Result<A, JudgeError>
    where
        Q: Serialize + Send + Sync + 'static,
        A: DeserializeOwned + Send + 'static,
    {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let waiting = match spare {
            Some(waiting) => waiting,
            None => self.start().map_err(|error| JudgeError::NotStarted(error.to_string()))?,
        };
        let (waiting, resources) = match seated(waiting, resources, deadline) {
            Ok(seated) => seated,
            // One that waited may have been ended where memory ran out: nothing is lost with it.
            Err(resources) => {
                let fresh =
                    self.start().map_err(|error| JudgeError::NotStarted(error.to_string()))?;
                seated(fresh, resources, deadline)
                    .map_err(|_| JudgeError::Died("at its start".to_owned()))?
            }
        };
        // Runners belong to the judge alone: their ends are heard by the other side's.
        drop(resources);
        let Waiting { child, stream, said } = waiting;
        let mut asked = Asked { judges: self, child: Some(child), said };
        let conversation = tokio::task::spawn_blocking(move || {
            conversation(stream, &*order, deadline + GRACE, most)
        });
        let answered = conversation.await;
        let lost = match answered {
            Ok(Ok(answer)) => match warpgauge_document::from_json(&answer) {
                Ok(answer) => return Ok(answer),
                Err(error) => JudgeError::Died(error.to_string()),
            },
            Ok(Err(lost)) => lost,
            Err(error) => JudgeError::Died(error.to_string()),
        };
        Err(match lost {
            JudgeError::Died(why) => JudgeError::Died(asked.post_mortem(why).await),
            other => other,
        })
    }
}

impl Asked<'_> {
    /// How it ended, and its last word.
    async fn post_mortem(&mut self, why: String) -> String {
        let ended = match &mut self.child {
            Some(child) => {
                let ended = child.ended_within(GRACE).await;
                child.kill();
                ended
            }
            None => None,
        };
        let how = ended.map_or(why, |status| status.to_string());
        let said = self.said.whole();
        match said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(last) => format!("{how}: {last}"),
            None => how,
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        child.kill();
        if self.judges.has_device {
            let leaving = &self.judges.leaving;
            leaving.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        }
    }
}

/// Hands runners and files over; one that does not take them gives them back.
fn seated(
    waiting: Waiting,
    resources: JudgeResources,
    deadline: Instant,
) -> Result<(Waiting, JudgeResources), JudgeResources> {
    let hand = || -> io::Result<()> {
        let header = Header {
            runners: u8::try_from(resources.runners.len()).map_err(io::Error::other)?,
            files: u8::try_from(resources.files.len()).map_err(io::Error::other)?,
            left: deadline.saturating_duration_since(Instant::now()),
        };
        (&waiting.stream).write_all(&header.bytes())?;
        for runner in &resources.runners {
            handed::send(&waiting.stream, RUNNER, &runner.descriptors())?;
        }
        for file in &resources.files {
            handed::send(&waiting.stream, FILE, &[file.as_fd()])?;
        }
        Ok(())
    };
    match hand() {
        Ok(()) => Ok((waiting, resources)),
        Err(_) => Err(resources),
    }
}

/// Sends an order, and reads the answer to its end. Blocking.
fn conversation(
    stream: UnixStream,
    order: &impl Serialize,
    until: Instant,
    most: u64,
) -> Result<Vec<u8>, JudgeError> {
    let mut timed = Timed { stream, until };
    let mut writer = BufWriter::with_capacity(256 << 10, &mut timed);
    let sent = serde_json::to_writer(&mut writer, order).map_err(io::Error::from);
    let sent = sent.and_then(|()| writer.flush());
    drop(writer);
    sent.and_then(|()| timed.stream.shutdown(std::net::Shutdown::Write)).map_err(lost)?;
    let mut answer = Vec::new();
    // Grows with what arrives.
    (&mut timed).take(most.saturating_add(1)).read_to_end(&mut answer).map_err(lost)?;
    if answer.len() as u64 > most { Err(JudgeError::TooLarge(most)) } else { Ok(answer) }
}

fn lost(error: io::Error) -> JudgeError {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => JudgeError::TimedOut,
        _ => JudgeError::Died(error.to_string()),
    }
}

/// A stream that is read and written until a deadline.
struct Timed {
    stream: UnixStream,
    until: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A judge that a shell plays: it takes no order, and ends as it is told.
    async fn judged(script: &str, within: Duration) -> JudgeError {
        let directory = std::env::temp_dir().join(format!("judge-{}", std::process::id()));
        let name = format!("{:x}", super::super::Secret::default().bits());
        let path = directory.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, executable).unwrap();
        let judges = Judges::new(path, None);
        let deadline = Instant::now() + within;
        let answer =
            judges.ask::<_, u32>(Arc::new("order"), JudgeResources::default(), deadline, 8).await;
        let _ = std::fs::remove_dir_all(&directory);
        answer.unwrap_err()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_gives_no_whole_answer_is_lost() {
        let long = Duration::from_secs(60);
        let lost = judged("cat <&0 >/dev/null; echo memory ran out >&2; exit 3", long).await;
        assert!(
            matches!(&lost, JudgeError::Died(why) if why.contains("exit status: 3: memory")),
            "{lost}"
        );
        let lost = judged("cat >/dev/null; kill -9 $$", long).await;
        assert!(matches!(&lost, JudgeError::Died(why) if why.contains("signal: 9")), "{lost}");
        let lost = judged("cat >/dev/null; printf '{' >&0", long).await;
        assert!(matches!(&lost, JudgeError::Died(_)), "{lost}");
        let lost = judged("cat >/dev/null; printf 123456789 >&0", long).await;
        assert_eq!(lost, JudgeError::TooLarge(8));
        let began = Instant::now();
        let lost = judged("tail -f /dev/null", Duration::from_millis(10)).await;
        assert_eq!(lost, JudgeError::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
