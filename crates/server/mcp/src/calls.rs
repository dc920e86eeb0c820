//! Runs tool calls: creates a job, follows it while the agent waits, and returns the answer.

use std::time::Duration;

use base64::Engine as _;
use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, ProgressToken,
    ResourceContents,
};
use rmcp::service::RequestContext;
use tokio::time::Instant;

use super::answer::{self, Outcome};
use super::arguments;
use super::backend::{JobBackend, JobBackendError};
use super::imports;
use super::news;
use super::places::CallPermits;
use super::report::{MAX_BLOB_BYTES, MAX_TEXT_BYTES, bounded, truncated};
use super::resources::{self, Part};
use super::tools::ToolName;
use warpgauge_job_views::{JobEvent, JobView};

/// Minimum time between two progress messages of the same stage.
const PROGRESS_PAUSE: Duration = Duration::from_millis(200);

/// Maximum time between progress messages, because clients assume that a silent server is broken.
const PROGRESS_AT_LEAST: Duration = Duration::from_secs(10);

/// Runs a tool call.
pub(crate) async fn call(
    backend: &dyn JobBackend,
    permits: &CallPermits,
    tool: ToolName,
    given: JsonObject,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let outcome = match tool {
        ToolName::ListDevices => return devices(backend, &given).await,
        ToolName::ImportReport => {
            let reading = imports::read(permits, backend.owner(), given);
            return tokio::select! {
                biased;
                () = context.ct.cancelled() => refused(&cancelled_import()),
                read = reading => imported(read),
            };
        }
        ToolName::GetJob => get_job(backend, given, context).await,
        ToolName::Evaluate | ToolName::Compare | ToolName::Profile => {
            job(backend, tool, given, context).await.map(|outcome| (outcome, None))
        }
    };
    let (outcome, part) = outcome.unwrap_or_else(|refusal| (Outcome::refused(&refusal), None));
    result(&outcome, part)
}

/// Converts an outcome to a tool result of the protocol.
fn result(outcome: &Outcome, part: Option<String>) -> CallToolResult {
    let mut content = vec![ContentBlock::text(outcome.text())];
    content.extend(part.map(ContentBlock::text));
    let mut result = CallToolResult::success(content);
    result.structured_content = serde_json::to_value(outcome).ok();
    result.is_error = Some(outcome.is_error());
    result
}

async fn devices(backend: &dyn JobBackend, given: &JsonObject) -> CallToolResult {
    let listed = match given.keys().next() {
        Some(name) => {
            let name: String = name.chars().take(64).collect();
            Err(JobBackendError::at(
                &name,
                "unknown_field",
                format!("{name}: list_devices has no arguments"),
            ))
        }
        None => backend.devices().await,
    };
    match listed {
        Ok(devices) => {
            let (text, structured) = answer::of_devices(&devices);
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(structured);
            result
        }
        Err(refusal) => refused(&refusal),
    }
}

/// Converts the reading of a report to a tool result of the protocol.
fn imported(read: Result<imports::Reading, JobBackendError>) -> CallToolResult {
    match read {
        Ok(reading) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(reading.text)]);
            result.structured_content = Some(reading.structured);
            result
        }
        Err(refusal) => refused(&refusal),
    }
}

/// Returns the error of an import whose call was cancelled. Parsing ends on its own.
fn cancelled_import() -> JobBackendError {
    let code = warpgauge_model::ErrorCode::Cancelled;
    JobBackendError::new(code, "the call was cancelled; call import_report again")
}

async fn job(
    backend: &dyn JobBackend,
    tool: ToolName,
    given: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<Outcome, JobBackendError> {
    let call = arguments::job(tool, given)?;
    let job_id = backend.submit(call.order).await?;
    let job =
        Waiting { backend, job_id: &job_id, context, cancels: true }.until_end(call.wait).await?;
    Ok(described(backend, &job))
}

/// Returns the answer about a job, with the address of its page.
fn described(backend: &dyn JobBackend, job: &JobView) -> Outcome {
    Outcome { page: backend.page_of(&job.job_id), ..answer::of_job(job) }
}

async fn get_job(
    backend: &dyn JobBackend,
    given: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<(Outcome, Option<String>), JobBackendError> {
    let question = arguments::question(given)?;
    let job_id = &question.job_id;
    // If a query is cancelled, the job must continue.
    let waiting = Waiting { backend, job_id, context, cancels: false };
    let job = waiting.until_end(question.wait).await?;
    let part = match question.part {
        None => None,
        Some(part) => Some(match contents(backend, &job, &part, "").await? {
            ResourceContents::TextResourceContents { text, .. } => text,
            _ => {
                let what = format!(
                    "it is not text; GET {} of the HTTP API returns it",
                    part.http_path(job_id)
                );
                return Err(JobBackendError::at("read", "invalid_value", format!("read: {what}")));
            }
        }),
    };
    Ok((described(backend, &job), part))
}

/// Returns the content of a resource.
pub(crate) async fn read(
    backend: &dyn JobBackend,
    uri: &str,
) -> Result<ResourceContents, JobBackendError> {
    let (job_id, part) = resources::parse(uri)?;
    let job = backend.job(&job_id).await?;
    contents(backend, &job, &part, uri).await
}

async fn contents(
    backend: &dyn JobBackend,
    job: &JobView,
    part: &Part,
    uri: &str,
) -> Result<ResourceContents, JobBackendError> {
    let media_type = part.media_type();
    let Part::Artifact { kind, kernel } = part else {
        return Ok(ResourceContents::text(bounded(job), uri).with_mime_type(media_type));
    };
    let content = backend.artifact(&job.job_id, *kind, kernel.as_deref()).await?.bytes;
    if !media_type.starts_with("text/") {
        if content.len() > MAX_BLOB_BYTES {
            let (length, path) = (content.len(), part.http_path(&job.job_id));
            let message = format!(
                "it has {length} bytes, more than {MAX_BLOB_BYTES}; GET {path} of the HTTP API returns it"
            );
            return Err(JobBackendError::new("too_large", message));
        }
        let blob = base64::engine::general_purpose::STANDARD.encode(content);
        return Ok(ResourceContents::blob(blob, uri).with_mime_type(media_type));
    }
    let text = String::from_utf8_lossy(&content);
    let shown = truncated(&text, MAX_TEXT_BYTES);
    let text = if shown.len() < text.len() {
        answer::cut(part, &job.job_id, shown.len(), text.len()) + shown
    } else {
        shown.to_owned()
    };
    Ok(ResourceContents::text(text, uri).with_mime_type(media_type))
}

/// An agent that waits for a job.
struct Waiting<'a> {
    backend: &'a dyn JobBackend,
    job_id: &'a str,
    context: &'a RequestContext<RoleServer>,
    /// Whether cancelling the call cancels the job.
    cancels: bool,
}

impl Waiting<'_> {
    /// Returns the job when it has ended, or after `wait`.
    async fn until_end(&self, wait: Duration) -> Result<JobView, JobBackendError> {
        if !wait.is_zero() {
            let waited = tokio::select! {
                biased;
                () = self.context.ct.cancelled() => return self.cancelled().await,
                waited = tokio::time::timeout(wait, self.follow()) => waited,
            };
            // A job that continues after this time is reported as running.
            waited.unwrap_or(Ok(()))?;
        }
        self.backend.job(self.job_id).await
    }

    /// Passes events to the agent until the last one.
    async fn follow(&self) -> Result<(), JobBackendError> {
        let mut news = self.backend.watch(self.job_id).await?;
        let mut progress = Progress::of(self.context);
        loop {
            tokio::select! {
                event = news.next() => match event {
                    Some(event) if event.state.is_end() => return Ok(()),
                    Some(event) => progress.tell(&event).await,
                    None => return Ok(()),
                },
                () = tokio::time::sleep(PROGRESS_AT_LEAST) => progress.again().await,
            }
        }
    }

    /// Handles the cancellation of the call.
    async fn cancelled(&self) -> Result<JobView, JobBackendError> {
        if self.cancels
            && let Err(error) = self.backend.cancel(self.job_id).await
        {
            tracing::warn!(
                job = self.job_id,
                code = error.code,
                "the job of a cancelled call continues"
            );
        }
        self.backend.job(self.job_id).await
    }
}

/// Progress messages of one call. They are sent to clients that requested them.
struct Progress<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    began: Instant,
    told: Option<(Instant, String)>,
    /// Previous progress number. The next number must be greater.
    last: f64,
}

impl<'a> Progress<'a> {
    fn of(context: &'a RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self { context, token, began: Instant::now(), told: None, last: 0.0 }
    }

    /// Sends a message about an event, unless one for the same stage was sent just before.
    async fn tell(&mut self, event: &JobEvent) {
        let message = news::in_words(event);
        let stage = event.stage.in_words();
        if let Some((at, told)) = &self.told
            && told.starts_with(stage)
            && at.elapsed() < PROGRESS_PAUSE
        {
            return;
        }
        self.send(message).await;
    }

    /// Sends the previous message once more.
    async fn again(&mut self) {
        let message = self.told.take().map_or_else(|| "waiting".to_owned(), |(_, message)| message);
        self.send(message).await;
    }

    /// Sends a message. The progress number is the number of seconds since the call began. The
    /// total is unknown.
    async fn send(&mut self, message: String) {
        let Some(token) = &self.token else { return };
        let seconds = self.began.elapsed().as_secs_f64();
        self.last = if seconds > self.last { seconds } else { self.last + 1e-6 };
        let progress =
            ProgressNotificationParam::new(token.clone(), self.last).with_message(&message);
        // Other code detects when the client has disconnected.
        let _ = self.context.peer.notify_progress(progress).await;
        self.told = Some((Instant::now(), message));
    }
}

/// Returns the result of a rejected call.
pub(crate) fn refused(refusal: &JobBackendError) -> CallToolResult {
    result(&Outcome::refused(refusal), None)
}
