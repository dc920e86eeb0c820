//! A server that acts as the backend for an agent: [`ServerDesk`].

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;

use crate::cli::place::patience;
use crate::cli::terminal::Terminal;
use warpgauge_client::{Client, ClientError, SubmitOptions};
use warpgauge_job_views::{JobEvent, JobView};
use warpgauge_mcp::{ArtifactBytes, JobBackend, JobBackendError, JobBackendFuture, JobOrder};
use warpgauge_model::ErrorCode;
use warpgauge_service::{ArtifactKind, DeviceView, JobRequest};

/// Maximum number of events that wait to be sent to the agent.
const NEWS: usize = 16;

/// Sends each request of an agent to a server. The client blocks, so each request runs on a
/// separate thread.
pub(super) struct ServerDesk {
    client: Client,
    patience_s: f64,
    terminal: Terminal,
}

impl ServerDesk {
    pub(super) fn new(client: Client, patience_s: f64, terminal: Terminal) -> Self {
        Self { client, patience_s, terminal }
    }

    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Client) -> Result<T, ClientError> + Send + 'static,
    ) -> JobBackendFuture<'_, T> {
        let client = self.client.clone();
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || work(&client)).await;
            let broken =
                |_| JobBackendError::new(ErrorCode::Internal, "the request to the server panicked");
            asked.map_err(broken)?.map_err(refusal)
        })
    }
}

impl JobBackend for ServerDesk {
    fn page_of(&self, job_id: &str) -> Option<String> {
        Some(self.client.page_of(job_id))
    }

    fn submit(&self, order: JobOrder) -> JobBackendFuture<'_, String> {
        self.ask(move |client| {
            let JobOrder { request, label, idempotency_key } = order;
            let (label, idempotency_key) = (label.as_deref(), idempotency_key.as_deref());
            let taken = SubmitOptions { label, idempotency_key };
            match request {
                JobRequest::Compare(request) => {
                    client.unattended().submit_comparison(&request, &taken)
                }
                JobRequest::Evaluate(request) => {
                    client.unattended().submit_evaluation(&request, &taken)
                }
                other => {
                    let what = format!("agents cannot submit jobs of kind {:?}", other.kind());
                    Err(ClientError::Internal(what))
                }
            }
        })
    }

    fn watch<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, BoxStream<'static, JobEvent>> {
        let (client, job_id) = (self.client.clone(), job_id.to_owned());
        let mut patience = patience(self.patience_s, self.terminal);
        Box::pin(async move {
            let (sender, news) = mpsc::channel(NEWS);
            // The thread ends when the job ends, or after the receiver of its events is dropped.
            tokio::task::spawn_blocking(move || {
                let followed =
                    client.jobs().follow(&job_id, None, &mut patience, &mut |event, _| {
                        sender.blocking_send(event.clone()).map_err(|_| ClientError::Interrupted)
                    });
                if let Err(error) = followed
                    && !matches!(error, ClientError::Interrupted)
                {
                    tracing::warn!(job = job_id, %error, "events of a job are lost");
                }
            });
            let next = |mut news: mpsc::Receiver<JobEvent>| async {
                let event = news.recv().await?;
                Some((event, news))
            };
            Ok(stream::unfold(news, next).boxed())
        })
    }

    fn job<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, JobView> {
        let job_id = job_id.to_owned();
        self.ask(move |client| Ok(client.jobs().get(&job_id)?.value))
    }

    fn cancel<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, ()> {
        let job_id = job_id.to_owned();
        self.ask(move |client| client.jobs().cancel(&job_id).map(drop))
    }

    fn devices(&self) -> JobBackendFuture<'_, Vec<DeviceView>> {
        self.ask(|client| client.devices())
    }

    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
    ) -> JobBackendFuture<'a, ArtifactBytes> {
        let (job_id, kernel) = (job_id.to_owned(), kernel.map(str::to_owned));
        self.ask(move |client| {
            let bytes = client.jobs().artifact(&job_id, kind.name(), kernel.as_deref())?;
            Ok(ArtifactBytes { bytes })
        })
    }
}

/// Converts an error of the client. The HTTP status determines its code. The message contains the
/// code that the server returned.
fn refusal(error: ClientError) -> JobBackendError {
    let code = match &error {
        ClientError::Refused { status, .. } => match status {
            400 | 413 | 415 => ErrorCode::InvalidContract,
            401 => ErrorCode::Unauthorized,
            403 => ErrorCode::Forbidden,
            404 => ErrorCode::NotFound,
            409 => ErrorCode::IdempotencyConflict,
            410 => ErrorCode::ArtifactGone,
            429 => ErrorCode::QueueFull,
            500 => ErrorCode::Internal,
            _ => ErrorCode::Unavailable,
        },
        ClientError::Internal(_) => ErrorCode::Internal,
        _ => ErrorCode::Unavailable,
    };
    JobBackendError::new(code, error.to_string())
}
