//! Sends long requests, retries them, and follows their jobs while the caller waits. The main type
//! is [`AttendedRequests`].

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

/// Time limit for a sweep. The number of its points is limited, and each point has a separate time
/// limit.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// First pause before a request is sent again. Each later pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Maximum pause before a request is sent again, even if the server suggests a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Time after which a request without an answer is assumed to have reached the server. If the
/// request then fails, the full time for retries is available again.
const WAS_THERE: Duration = Duration::from_secs(15);

/// Delay before the job is first looked up, and maximum pause between two look-ups. Short jobs end
/// before the first look-up.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LATER_LOOKS: Duration = Duration::from_secs(2);

/// Requests whose progress the attendant receives until the answer arrives.
///
/// The body is a contract as its author wrote it; the server validates its fields. If the server
/// becomes unreachable while it has the job, the client retries for up to `patience` after each
/// failure.
pub struct AttendedRequests<'a, E> {
    pub(crate) connection: &'a Connection,
    pub(crate) attendant: JobWaiter<'a, E>,
}

impl<E: From<ClientError>> AttendedRequests<'_, E> {
    /// Runs an evaluation.
    ///
    /// # Errors
    /// The server does not answer, rejects the request, or returns an unexpected response; the
    /// attendant fails; or [`ClientError::Interrupted`].
    pub fn evaluate(
        self,
        body: &Map<String, Value>,
        patience: Duration,
    ) -> Result<Reply<EvaluateResponse>, E> {
        self.answered("/evaluate", body, patience)
    }

    /// Runs a comparison.
    ///
    /// # Errors
    /// The errors of [`Self::evaluate`].
    pub fn compare(
        self,
        body: &Map<String, Value>,
        patience: Duration,
    ) -> Result<Reply<CompareResponse>, E> {
        self.answered("/compare", body, patience)
    }

    /// Runs a sweep, and reports its points as they arrive.
    ///
    /// # Errors
    /// The errors of [`Self::evaluate`].
    pub fn sweep(
        self,
        body: &Map<String, Value>,
        patience: Duration,
    ) -> Result<Reply<SweepResponse>, E> {
        let body = json("sweep", body)?;
        let call = Call::new(self.connection, "/sweep?stream=true", body, SWEEP_TIMEOUT);
        let post = |call: &Call, tell: &Tell<Reply<SweepResponse>>| {
            sweep(call, &mut |event| {
                // If the receiver was dropped, the answer is not needed either.
                let _ = tell.send(Message::Told(WaitEvent::Sweep(event)));
            })
        };
        carried_out(call, patience, post, self.attendant)
    }

    /// Runs a suite, and returns its report.
    ///
    /// The server does not answer before the retries end, rejects the request, or returns an
    /// unexpected response; the job ends without a report; the attendant fails; or
    /// [`ClientError::Interrupted`].
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

/// Sends the request and follows its job until the answer arrives, the caller interrupts it, or the
/// time for retries is over.
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

/// Sends the request. Retries while the server has the job but does not answer.
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
            // A job that was cancelled a moment ago must not be submitted again.
            return Err(error);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Looks up the job, and passes its events to the waiter until the job ends or the caller gives up.
/// If a job ended because a resource was missing on the server, the retried request creates another
/// job.
fn watch<R: Send + 'static>(call: &Arc<Call>, tell: &Tell<R>) {
    while let Some(id) = look_for(call, tell) {
        call.found(id.clone());
        tell_news(call, &id, tell);
    }
}

/// Passes the events of a job to the waiter until the job ends.
fn tell_news<R: Send + 'static>(call: &Arc<Call>, id: &str, tell: &Tell<R>) {
    // The request reports errors; the events are optional.
    let resting = Arc::clone(call);
    let mut patience = RetryPolicy::new(WAS_THERE, move |_, pause| resting.rest(pause));
    while !call.has_ended() {
        let on_event = &mut |event: &JobEvent, _: &str| {
            // An error means that the caller no longer waits.
            let told = tell.send(Message::Told(WaitEvent::Job(event.clone())));
            told.map_err(|_| ClientError::Interrupted)
        };
        if follow(&call.connection, id, None, &mut patience, on_event).is_ok() {
            return;
        }
        call.rest(LATER_LOOKS);
    }
}

/// Waits until the server lists a job that is not known yet, and returns its id.
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
            // The request reports the error.
            Ok(_) | Err(_) => {}
        }
        pause = (pause * 2).min(LATER_LOOKS);
    }
}
