//! Answers of sweeps: a report, a table, or a stream of events.

use std::time::Duration;

use futures_util::stream;
use poem::http::{HeaderMap, header};
use poem::web::sse::{Event, SSE};
use poem::{IntoResponse, Response};
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiResponse, Enum};
use serde::Serialize;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinSet;

use crate::blocking::run_blocking;
use crate::error::{ApiError, JSON};
use crate::request::body::Share;
use crate::response::accepted::Accepted;
use crate::response::accepted::{AcceptedReply, form_without_report};
use crate::response::reply::JsonReply;
use crate::schema;
use warpgauge_contract::SweepRequest;
use warpgauge_job_views::SweepEvent;
use warpgauge_report::SweepResponse;
use warpgauge_service::{JobSubmission, ServiceError, Services};

const CSV: &str = "text/csv";
const EVENTS: &str = "text/event-stream";

/// Interval of the keep-alive comments on a stream without events. Proxies close connections
/// without traffic.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Estimated size of the report of one point, bytes. It decides whether an answer is written
/// outside the async threads.
const REPORT_BYTES: usize = 32 << 10;

/// Format of an answer that is not a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "lowercase")]
pub(crate) enum SweepFormat {
    /// Complete report in JSON.
    Json,
    /// Table as comma-separated values.
    Csv,
}

/// Form of the answer that the caller requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Csv,
    Events,
}

impl Form {
    /// Returns the form in the query. If there is none, returns the form of the first known media
    /// type in `Accept`.
    pub(crate) fn wanted(
        stream: Option<bool>,
        format: Option<SweepFormat>,
        headers: &HeaderMap,
    ) -> Self {
        match (stream, format) {
            (Some(true), _) => return Form::Events,
            (_, Some(SweepFormat::Json)) => return Form::Json,
            (_, Some(SweepFormat::Csv)) => return Form::Csv,
            (_, None) => {}
        }
        let values = headers.get_all(header::ACCEPT).iter();
        let types = values.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
        types
            .filter_map(|accepted| match accepted.split(';').next().unwrap_or_default().trim() {
                EVENTS if stream.is_none() => Some(Form::Events),
                CSV => Some(Form::Csv),
                JSON | "*/*" | "application/*" => Some(Form::Json),
                _ => None,
            })
            .next()
            .unwrap_or(Form::Json)
    }

    /// Rejects a form of the report together with `wait=false`: such an answer contains no report.
    pub(crate) fn without_report(
        self,
        stream: Option<bool>,
        format: Option<SweepFormat>,
    ) -> Result<(), ApiError> {
        match (self, stream, format) {
            (_, _, Some(SweepFormat::Csv)) => Err(form_without_report("format", "format=csv")),
            (Form::Events, Some(true), _) => Err(form_without_report("stream", "stream=true")),
            (Form::Events, ..) => Err(form_without_report("Accept", EVENTS)),
            _ => Ok(()),
        }
    }
}

/// Answers of `POST /sweep`.
pub(crate) enum SweepReply {
    Report(JsonReply<SweepResponse>),
    Table(String),
    Events(SSE),
    Accepted(AcceptedReply),
}

/// Runs a sweep and answers in the requested form.
pub(crate) async fn reply(
    service: &Services,
    request: SweepRequest,
    submission: JobSubmission,
    share: Share,
    form: Form,
) -> Result<SweepReply, ApiError> {
    if form == Form::Events {
        return started(service.clone(), request, submission, share).await.map(SweepReply::Events);
    }
    let answer = service.evaluations.sweep(request, submission, Box::new(|_| {})).await?;
    drop(share);
    if form == Form::Csv {
        let table = answer.table.to_csv().map_err(|error| {
            tracing::error!(%error, "a table cannot be written");
            ApiError::internal("csv", "the table cannot be written as CSV")
        })?;
        return Ok(SweepReply::Table(table));
    }
    let reports = answer.points.iter().filter(|point| point.report.is_some()).count();
    Ok(SweepReply::Report(JsonReply::with_content(answer, reports * REPORT_BYTES).await?))
}

/// A sweep that runs in a separate task, so that a client that reads slowly does not delay the
/// device. The task ends when this value is dropped.
struct Running {
    events: UnboundedReceiver<SweepEvent>,
    task: JoinSet<Result<SweepResponse, ServiceError>>,
}

/// Starts a sweep. A failure before its first event becomes an HTTP error, not an event.
async fn started(
    service: Services,
    request: SweepRequest,
    submission: JobSubmission,
    share: Share,
) -> Result<SSE, ApiError> {
    // The channel holds at most one event per point, and the number of points is bounded.
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut task = JoinSet::new();
    task.spawn(async move {
        // The receiver lives as long as the task, and both end when the client disconnects.
        let tell = Box::new(move |event| drop(sender.send(event)));
        let outcome = service.evaluations.sweep(request, submission, tell).await;
        drop(share);
        outcome
    });
    let first = events.recv().await;
    let mut running = Running { events, task };
    let first = match first {
        Some(first) => of_event(&first),
        // A sweep with the same idempotency key was submitted earlier, so only its report arrives.
        None => match running.ended().await {
            Some(Ok(answer)) => done(answer).await?,
            Some(Err(error)) => return Err(error),
            None => return Err(ApiError::internal("sweep", "the sweep ended before it began")),
        },
    };
    let rest = stream::unfold(running, |mut running| async move {
        let event = running.next().await?;
        Some((event, running))
    });
    let all = futures_util::StreamExt::chain(stream::iter([first]), rest);
    Ok(SSE::new(all).keep_alive(KEEP_ALIVE))
}

impl Running {
    async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.events.recv().await {
            return Some(of_event(&event));
        }
        let last = match self.ended().await? {
            Ok(answer) => done(answer).await,
            Err(error) => Err(error),
        };
        Some(last.unwrap_or_else(|error| event("error", error.body())))
    }

    /// Returns the outcome of the sweep on the first call, and `None` afterwards.
    async fn ended(&mut self) -> Option<Result<SweepResponse, ApiError>> {
        let outcome = self.task.join_next().await?;
        Some(match outcome {
            Ok(outcome) => outcome.map_err(ApiError::from),
            Err(error) => {
                tracing::error!(%error, "a sweep panicked");
                Err(ApiError::internal(
                    "sweep",
                    "the sweep failed because of an error in the server",
                ))
            }
        })
    }
}

/// Returns the last event, which contains the whole report.
async fn done(answer: SweepResponse) -> Result<Event, ApiError> {
    // The reports of the points make the answer long.
    run_blocking("reply", "writing the answer", move || event("done", &answer)).await
}

fn of_event(news: &SweepEvent) -> Event {
    match news {
        SweepEvent::Started(started) => event("started", started),
        SweepEvent::Point(point) => event("point", point),
    }
}

fn event(kind: &str, content: &impl Serialize) -> Event {
    // The event contains only numbers, texts and maps with text keys, which JSON can represent.
    let json = serde_json::to_string(content).unwrap_or_else(|error| {
        tracing::error!(%error, kind, "an event cannot be written");
        "null".to_owned()
    });
    Event::message(json).event_type(kind)
}

impl IntoResponse for SweepReply {
    fn into_response(self) -> Response {
        match self {
            SweepReply::Report(reply) => reply.into_response(),
            SweepReply::Table(csv) => {
                Response::builder().content_type("text/csv; charset=utf-8").body(csv)
            }
            SweepReply::Events(events) => events.into_response(),
            SweepReply::Accepted(accepted) => accepted.into_response(),
        }
    }
}

impl ApiResponse for SweepReply {
    fn meta() -> MetaResponses {
        let text = |content_type, description| MetaMediaType {
            content_type,
            schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
                description: Some(description),
                ..MetaSchema::new("string")
            })),
        };
        let content = vec![
            MetaMediaType { content_type: JSON, schema: schema::reference::<SweepResponse>() },
            text(CSV, "Table, with the names of the columns in the first row."),
            text(
                EVENTS,
                "Server-sent events with data in JSON: `started` (`job_id`, `points`, \
                 `axes`), one `point` (`SweepPoint`) for each point in order, and at the end \
                 `done` (`SweepResponse`) or `error` (`ErrorBody`).",
            ),
        ];
        let answer = MetaResponse {
            description: "Report of the sweep, with the result of every point.",
            status: Some(200),
            status_range: None,
            content,
            headers: vec![],
        };
        MetaResponses { responses: vec![answer, AcceptedReply::described()] }
    }

    fn register(registry: &mut Registry) {
        schema::register::<SweepResponse>(registry);
        schema::register::<Accepted>(registry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_goes_before_the_accept_header() {
        let accept = |value: &'static str| {
            HeaderMap::from_iter([(header::ACCEPT, header::HeaderValue::from_static(value))])
        };
        for (stream, format, header, form) in [
            (None, None, "*/*", Form::Json),
            (None, None, "", Form::Json),
            (None, None, "text/event-stream", Form::Events),
            (None, None, "text/html, text/csv;q=0.9, */*", Form::Csv),
            (None, None, "application/json, text/csv", Form::Json),
            (Some(true), None, "text/csv", Form::Events),
            (Some(false), None, "text/event-stream", Form::Json),
            (Some(false), None, "text/event-stream, text/csv", Form::Csv),
            (None, Some(SweepFormat::Csv), "text/event-stream", Form::Csv),
            (None, Some(SweepFormat::Json), "text/csv", Form::Json),
        ] {
            assert_eq!(Form::wanted(stream, format, &accept(header)), form, "{header}");
        }
    }
}
