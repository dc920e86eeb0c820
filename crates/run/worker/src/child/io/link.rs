//! The worker's end of its socket.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

use crate::child::failure::{Failed, JobResult};
use crate::frame::{self, FrameError};
use crate::protocol::{Blame, FromWorker, ToWorker};
use crate::{handed, rendezvous};
use warpgauge_model::{FailureCode, PartialStatistics};
use warpgauge_statistics::Sorted;

/// Maximum number of queued messages. The server sends one job at a time.
const INBOX: usize = 4;

/// Maximum number of sockets for a job.
const SOCKETS: usize = 2;

/// Minimum time between two progress messages.
const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

/// The connection to the server.
pub(crate) struct Link {
    stream: UnixStream,
    inbox: Receiver<ToWorker>,
    /// Sockets for the next job.
    sockets: Receiver<UnixStream>,
    last_progress: Option<Instant>,
}

impl Link {
    /// Connects to the socket at `path`, or uses standard input, which then is a socket. Starts the
    /// thread that reads it.
    ///
    /// That thread is also the watchdog: it always waits on the socket, so it notices at once that
    /// the server is gone. It then ends the process, even while the device hangs.
    ///
    /// # Errors
    /// Fails if connecting to `path` fails, if standard input is closed, or if no thread can be
    /// started.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let stream = match path {
            Some(path) => rendezvous::connect(path)?,
            None => UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?),
        };
        let mut reader = stream.try_clone()?;
        let (sender, inbox) = sync_channel(INBOX);
        let (handing, sockets) = sync_channel(SOCKETS);
        std::thread::Builder::new().name("socket".to_owned()).spawn(move || {
            while let Ok(message) = frame::read::<ToWorker>(&mut reader) {
                let taken = match message {
                    ToWorker::Socket => match handed::receive(&reader) {
                        Ok(socket) => handing.try_send(UnixStream::from(socket)).is_ok(),
                        Err(_) => false,
                    },
                    message => sender.send(message).is_ok(),
                };
                if !taken {
                    break;
                }
            }
            end_now();
        })?;
        Ok(Self { stream, inbox, sockets, last_progress: None })
    }

    /// Waits for the next message. `None` means that the connection is closed.
    pub(crate) fn next(&mut self) -> Option<ToWorker> {
        self.inbox.recv().ok()
    }

    /// Waits at most `time` for the next message. Returns `None` after that, and `Some(None)` if
    /// the connection is closed.
    pub(crate) fn next_within(&mut self, time: Duration) -> Option<Option<ToWorker>> {
        match self.inbox.recv_timeout(time) {
            Ok(message) => Some(Some(message)),
            Err(RecvTimeoutError::Disconnected) => Some(None),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Returns a socket that the server sent for the current job.
    pub(crate) fn socket(&mut self) -> JobResult<UnixStream> {
        self.sockets.try_recv().map_err(|_| {
            let text = "the server handed over no socket for this job".to_owned();
            Failed::new(FailureCode::InternalError, text, Blame::Environment)
        })
    }

    /// Closes the sockets that the job did not use.
    pub(crate) fn forget_sockets(&mut self) {
        while self.sockets.try_recv().is_ok() {}
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Fails if the server is gone or the message is too large.
    pub(crate) fn send(&mut self, message: &FromWorker) -> Result<(), FrameError> {
        frame::write(&mut self.stream, message)
    }

    /// Reports the number of timed launches (or of blocks, in a side-by-side comparison) and
    /// statistics of the times, at a limited rate. Ignores errors: the watchdog notices that the
    /// server is gone.
    pub(crate) fn progress(&mut self, trials: usize, samples_ms: &[f32]) {
        let due = self.last_progress.is_none_or(|last| last.elapsed() >= PROGRESS_PERIOD);
        if due {
            self.last_progress = Some(Instant::now());
            let trials = trials as u32;
            let statistics = statistics_of(trials, samples_ms);
            let _ = self.send(&FromWorker::Progress { trials, statistics });
        }
    }
}

/// Returns statistics of the samples; `None` if there are too few for a confidence interval.
fn statistics_of(trials: u32, samples_ms: &[f32]) -> Option<PartialStatistics> {
    let samples = samples_ms.iter().map(|&ms| f64::from(ms)).collect::<Vec<_>>();
    let sorted = Sorted::new(&samples)?;
    let (ci_lower_ms, ci_upper_ms) = sorted.median_ci95()?;
    Some(PartialStatistics { trials, median_ms: sorted.median(), ci_lower_ms, ci_upper_ms })
}

/// Ends the process without exit handlers, which could wait for the device.
fn end_now() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}
