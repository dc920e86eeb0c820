//! The server's side of one holder: it is started at first use, receives one request at a time, and
//! is replaced after it dies.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crate::frame::{self, FrameError};
use rustix::process::Pid;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use warpgauge_sandbox::child::{Child, PreparedChild, Streams};
use warpgauge_sandbox::program::{ChildProgram, Environment};
use warpgauge_sandbox::{handed, shared_events};

use crate::holder::child::COMMAND;
use crate::holder::protocol::{FILE, FromHolder, ToHolder, VERSION};
use warpgauge_shared_tensors::{HolderError, TensorLocation, TensorRegistry};

/// Time limit for one answer. The slowest answers are the first one, which follows the creation of
/// a CUDA context, and those that copy data.
const ANSWER: Duration = Duration::from_secs(60);

/// Settings for starting the holder of a device or of host memory.
#[derive(Debug, Clone)]
pub(crate) struct Startup {
    pub program: PathBuf,
    pub emulator: Option<PathBuf>,
    /// Directory to which the holder may write.
    pub directory: PathBuf,
}

/// A request to a holder, and the file that accompanies it, if any.
pub(crate) struct Question {
    what: ToHolder,
    file: Option<Arc<File>>,
}

impl Question {
    pub(crate) fn with(what: ToHolder, file: &Arc<File>) -> Self {
        Self { what, file: Some(Arc::clone(file)) }
    }
}

impl From<ToHolder> for Question {
    fn from(what: ToHolder) -> Self {
        Self { what, file: None }
    }
}

pub(crate) struct Holder {
    place: TensorLocation,
    startup: Startup,
    registry: Arc<TensorRegistry>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of holder processes started so far.
    generation: u64,
    running: Option<Running>,
}

/// A running holder process. Dropping this value ends it.
struct Running {
    stream: UnixStream,
    /// Task that owns the process and waits for its end.
    watcher: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

impl Holder {
    pub(crate) fn new(
        place: TensorLocation,
        startup: Startup,
        registry: Arc<TensorRegistry>,
    ) -> Self {
        Self { place, startup, registry, state: Mutex::default() }
    }

    /// Sends a request to the process of one generation or, without `generation`, to the current
    /// process. In the latter case starts a process if there is none. The exchange is completed
    /// even if the caller stops waiting, because half a message would end the holder and lose its
    /// tensors.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        generation: Option<u64>,
        question: Question,
    ) -> Result<(FromHolder, u64), HolderError> {
        let this = Arc::clone(self);
        let asking = tokio::spawn(async move { this.asked(generation, question).await });
        asking.await.unwrap_or_else(|error| Err(self.died(error.to_string())))
    }

    async fn asked(
        &self,
        wanted: Option<u64>,
        question: Question,
    ) -> Result<(FromHolder, u64), HolderError> {
        let mut state = self.state.lock().await;
        if wanted.is_some_and(|wanted| wanted != state.generation || state.running.is_none()) {
            return Err(self.died("it was replaced".to_owned()));
        }
        // If a process ended while idle, a request to any generation is repeated on a new process.
        let attempts = if wanted.is_some() { 1 } else { 2 };
        let mut last = self.died("no request could be sent".to_owned());
        for _ in 0..attempts {
            if state.running.is_none() {
                state.generation += 1;
                state.running = Some(self.start(state.generation).await?);
            }
            let generation = state.generation;
            let Some(running) = &mut state.running else { break };
            match exchange(&mut running.stream, &question).await {
                Ok(FromHolder::Failed { code, message }) => {
                    return Err(HolderError::Refused { code, message });
                }
                Ok(answer) => return Ok((answer, generation)),
                Err(reason) => {
                    state.running = None;
                    self.registry.lose(self.place, generation);
                    last = self.died(reason);
                }
            }
        }
        Err(last)
    }

    /// Ends the process, if there is one.
    pub(crate) async fn end(&self) {
        self.state.lock().await.running = None;
    }

    async fn start(&self, generation: u64) -> Result<Running, HolderError> {
        let cannot = |reason: String| HolderError::Start { place: self.place, reason };
        let system = |error: io::Error| cannot(error.to_string());
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(system)?;
        ours.set_nonblocking(true).map_err(system)?;
        let stream = UnixStream::from_std(ours).map_err(system)?;
        let program = self.program(generation).map_err(system)?;
        let streams = Streams {
            stdin: Stdio::from(OwnedFd::from(theirs)),
            stdout: Stdio::null(),
            // The holder runs no submitted code, so it shares the server's standard error.
            stderr: Stdio::inherit(),
        };
        let child = PreparedChild::new(&program, streams).now().map_err(system)?;
        // From here on, an early return ends the process.
        let mut running = Running { stream, watcher: self.watch(child, generation) };
        let hello = ToHolder::Hello { version: VERSION }.into();
        let greeting = exchange(&mut running.stream, &hello);
        match greeting.await.map_err(cannot)? {
            FromHolder::Ready { version: VERSION } => {}
            FromHolder::Failed { message, .. } => return Err(cannot(message)),
            other => return Err(cannot(format!("it sent {other:?} instead of a greeting"))),
        }
        tracing::info!(place = %self.place, generation, "a holder of tensors is ready");
        Ok(running)
    }

    fn program(&self, generation: u64) -> io::Result<ChildProgram> {
        let Startup { program, emulator, directory } = &self.startup;
        let command = ChildProgram::new(program, Environment::Cuda).arg(COMMAND);
        Ok(match self.place {
            TensorLocation::Host => {
                // Files of a holder that was killed are removed with its directory.
                let own = self.own_directory(generation);
                DirBuilder::new().mode(0o700).create(&own)?;
                command.arg("--directory").arg(own)
            }
            TensorLocation::Device(ordinal) => {
                let command = command.args(["--device", &ordinal.to_string()]);
                let command = command.arg("--directory").arg(directory);
                match emulator {
                    Some(library) => command
                        .arg("--emulator")
                        .arg(library)
                        .variable("WARPGAUGE_EMULATOR_IPC_DIR", directory),
                    None => command,
                }
            }
        })
    }

    fn own_directory(&self, generation: u64) -> PathBuf {
        self.startup.directory.join(format!("holder-{generation}"))
    }

    /// Detects the end of a process, even while no request is pending.
    fn watch(&self, child: Child, generation: u64) -> AbortHandle {
        let (registry, place) = (Arc::clone(&self.registry), self.place);
        let left = Left { place, directory: self.own_directory(generation), process: child.id() };
        let watching = tokio::spawn(async move {
            // The declaration order matters: the process ends before its files are removed.
            let _left = left;
            let mut child = child;
            let status = child.wait().await;
            let lost = registry.lose(place, generation);
            tracing::warn!(%place, ?status, lost, "a holder of tensors has died");
        });
        watching.abort_handle()
    }

    fn died(&self, reason: String) -> HolderError {
        HolderError::Died { place: self.place, reason }
    }
}

/// Files and events of a process, removed when this value is dropped. A process that has mapped one
/// of the files can still use its memory.
struct Left {
    place: TensorLocation,
    directory: PathBuf,
    process: Option<Pid>,
}

impl Drop for Left {
    fn drop(&mut self) {
        match self.place {
            // Without a directory there is nothing to remove.
            TensorLocation::Host => drop(std::fs::remove_dir_all(&self.directory)),
            TensorLocation::Device(_) => {
                let process = self.process.map(|id| id.as_raw_nonzero().get().cast_unsigned());
                process.into_iter().for_each(shared_events::remove);
            }
        }
    }
}

/// Sends a request and waits for its answer. The error says why there will be no answer.
async fn exchange(stream: &mut UnixStream, question: &Question) -> Result<FromHolder, String> {
    let conversation = async {
        frame::send(stream, &question.what).await?;
        if let Some(file) = &question.file {
            let hand = || handed::send(&*stream, FILE, &[file.as_fd()]);
            stream.async_io(Interest::WRITABLE, hand).await.map_err(FrameError::Io)?;
        }
        frame::receive(stream).await
    };
    match timeout(ANSWER, conversation).await {
        Ok(answer) => answer.map_err(|error: FrameError| error.to_string()),
        Err(_) => Err(format!("it did not answer within {ANSWER:?}")),
    }
}
