//! A request that a server carries out while somebody waits for it.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use warpgauge_job_views::{JobEvent, SweepEvent};

use crate::call::Call;
use crate::error::ClientError;

/// How often to look whether the thread that waits for the answer is still there.
const LOOK: Duration = Duration::from_secs(1);

/// News on their way to the one who waits, at most.
const NEWS: usize = 64;

/// What is told on the way to an answer.
#[derive(Debug)]
pub enum WaitEvent {
    /// The server has taken the request as this job. Told of runs of the gate only.
    Accepted(String),
    /// News of the job.
    Job(JobEvent),
    /// A part of a sweep's answer.
    Sweep(SweepEvent),
    /// The connection broke; the request is sent again.
    Again(String),
    /// The server does not say how far its jobs are.
    Untold,
    /// Nobody waits any more: what became of the job. The last that is told.
    GivenUp(String),
}

/// Interrupts the waiting, whose job is cancelled then; whether anybody did still wait.
pub type Interrupt = Box<dyn FnOnce() -> bool + Send>;

/// Who waits for an answer.
pub struct JobWaiter<'a, E> {
    /// Told of what happens meanwhile, on the thread that waits. An error ends the waiting: the job is
    /// cancelled.
    pub told: &'a mut dyn FnMut(WaitEvent) -> Result<(), E>,
    /// Given what interrupts the waiting, at its beginning.
    pub interruptible: &'a dyn Fn(Interrupt),
}

/// What reaches the one who waits.
pub(crate) enum Message<R> {
    Told(WaitEvent),
    Interrupted,
    Ended(Result<R, ClientError>),
}

/// Where the work tells its news.
pub(crate) type Tell<R> = SyncSender<Message<R>>;

/// Has `work` done on a thread of its own, and tells what that tells, until it ends.
pub(crate) fn attended<R: Send + 'static, E: From<ClientError>>(
    call: Call,
    work: impl FnOnce(&Arc<Call>, &Tell<R>) -> Result<R, ClientError> + Send + 'static,
    attendant: JobWaiter<'_, E>,
) -> Result<R, E> {
    let call = Arc::new(call);
    let (sender, messages) = mpsc::sync_channel(NEWS);
    let interrupt = sender.clone();
    (attendant.interruptible)(Box::new(move || interrupt.send(Message::Interrupted).is_ok()));
    let working = {
        let call = Arc::clone(&call);
        std::thread::spawn(move || {
            let outcome = work(&call, &sender);
            // Nobody waits any more where it was interrupted.
            let _ = sender.send(Message::Ended(outcome));
        })
    };
    let outcome = attend(&call, &messages, &|| working.is_finished(), attendant.told);
    call.is_over();
    outcome
}

/// Tells of what comes until the end does.
fn attend<R, E: From<ClientError>>(
    call: &Call,
    messages: &Receiver<Message<R>>,
    has_ended: &dyn Fn() -> bool,
    told: &mut dyn FnMut(WaitEvent) -> Result<(), E>,
) -> Result<R, E> {
    loop {
        // Looked at first: what was said before the end is in the channel then.
        let ended = has_ended();
        let failure = match messages.recv_timeout(LOOK) {
            Ok(Message::Ended(outcome)) => return outcome.map_err(E::from),
            Ok(Message::Told(news)) => match told(news) {
                Ok(()) => continue,
                Err(error) => error,
            },
            Ok(Message::Interrupted) => ClientError::Interrupted.into(),
            Err(RecvTimeoutError::Timeout) if !ended => continue,
            Err(_) => {
                let why = "the request was given up unasked".to_owned();
                return Err(ClientError::Internal(why).into());
            }
        };
        // Nobody is left to take the answer, nor to be asked what to do about an error.
        let _ = told(WaitEvent::GivenUp(call.cancel()));
        return Err(failure);
    }
}
