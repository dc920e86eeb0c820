//! Delivers what is due, for as long as the service runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;

use super::message::Message;
use super::policy::Policy;
use super::post::{Failed, post};
use super::schedule::delay;
use crate::store::{DueWebhook, Store, StoreError};
use crate::telemetry::{Delivery, telemetry};

/// Attempts under way at once; each blocks a thread for at most ten seconds.
const AT_ONCE: usize = 4;

/// For how long a message is nobody else's once an attempt has begun: longer than it can take.
const HOLD: Duration = Duration::from_secs(30);

/// How often to look where nothing is due.
const POLL: Duration = Duration::from_millis(500);

/// The task that delivers. Dropping it stops that; what is not delivered is due at the next start.
pub struct Courier {
    _task: JoinSet<()>,
}

impl Courier {
    /// Starts to deliver. Must run inside a runtime.
    pub fn start(store: Store, policy: Policy) -> Self {
        let mut task = JoinSet::new();
        task.spawn(run(store, Arc::new(policy)));
        Self { _task: task }
    }
}

async fn run(store: Store, policy: Arc<Policy>) {
    let mut attempts = JoinSet::new();
    loop {
        let free = AT_ONCE - attempts.len();
        match due(&store, free).await {
            Ok(found) => {
                for webhook in found {
                    attempts.spawn(attempt(store.clone(), Arc::clone(&policy), webhook));
                }
            }
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "cannot look for webhooks"),
        }
        // Where all are busy the next look is after one of them.
        tokio::select! {
            Some(ended) = attempts.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "an attempt to deliver a webhook panicked");
                }
            }
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

async fn due(store: &Store, free: usize) -> Result<Vec<DueWebhook>, StoreError> {
    // Looking costs less than writing, and nearly always there is nothing.
    match store.next_webhook().await? {
        Some(Duration::ZERO) if free > 0 => store.claim_webhooks(free, HOLD).await,
        _ => Ok(Vec::new()),
    }
}

async fn attempt(store: Store, policy: Arc<Policy>, webhook: DueWebhook) {
    let DueWebhook { job_id, url, attempt, .. } = &webhook;
    let outcome = match policy.check(url) {
        Ok(()) => send(&policy, &webhook).await,
        // The operator has changed the rules since the job was accepted.
        Err(refused) => {
            tracing::warn!(job = %job_id, %refused, "a webhook is given up");
            telemetry().delivered(Delivery::GivenUp);
            return settle(store.webhook_done(job_id).await);
        }
    };
    let settled = match (outcome, delay(job_id, *attempt)) {
        (Ok(()), _) => {
            telemetry().delivered(Delivery::Delivered);
            store.webhook_done(job_id).await
        }
        (Err(reason), Some(wait)) => {
            tracing::info!(job = %job_id, attempt, %reason, ?wait, "a webhook is tried again");
            telemetry().delivered(Delivery::Retried);
            store.webhook_failed(job_id, wait).await
        }
        (Err(reason), None) => {
            tracing::warn!(job = %job_id, attempt, %reason, "a webhook is given up");
            telemetry().delivered(Delivery::GivenUp);
            store.webhook_done(job_id).await
        }
    };
    settle(settled);
}

async fn send(policy: &Arc<Policy>, webhook: &DueWebhook) -> Result<(), Failed> {
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ended = seconds(webhook.ended_at).as_secs_f64();
    let message = Message::ended(&webhook.job_id, webhook.state, ended);
    let body = serde_json::to_vec(&message).map_err(|error| Failed::Internal(error.to_string()))?;
    let (policy, url) = (Arc::clone(policy), webhook.url.clone());
    let now = seconds(SystemTime::now()).as_secs();
    let posting = tokio::task::spawn_blocking(move || post(&url, policy.secret(), now, &body));
    posting.await.unwrap_or_else(|error| Err(Failed::Internal(error.to_string())))
}

/// What cannot be written down is due again after [`HOLD`], and delivered once more.
fn settle(outcome: Result<(), StoreError>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "what came of a webhook cannot be written down");
    }
}
