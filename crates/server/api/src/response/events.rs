//! Sends the events of a job as server-sent events: [`Watchers`].

use std::time::Duration;

use futures_util::{StreamExt, stream};
use poem::http::StatusCode;
use poem::web::sse::{Event, SSE};
use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use tokio::sync::watch;

use crate::error::ApiError;
use crate::phase::Phase;
use warpgauge_job_views::JobEvent;
use warpgauge_model::ErrorCode;
use warpgauge_service::{Caller, JobEvents, JobService};
use warpgauge_turns::{Owner, Pool, PoolBounds, PoolFull, PoolPermit};

/// Maximum number of open streams. The number of connections, divided by `SHARE`, may limit it
/// further.
const MAX_WATCHERS: usize = 256;
const SHARE: usize = 4;

/// Interval of the keep-alive comments on a stream without events. Proxies close connections
/// without traffic.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Time after which a client should reconnect if its stream breaks, milliseconds.
const RETRY_MS: u64 = 1_000;

/// The open streams, and the limit on their number.
#[derive(Clone)]
pub(crate) struct Watchers {
    places: Pool,
    phase: watch::Receiver<Phase>,
}

impl Watchers {
    /// Creates the limits. Streams end when the server shuts down. `shared` indicates whether there
    /// may be several callers with keys. If so, each may use only a share of the streams.
    pub(crate) fn new(phase: watch::Receiver<Phase>, connections: usize, shared: bool) -> Self {
        let places = MAX_WATCHERS.min(connections / SHARE).max(1);
        let bounds = PoolBounds { places, extra: 0, waiting: 0, shared, least: 1 };
        Self { places: Pool::new(bounds), phase }
    }

    /// Returns the number of open streams.
    pub(crate) fn open(&self) -> usize {
        self.places.held()
    }

    /// Reserves a stream for a caller.
    pub(crate) fn place(&self, caller: &Caller) -> Result<PoolPermit, ApiError> {
        self.places.try_take(Owner::named(&caller.owner), 1).map_err(|full| {
            let (count, whose) = match full {
                PoolFull::All(count) => (count, ""),
                PoolFull::Share(count) => (count, " of this key, its share,"),
            };
            let message =
                format!("{count} streams of events{whose} are open already; poll the job");
            let status = StatusCode::TOO_MANY_REQUESTS;
            ApiError::new(status, ErrorCode::TooManyWatchers, message).retry_after(5)
        })
    }

    /// Opens a stream of a job's events after the event with the id `last`.
    pub(crate) async fn watch(
        &self,
        jobs: &dyn JobService,
        job_id: &str,
        caller: &Caller,
        last: Option<&str>,
    ) -> Result<EventsReply, ApiError> {
        let place = self.place(caller)?;
        let news = jobs.watch(job_id, caller).await?;
        let known = last.map(str::to_owned);
        Ok(EventsReply(stream_of(news, known, place, self.phase.clone())))
    }
}

fn stream_of(
    news: JobEvents,
    mut known: Option<String>,
    place: PoolPermit,
    mut phase: watch::Receiver<Phase>,
) -> SSE {
    let events = news.filter_map(move |event| {
        // Only the first event may be known to the client already. The last event is always sent.
        let told = known.take().is_some_and(|known| known == id(&event)) && !event.state.is_end();
        let event = (!told).then(|| written(&event));
        // The closure owns the reservation until the stream ends.
        let _place = &place;
        async move { event }
    });
    // When the server shuts down, it ends the streams. Clients then reconnect to the next server.
    let down = async move {
        let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
    };
    let events = stream::iter([Event::retry(RETRY_MS)]).chain(events).take_until(down);
    SSE::new(events).keep_alive(KEEP_ALIVE)
}

/// Returns the id of an event. It consists of the values that change between events.
fn id(event: &JobEvent) -> String {
    let id = format!(
        "{}-{}-{}-{}",
        event.attempt,
        event.state.name(),
        event.points_done.unwrap_or(0),
        event.trials_done
    );
    match event.ahead {
        Some(ahead) => format!("{id}-{ahead}"),
        None => id,
    }
}

fn written(event: &JobEvent) -> Event {
    let kind = if event.state.is_end() { "end" } else { "progress" };
    // The event contains only numbers and texts, which JSON can represent.
    let json = serde_json::to_string(event).unwrap_or_else(|error| {
        tracing::error!(%error, "an event cannot be written");
        "null".to_owned()
    });
    Event::message(json).event_type(kind).id(id(event))
}

/// A stream of a job's events.
pub(crate) struct EventsReply(SSE);

impl IntoResponse for EventsReply {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl ApiResponse for EventsReply {
    fn meta() -> MetaResponses {
        let schema = MetaSchemaRef::Inline(Box::new(MetaSchema {
            description: Some(
                "Server-sent events: `progress`, and `end` at the end. The data of each is a `JobEvent` in \
                 JSON: `job_id`, `state`, `stage`, `attempt`, `trials_done`, `elapsed_s`, and, where known, \
                 `statistics` (`trials`, `median_ms`, `ci_lower_ms`, \
                 `ci_upper_ms`), `ahead`, `points_done`, `points` and `error`.",
            ),
            ..MetaSchema::new("string")
        }));
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Stream of events.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType { content_type: "text/event-stream", schema }],
                headers: vec![],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_model::{JobStage, JobState};

    fn event(state: JobState, trials_done: u32) -> JobEvent {
        JobEvent {
            job_id: "j".to_owned(),
            state,
            stage: JobStage::Running,
            attempt: 1,
            trials_done,
            ahead: None,
            elapsed_s: 0.0,
            statistics: None,
            points_done: None,
            points: None,
            error: None,
        }
    }

    async fn told(events: &[JobEvent], last: Option<&str>) -> String {
        let (_phase, phases) = watch::channel(Phase::Serving);
        let watchers = Watchers::new(phases.clone(), 1024, true);
        let place = watchers.place(&Caller::local()).expect("a place");
        let news = stream::iter(events.to_vec()).boxed();
        let sse = stream_of(news, last.map(str::to_owned), place, phases);
        sse.into_response().into_body().into_string().await.expect("text")
    }

    #[tokio::test]
    async fn a_client_that_comes_back_is_not_told_what_it_knows() {
        let events = [
            event(JobState::Profiling, 3),
            event(JobState::Profiling, 7),
            event(JobState::Completed, 7),
        ];
        let all = told(&events, None).await;
        assert_eq!(all.matches("event: progress").count(), 2, "{all}");
        assert!(all.contains("id: 1-profiling-0-3\nevent: progress\ndata: {"), "{all}");
        assert!(all.ends_with("\n\n") && all.contains("id: 1-completed-0-7\nevent: end"), "{all}");
        let rest = told(&events, Some("1-profiling-0-3")).await;
        assert_eq!(rest.matches("event: progress").count(), 1, "{rest}");
        let waiting = JobEvent { ahead: Some(4), ..event(JobState::Queued, 0) };
        let before = told(std::slice::from_ref(&waiting), Some("1-queued-0-0-5")).await;
        assert!(before.contains("id: 1-queued-0-0-4\n"), "{before}");
        assert!(before.contains("\"ahead\":4"), "{before}");
        let known = told(&[waiting], Some("1-queued-0-0-4")).await;
        assert!(!known.contains("event:"), "{known}");
        let other = told(&events, Some("1-profiling-0-7")).await;
        assert_eq!(other.matches("event: progress").count(), 2, "{other}");
        let end = told(&events[2..], Some("1-completed-0-7")).await;
        assert_eq!(end.matches("event: end").count(), 1, "{end}");
    }

    #[tokio::test]
    async fn streams_end_when_the_server_goes_down() {
        let (phase, phases) = watch::channel(Phase::Serving);
        let watchers = Watchers::new(phases.clone(), 1024, true);
        let place = watchers.place(&Caller::local()).expect("a place");
        assert_eq!(watchers.open(), 1);
        let sse = stream_of(stream::pending().boxed(), None, place, phases);
        phase.send_replace(Phase::Draining);
        sse.into_response().into_body().into_string().await.expect("an end");
        assert_eq!(watchers.open(), 0);
    }
}
