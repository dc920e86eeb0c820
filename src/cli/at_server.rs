//! A request that a server carries out while somebody waits at a terminal.
//!
//! It has an idempotency key of its own. By that key its job is found, so that its news are shown and it
//! is cancelled when the user interrupts; and where the connection breaks, the same request sent again
//! is the same job again. Most are posted as any other and answered in one go.

mod call;
mod delivery;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(super) use self::call::Call;
use self::delivery::{deliver, watch};
use super::args::{Patience, Target};
use super::progress::Progress;
use super::remote::{self, RemoteError};
use super::signals::EndSignals;
use super::terminal::{Terminal, write_error_stream};
use super::watched::{Expected, View};
use super::{CliError, remote_events};
use crate::exit::Exit;
use crate::pipeline::SweepEvent;
use crate::report::{JobEvent, SweepResponse};

/// How often to look whether the thread that waits for the answer is still there.
const LOOK: Duration = Duration::from_secs(1);

/// News on their way to the one who shows them, at most.
const NEWS: usize = 64;

/// What is told on the way to the answer.
pub(super) enum Told {
    /// News of the job.
    Job(JobEvent),
    /// A part of a sweep's answer.
    Sweep(SweepEvent),
    /// The connection broke; the request is sent again.
    Again(String),
    /// The server does not say how far its jobs are.
    Untold,
}

/// What reaches the one who waits.
pub(super) enum Message<N, R> {
    Told(N),
    Interrupted,
    Ended(Result<R, CliError>),
}

/// Where the work tells its news.
pub(super) type Tell<N, R> = SyncSender<Message<N, R>>;

/// How a request is sent: what it says, to whom, and how long to wait for a server that went away.
pub(super) struct Request<'a> {
    pub(super) target: &'a Target,
    pub(super) server: &'a str,
    pub(super) route: &'static str,
    pub(super) body: Map<String, Value>,
    pub(super) patience: Patience,
}

/// Has a server carry out an evaluation or a comparison, showing how far it is; its answer, as text
/// and understood.
pub(super) fn answer<T: DeserializeOwned + Send + 'static>(
    request: Request<'_>,
    progress: &Progress,
    terminal: Terminal,
) -> Result<(String, T), CliError> {
    let mut view = View::new(Expected::of_body(&request.body));
    let post = |call: &Call, _: &Tell<Told, (String, T)>| call.post();
    carried_out(request, remote::ANSWER_TIMEOUT, post, &mut |told| {
        match told {
            // After its end there is nothing to show but the answer.
            Told::Job(event) if event.state.is_end() => {}
            Told::Job(event) => view.show(&event, progress),
            other => progress.beside(|| remark(other, terminal)),
        }
        Ok(())
    })
}

/// Has a server carry out a sweep, telling what comes; its answer, as text and understood.
pub(super) fn sweep(
    request: Request<'_>,
    shown: &mut dyn FnMut(Told) -> Result<(), CliError>,
) -> Result<(String, SweepResponse), CliError> {
    let post = |call: &Call, sender: &Tell<Told, (String, SweepResponse)>| {
        remote_events::sweep(call, &mut |event| {
            // Whoever is told may have gone; then the answer is not wanted either.
            let _ = sender.send(Message::Told(Told::Sweep(event)));
        })
    };
    carried_out(request, remote_events::SWEEP_TIMEOUT, post, shown)
}

/// What is no news of the job, for people.
pub(super) fn remark(told: Told, terminal: Terminal) {
    match told {
        Told::Again(why) => terminal.note(&format!("warpgauge: {why}")),
        Told::Untold => terminal.note(
            "warpgauge: this server does not tell how far its jobs are, it is an older one; waiting \
             for its answer",
        ),
        Told::Job(_) | Told::Sweep(_) => {}
    }
}

/// Sends the request and stays with its job until the answer, an interruption, or the server's absence
/// for too long. `longest`: how long all of it may take.
fn carried_out<R: Send + 'static>(
    request: Request<'_>,
    longest: Duration,
    post: impl Fn(&Call, &Tell<Told, R>) -> Result<R, RemoteError> + Send + 'static,
    shown: &mut dyn FnMut(Told) -> Result<(), CliError>,
) -> Result<R, CliError> {
    let Request { target, server, route, body, patience } = request;
    let patience = Duration::try_from_secs_f64(patience.seconds).unwrap_or_default();
    let call = Call::new(target, server, route, &Value::Object(body), longest)?;
    let work = move |call: &Arc<Call>, sender: &Tell<Told, R>| {
        let (watched, news) = (Arc::clone(call), sender.clone());
        std::thread::spawn(move || watch(&watched, &news));
        let outcome = deliver(call, patience, sender, || post(call, sender));
        outcome.map_err(|error| call.lost(error))
    };
    attended(call, work, shown)
}

/// Has `work` done on a thread of its own, and shows what that tells, until it ends; an interruption
/// cancels the call's job.
pub(super) fn attended<N: Send + 'static, R: Send + 'static>(
    call: Call,
    work: impl FnOnce(&Arc<Call>, &Tell<N, R>) -> Result<R, CliError> + Send + 'static,
    shown: &mut dyn FnMut(N) -> Result<(), CliError>,
) -> Result<R, CliError> {
    let call = Arc::new(call);
    let (sender, messages) = mpsc::sync_channel(NEWS);
    interruptions(sender.clone());
    let working = {
        let call = Arc::clone(&call);
        std::thread::spawn(move || {
            let outcome = work(&call, &sender);
            // Nobody waits any more where it was interrupted.
            let _ = sender.send(Message::Ended(outcome));
        })
    };
    let outcome = attend(&call, &messages, &|| working.is_finished(), shown);
    call.is_over();
    outcome
}

/// Tells of what comes until the end does.
fn attend<N, R>(
    call: &Call,
    messages: &Receiver<Message<N, R>>,
    has_ended: &dyn Fn() -> bool,
    shown: &mut dyn FnMut(N) -> Result<(), CliError>,
) -> Result<R, CliError> {
    loop {
        // Looked at first: what was said before the end is in the channel then.
        let ended = has_ended();
        let failure = match messages.recv_timeout(LOOK) {
            Ok(Message::Ended(outcome)) => return outcome,
            Ok(Message::Told(told)) => match shown(told) {
                Ok(()) => continue,
                Err(error) => error,
            },
            Ok(Message::Interrupted) => CliError::Interrupted,
            Err(RecvTimeoutError::Timeout) if !ended => continue,
            Err(_) => {
                return Err(CliError::Internal("the request was given up unasked".to_owned()));
            }
        };
        // Nobody is left to take the answer.
        write_error_stream(&format!("warpgauge: {}", call.cancel()));
        return Err(failure);
    }
}

/// Tells of SIGINT and SIGTERM: the first asks, the second ends the process at once.
fn interruptions<N: Send + 'static, R: Send + 'static>(sender: Tell<N, R>) {
    // Made ready in the thread: the request need not wait for it.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Where signals cannot be had, they end the process as ever.
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let Ok(mut signals) = EndSignals::listen() else { return };
            signals.next().await;
            // After the answer it ends what is done with that.
            if sender.send(Message::Interrupted).is_ok() {
                signals.next().await;
            }
            std::process::exit(i32::from(Exit::Interrupted.code()));
        });
    });
}
