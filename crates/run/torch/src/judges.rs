//! The server's side of judge processes, some of which are started before they are needed.
//!
//! A submission determines how much memory and time judging takes. Judging therefore runs in a
//! process in which both are bounded, and a crash loses only one verdict. A judge receives an
//! order, runners and files, and gives one answer. The server kills it after the deadline. A judge
//! with a device takes more orders of the same owner, because creating its context takes long. On
//! the CPU, a judge ends after one answer.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::awaited::awaited;
use super::fork::Runner;
use super::judge_process::{AnswerHeader, COMMAND, DeviceNoise, FILE, Header, NOISE, RUNNER};
use super::printed::Printed;
use warpgauge_sandbox::child::{Child, PreparedChild, Streams};
use warpgauge_sandbox::handed;
use warpgauge_sandbox::program::{ChildProgram, Environment};
use warpgauge_turns::Owner;

/// Time that the server waits beyond the deadline: a judge that notices the deadline itself reports
/// more details.
const GRACE: Duration = Duration::from_millis(500);

/// Maximum number of idle judges.
const MOST_WAITING: usize = 2;

/// Maximum wait for judges to create their contexts.
const PREPARATION: Duration = Duration::from_secs(10);

/// Maximum wait for a killed judge to end.
const LEAVING: Duration = Duration::from_secs(2);

/// Why a judge gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    #[error("the judge process cannot be started: {0}")]
    NotStarted(String),
    /// The deadline passed before the judge answered.
    #[error("the deadline passed before there was a verdict")]
    TimedOut,
    /// The process ended without an answer.
    #[error("the judge process ended without a verdict: {0}")]
    Died(String),
    /// The answer has more than this many bytes.
    #[error("the answer has more than {0} bytes")]
    TooLarge(u64),
}

/// Runners and files that the server sends to a judge in addition to an order.
#[derive(Debug, Default)]
pub struct JudgeResources {
    /// Runners, in the order in which the judge receives them.
    pub runners: Vec<Runner>,
    /// Files that the judge writes to.
    pub files: Vec<File>,
    /// Processes that are still starting on the device.
    pub noise: Option<DeviceNoise>,
}

/// An answer of a judge process, with the time that the order waited.
#[derive(Debug)]
pub struct JudgeAnswer<A> {
    pub answer: A,
    /// Time until the judge was ready for its order. A new judge creates its context in this time.
    pub waited: Duration,
}

/// Starts judge processes, and keeps idle judges for later orders.
#[derive(Debug)]
pub struct Judges {
    program: ChildProgram,
    spares: Mutex<Vec<Waiting>>,
    /// Killed judges that are still releasing the device.
    leaving: Mutex<Vec<Child>>,
    has_device: bool,
}

/// An idle judge process.
#[derive(Debug)]
struct Waiting {
    child: Child,
    stream: UnixStream,
    said: Printed,
    /// The owner whose orders this judge has handled, if any.
    owner: Option<Owner>,
}

/// A judge that is handling an order. Dropping this kills the judge.
struct Asked<'a> {
    judges: &'a Judges,
    process: Option<(Child, Printed)>,
}

impl Judges {
    /// Configures judges. `program` is the path of this program, which contains the judge's
    /// subcommand: see [`JudgeProcess`](super::JudgeProcess). `device`: ordinal of the device, and
    /// a directory that its driver may write to.
    pub fn new(program: PathBuf, device: Option<(u32, &Path)>) -> Self {
        let has_device = device.is_some();
        let program = match device {
            None => ChildProgram::new(program, Environment::Empty).arg(COMMAND),
            Some((ordinal, directory)) => ChildProgram::new(program, Environment::Cuda)
                .arg(COMMAND)
                .arg(ordinal.to_string())
                .arg(directory)
                // A judge uses only one stream.
                .unless_set("CUDA_DEVICE_MAX_CONNECTIONS", "1"),
        };
        Self { program, spares: Mutex::default(), leaving: Mutex::default(), has_device }
    }

    /// Starts an idle judge for the next order, if there is none. Must be called within a runtime.
    pub fn prepare(&self) {
        let mut spares = self.those_waiting();
        if spares.is_empty() {
            // If the start fails, the next order tries again and reports the reason.
            spares.extend(self.start());
        }
    }

    /// Like [`Self::prepare`], but also waits until the idle judges have created their contexts and
    /// no longer use the device.
    pub async fn prepared(&self) {
        self.prepare();
        let streams: Vec<UnixStream> = {
            let spares = self.those_waiting();
            spares.iter().filter_map(|waiting| waiting.stream.try_clone().ok()).collect()
        };
        let until = Instant::now() + PREPARATION;
        let waiting = move || {
            for stream in streams {
                // The judge sends one byte when it is ready, or it ends. The next order
                // distinguishes the two.
                let _ = awaited(&stream, until);
            }
        };
        let _ = tokio::task::spawn_blocking(waiting).await;
    }

    fn those_waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        let mut spares = self.spares.lock().unwrap_or_else(PoisonError::into_inner);
        spares.retain_mut(|waiting| waiting.child.is_running());
        spares
    }

    /// Waits until the killed judges have released the device.
    pub async fn left(&self) {
        let leaving =
            std::mem::take(&mut *self.leaving.lock().unwrap_or_else(PoisonError::into_inner));
        for mut child in leaving {
            child.ended_within(LEAVING).await;
        }
    }

    /// Kills a judge process.
    fn leaves(&self, mut child: Child) {
        child.kill();
        if self.has_device {
            self.leaving.lock().unwrap_or_else(PoisonError::into_inner).push(child);
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
        Ok(Waiting { child, stream, said, owner: None })
    }

    /// Takes an idle judge that has handled no orders of another owner.
    fn spare_for(&self, owner: Owner) -> Option<Waiting> {
        let mut spares = self.those_waiting();
        let own = spares.iter().position(|one| one.owner == Some(owner));
        let index = own.or_else(|| spares.iter().position(|one| one.owner.is_none()))?;
        Some(spares.swap_remove(index))
    }

    /// Sends an order of the owner to a judge and waits for the answer, which may have at most
    /// `most` bytes.
    ///
    /// If the future is dropped, the judge is killed. The caller must kill the runners with their
    /// killers.
    ///
    /// # Errors
    /// Fails if the judge gave no valid answer.
    pub async fn ask<Q, A>(
        &self,
        order: Arc<Q>,
        owner: Owner,
        resources: JudgeResources,
        (deadline, most): (Instant, u64),
    ) -> Result<JudgeAnswer<A>, JudgeError>
    where
        Q: Serialize + Send + Sync + 'static,
        A: DeserializeOwned + Send + 'static,
    {
        let waiting = match self.spare_for(owner) {
            Some(waiting) => waiting,
            None => self.start().map_err(|error| JudgeError::NotStarted(error.to_string()))?,
        };
        let (waiting, resources) = match seated(waiting, resources, deadline) {
            Ok(seated) => seated,
            // The system may have killed an idle judge for lack of memory, so a new judge takes the
            // order.
            Err(resources) => {
                let fresh =
                    self.start().map_err(|error| JudgeError::NotStarted(error.to_string()))?;
                seated(fresh, resources, deadline)
                    .map_err(|_| JudgeError::Died("it ended at its start".to_owned()))?
            }
        };
        // Only the judge may hold the runners' descriptors, so that each runner notices the judge's
        // end.
        drop(resources);
        let Waiting { child, stream, said, .. } = waiting;
        let mut asked = Asked { judges: self, process: Some((child, said)) };
        let conversation = tokio::task::spawn_blocking(move || {
            conversation(stream, &*order, deadline + GRACE, most)
        });
        let answered = conversation.await;
        let lost = match answered {
            Ok(Ok(Conversation { answer, waited, stays })) => {
                match warpgauge_document::from_json(&answer) {
                    Ok(answer) => {
                        if let Some(stream) = stays {
                            asked.stays(stream, owner);
                        }
                        return Ok(JudgeAnswer { answer, waited });
                    }
                    Err(error) => JudgeError::Died(error.to_string()),
                }
            }
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
    /// Keeps the judge idle for another order of the owner.
    fn stays(mut self, stream: UnixStream, owner: Owner) {
        let Some((child, said)) = self.process.take() else { return };
        let mut spares = self.judges.those_waiting();
        if spares.len() >= MOST_WAITING {
            // This judge has been idle for the longest time.
            self.judges.leaves(spares.remove(0).child);
        }
        spares.push(Waiting { child, stream, said, owner: Some(owner) });
    }

    /// Returns the exit status, and the last line that the judge printed.
    async fn post_mortem(&mut self, why: String) -> String {
        let Some((child, said)) = &mut self.process else { return why };
        let ended = child.ended_within(GRACE).await;
        child.kill();
        let how = ended.map_or(why, |status| status.to_string());
        let said = said.whole();
        match said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(last) => format!("{how}: {last}"),
            None => how,
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some((child, _)) = self.process.take() {
            self.judges.leaves(child);
        }
    }
}

/// Sends runners and files to a judge. Returns them if the judge does not receive them.
fn seated(
    waiting: Waiting,
    resources: JudgeResources,
    deadline: Instant,
) -> Result<(Waiting, JudgeResources), JudgeResources> {
    let hand = || -> io::Result<()> {
        let header = Header {
            runners: u8::try_from(resources.runners.len()).map_err(io::Error::other)?,
            files: u8::try_from(resources.files.len()).map_err(io::Error::other)?,
            noise: resources.noise.is_some(),
            left: deadline.saturating_duration_since(Instant::now()),
        };
        (&waiting.stream).write_all(&header.bytes())?;
        for runner in &resources.runners {
            handed::send(&waiting.stream, RUNNER, &runner.descriptors())?;
        }
        for file in &resources.files {
            handed::send(&waiting.stream, FILE, &[file.as_fd()])?;
        }
        if let Some(DeviceNoise(noise)) = &resources.noise {
            handed::send(&waiting.stream, NOISE, &[noise.as_fd()])?;
        }
        Ok(())
    };
    match hand() {
        Ok(()) => Ok((waiting, resources)),
        Err(_) => Err(resources),
    }
}

/// A judge's answer to one order.
struct Conversation {
    answer: Vec<u8>,
    /// Time until the judge was ready.
    waited: Duration,
    /// The connection, if the judge takes another order.
    stays: Option<UnixStream>,
}

/// Sends an order and reads the answer. Blocks.
fn conversation(
    stream: UnixStream,
    order: &impl Serialize,
    until: Instant,
    most: u64,
) -> Result<Conversation, JudgeError> {
    let began = Instant::now();
    let mut timed = Timed { stream, until };
    let order = serde_json::to_vec(order).map_err(|error| lost(error.into()))?;
    let length = (order.len() as u64).to_le_bytes();
    timed.write_all(&length).and_then(|()| timed.write_all(&order)).map_err(lost)?;
    drop(order);
    timed.read_exact(&mut [0]).map_err(lost)?;
    let waited = began.elapsed();
    let mut header = AnswerHeader::default();
    timed.read_exact(&mut header).map_err(lost)?;
    let [length @ .., stays] = header;
    let length = u64::from_le_bytes(length);
    if length > most {
        return Err(JudgeError::TooLarge(most));
    }
    let mut answer = Vec::new();
    // Memory grows with the bytes that arrive, not with the announced length.
    (&mut timed).take(length).read_to_end(&mut answer).map_err(lost)?;
    if answer.len() as u64 != length {
        return Err(JudgeError::Died("it ended in the middle of its answer".to_owned()));
    }
    Ok(Conversation { answer, waited, stays: (stays != 0).then_some(timed.stream) })
}

fn lost(error: io::Error) -> JudgeError {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => JudgeError::TimedOut,
        _ => JudgeError::Died(error.to_string()),
    }
}

/// A stream with a deadline for reads and writes.
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

    /// Writes a shell script that acts as the judge program.
    fn played(script: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("judge-{}", std::process::id()));
        let name = format!("{:x}", super::super::Secret::default().bits());
        let path = directory.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, executable).unwrap();
        path
    }

    /// Returns the error of an order whose judge runs this script.
    async fn judged(script: &str, within: Duration) -> JudgeError {
        let path = played(script);
        let judges = Judges::new(path.clone(), None);
        let deadline = Instant::now() + within;
        let (order, resources) = (Arc::new("order"), JudgeResources::default());
        let bounds = (deadline, 8);
        let answer = judges.ask::<_, u32>(order, Owner::SERVER, resources, bounds).await;
        std::fs::remove_file(path).unwrap();
        answer.unwrap_err()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_that_stays_gets_the_next_order_of_the_same_owner() {
        // The script answers with the number of its order. A header, a length and the order are 26
        // bytes.
        let script = r"n=0
            while printf '\n' >&0 && head -c 26 <&0 >/dev/null; do
                n=$((n + 1))
                printf '\001\0\0\0\0\0\0\0\001'$n >&0
            done";
        let path = played(script);
        let judges = Judges::new(path.clone(), None);
        let ask = async |owner: Owner| {
            let (order, resources) = (Arc::new("order"), JudgeResources::default());
            let bounds = (Instant::now() + Duration::from_secs(60), 8);
            judges.ask::<_, u32>(order, owner, resources, bounds).await.unwrap().answer
        };
        let [one, other] = ["one", "other"].map(Owner::named);
        assert_eq!([ask(one).await, ask(one).await], [1, 2]);
        assert_eq!([ask(other).await, ask(one).await, ask(other).await], [1, 3, 2]);
        // At most two judges stay idle: the one that has been idle longest is killed.
        assert_eq!([ask(Owner::SERVER).await, ask(other).await, ask(one).await], [1, 3, 1]);
        std::fs::remove_file(path).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_gives_no_whole_answer_is_lost() {
        let long = Duration::from_secs(60);
        let lost = judged("head -c 8 <&0 >/dev/null; echo memory ran out >&2; exit 3", long).await;
        assert!(
            matches!(&lost, JudgeError::Died(why) if why.contains("exit status: 3: memory")),
            "{lost}"
        );
        let lost = judged("head -c 8 <&0 >/dev/null; kill -9 $$", long).await;
        assert!(matches!(&lost, JudgeError::Died(why) if why.contains("signal: 9")), "{lost}");
        let lost = judged("head -c 8 <&0 >/dev/null; printf '{' >&0", long).await;
        assert!(matches!(&lost, JudgeError::Died(_)), "{lost}");
        let lost =
            judged(r"head -c 8 <&0 >/dev/null; printf '\n\011\0\0\0\0\0\0\0\0' >&0", long).await;
        assert_eq!(lost, JudgeError::TooLarge(8));
        let began = Instant::now();
        let lost = judged("tail -f /dev/null", Duration::from_millis(10)).await;
        assert_eq!(lost, JudgeError::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
