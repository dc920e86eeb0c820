//! Requests that take long, and what goes on beside the one who waits: sending them, again where it must
//! be, and following their jobs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use warpgauge_gate::GateRequest;
use warpgauge_gate::report::GateReport;
use warpgauge_job_views::JobEvent;
use warpgauge_report::{CompareResponse, EvaluateResponse, SweepResponse};

use crate::attend::{JobWaiter, Message, Tell, WaitEvent, attended};
use crate::call::Call;
use crate::connection::{ANSWER_TIMEOUT, Connection, Reply, json};
use crate::error::ClientError;
use crate::follow::follow;
use crate::gate::gate;
use crate::patience::RetryPolicy;
use crate::sweep::sweep;

/// How long a sweep may take: its points are bounded, and each has a timeout of its own.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// First pause before a request is sent again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause, whatever the server says.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What waited so long for its answer was at the server, and waits anew if that goes away again.
const WAS_THERE: Duration = Duration::from_secs(15);

/// When the job is looked for first, and longest pause between two looks. Short work has its answer
/// before anybody asks.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LATER_LOOKS: Duration = Duration::from_secs(2);

/// Requests whose progress the attendant receives until the answer is there.
///
/// What is sent is a contract as its author wrote it: which of its fields are valid, the server says.
/// While the server has the job and goes away, it is waited for, for as long as `patience`, each time.
pub struct AttendedRequests<'a, E> {
    pub(crate) connection: &'a Connection,
    pub(crate) attendant: JobWaiter<'a, E>,
}

impl<E: From<ClientError>> AttendedRequests<'_, E> {
    /// Has an evaluation carried out.
    ///
    /// # Errors
    /// Where the server does not answer, refuses, or answers something else; those of the attendant;
    /// [`ClientError::Interrupted`].
    pub fn evaluate(
        self,
        body: &Map<String, Value>,
        patience: Duration,
    ) -> Result<Reply<EvaluateResponse>, E> {
        self.answered("/evaluate", body, patience)
    }

    /// Has a comparison carried out.
    ///
    /// # Errors
    /// As those of [`Self::evaluate`].
    pub fn compare(
        self,
        body: &Map<String, Value>,
        patience: Duration,
    ) -> Result<Reply<CompareResponse>, E> {
        self.answered("/compare", body, patience)
    }

    /// Has a sweep carried out, whose points are told as they come.
    ///
    /// # Errors
    /// As those of [`Self::evaluate`].
    pub fn sweep(
        self,
        body: &Map<String, Value>,
        patience: Duration,
    ) -> Result<Reply<SweepResponse>, E> {
        let body = json("sweep", body)?;
        let call = Call::new(self.connection, "/sweep?stream=true", body, SWEEP_TIMEOUT);
        let post = |call: &Call, tell: &Tell<Reply<SweepResponse>>| {
            sweep(call, &mut |event| {
                // Whoever is told may have gone; then the answer is not wanted either.
                let _ = tell.send(Message::Told(WaitEvent::Sweep(event)));
            })
        };
        carried_out(call, patience, post, self.attendant)
    }

    /// Takes a suite to its report.
    ///
    /// # Errors
    /// Where the server does not answer for as long as there is patience, refuses, or answers something
    /// else; where the job ends without a report; those of the attendant; [`ClientError::Interrupted`].
    pub fn gate(self, request: &GateRequest, patience: RetryPolicy) -> Result<GateReport, E> {
        gate(self.connection, request, patience, self.attendant)
    }

    fn answered<T: DeserializeOwned + Send + 'static>(
        self,
        route: &'static str,
        body: &Map<String, Value>,
        patience: Duration,
    ) -> Result<Reply<T>, E> {
        let call = Call::new(self.connection, route, json("request", body)?, ANSWER_TIMEOUT);
        carried_out(call, patience, |call, _| call.post(), self.attendant)
    }
}

/// Sends the request and stays with its job until the answer, an interruption, or the server's absence
/// for too long.
fn carried_out<R: Send + 'static, E: From<ClientError>>(
    call: Call,
    patience: Duration,
    post: impl Fn(&Call, &Tell<R>) -> Result<R, ClientError> + Send + 'static,
    attendant: JobWaiter<'_, E>,
) -> Result<R, E> {
    let work = move |call: &Arc<Call>, tell: &Tell<R>| {
        let (watched, news) = (Arc::clone(call), tell.clone());
        std::thread::spawn(move || watch(&watched, &news));
        let outcome = deliver(call, patience, tell, || post(call, tell));
        outcome.map_err(|error| call.lost(error))
    };
    attended(call, work, attendant)
}

/// Asks for the answer; while the server has the job and does not answer, again.
fn deliver<R>(
    call: &Call,
    patience: Duration,
    tell: &Tell<R>,
    ask: impl Fn() -> Result<R, ClientError>,
) -> Result<R, ClientError> {
    let began = Instant::now();
    let (mut away_since, mut pause) = (None, FIRST_PAUSE);
    loop {
        let asked = Instant::now();
        let error = match ask() {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if call.job().is_none() || !error.is_broken() || error.is_late() {
            return Err(error);
        }
        if asked.elapsed() > WAS_THERE {
            (away_since, pause) = (None, FIRST_PAUSE);
        }
        let since = *away_since.get_or_insert_with(Instant::now);
        let wait = error.retry_after().unwrap_or(pause).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        if since.elapsed() + wait > patience || began.elapsed() > call.longest {
            return Err(error);
        }
        let why = error.brief();
        let text = format!("{why}; asking for the job again in {:.1} s", wait.as_secs_f64());
        let _ = tell.send(Message::Told(WaitEvent::Again(text)));
        call.rest(wait);
        if call.has_ended() {
            // A job that was just cancelled must not be handed in again.
            return Err(error);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Looks for the job, then tells its news until it ends or nobody waits any more. One that ended
/// because the server lacked something makes place for another, when the request is sent again.
fn watch<R: Send + 'static>(call: &Arc<Call>, tell: &Tell<R>) {
    while let Some(id) = look_for(call, tell) {
        call.found(id.clone());
        tell_news(call, &id, tell);
    }
}

/// Tells the news of a job until its end.
fn tell_news<R: Send + 'static>(call: &Arc<Call>, id: &str, tell: &Tell<R>) {
    // Who asks for the answer says what is wrong; this is but its company.
    let resting = Arc::clone(call);
    let mut patience = RetryPolicy::new(WAS_THERE, move |_, pause| resting.rest(pause));
    while !call.has_ended() {
        let on_event = &mut |event: &JobEvent, _: &str| {
            // The one who waits has gone.
            let told = tell.send(Message::Told(WaitEvent::Job(event.clone())));
            told.map_err(|_| ClientError::Interrupted)
        };
        if follow(&call.connection, id, None, &mut patience, on_event).is_ok() {
            return;
        }
        call.rest(LATER_LOOKS);
    }
}

/// The job, once the server has it and it is not the one that is known already.
fn look_for<R>(call: &Call, tell: &Tell<R>) -> Option<String> {
    let known = call.job();
    let mut pause = FIRST_LOOK;
    loop {
        call.rest(pause);
        if call.has_ended() {
            return None;
        }
        match call.find() {
            Ok(Some(id)) if Some(&id) != known.as_ref() => return Some(id),
            Err(ClientError::Refused { status: 400 | 404 | 405, .. }) => {
                let _ = tell.send(Message::Told(WaitEvent::Untold));
                return None;
            }
            // The answer to the request itself tells what is wrong.
            Ok(_) | Err(_) => {}
        }
        pause = (pause * 2).min(LATER_LOOKS);
    }
}
