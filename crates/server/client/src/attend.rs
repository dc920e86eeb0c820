//! Sends requests to a server while a caller waits for the answer. The main type is [`JobWaiter`].

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use warpgauge_job_views::{JobEvent, SweepEvent};

use crate::call::Call;
use crate::error::ClientError;

/// Interval at which the waiting thread checks that the working thread is alive.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum number of events in the channel to the waiting caller.
const NEWS: usize = 64;

/// An event that precedes the answer.
#[derive(Debug)]
pub enum WaitEvent {
    /// The server has accepted the request as a job with this id. Only for runs of the gate.
    Accepted(String),
    /// An event of the job.
    Job(JobEvent),
    /// An event of a sweep.
    Sweep(SweepEvent),
    /// The connection broke, and the request is sent again. The text is the reason.
    Again(String),
    /// The server does not report the progress of jobs.
    Untold,
    /// The caller has given up. The text describes what happens to the job. This is the last event.
    GivenUp(String),
}

/// Interrupts the wait, which cancels the job. Returns whether the caller was still waiting.
pub type Interrupt = Box<dyn FnOnce() -> bool + Send>;

/// A caller that waits for an answer.
pub struct JobWaiter<'a, E> {
    /// Receives events on the waiting thread. An error ends the wait and cancels the job.
    pub told: &'a mut dyn FnMut(WaitEvent) -> Result<(), E>,
    /// Receives the function that interrupts the wait, at the beginning of the wait.
    pub interruptible: &'a dyn Fn(Interrupt),
}

/// A message to the waiting caller.
pub(crate) enum Message<R> {
    Told(WaitEvent),
    Interrupted,
    Ended(Result<R, ClientError>),
}

/// Channel through which the working thread sends messages to the waiting caller.
pub(crate) type Tell<R> = SyncSender<Message<R>>;

/// Runs `work` on a separate thread. Passes its events to the waiter until the work ends.
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
            // After an interrupt, the receiver has been dropped.
            let _ = sender.send(Message::Ended(outcome));
        })
    };
    let outcome = attend(&call, &messages, &|| working.is_finished(), attendant.told);
    call.is_over();
    outcome
}

/// Passes events to the waiter until the answer arrives.
fn attend<R, E: From<ClientError>>(
    call: &Call,
    messages: &Receiver<Message<R>>,
    has_ended: &dyn Fn() -> bool,
    told: &mut dyn FnMut(WaitEvent) -> Result<(), E>,
) -> Result<R, E> {
    loop {
        // The order matters: once the work has ended, all of its messages are in the channel.
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
                let why = "the request was abandoned without a reason".to_owned();
                return Err(ClientError::Internal(why).into());
            }
        };
        // The caller has given up, so an error of `told` is ignored.
        let _ = told(WaitEvent::GivenUp(call.cancel()));
        return Err(failure);
    }
}
