//! Delivers what is due, for as long as the service runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;

use super::message::Message;
use super::policy::Policy;
use super::post::{Failed, post};
use super::schedule::delay;
use crate::store::{Delivery, DeliveryOutcome, Store, StoreError, Visibility};
use crate::telemetry::{self, telemetry};

/// Attempts under way at once; each blocks a thread for at most ten seconds.
const AT_ONCE: usize = 4;

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
                for delivery in found {
                    attempts.spawn(attempt(store.clone(), Arc::clone(&policy), delivery));
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

async fn due(store: &Store, free: usize) -> Result<Vec<Delivery>, StoreError> {
    // Looking costs less than writing, and nearly always there is nothing.
    match store.next_delivery().await? {
        Some(Duration::ZERO) if free > 0 => store.due_deliveries(free).await,
        _ => Ok(Vec::new()),
    }
}

async fn attempt(store: Store, policy: Arc<Policy>, delivery: Delivery) {
    let Delivery { job, url, attempt } = &delivery;
    let outcome = match policy.check(url) {
        Ok(()) => send(&store, &policy, &delivery).await,
        // The operator has changed the rules since the job was accepted.
        Err(refused) => Err(Failed::Refused(refused)),
    };
    let retry = match &outcome {
        Err(failed) if failed.may_pass() => delay(job, *attempt),
        _ => None,
    };
    let (counted, settled) = match (outcome, retry) {
        (Ok(()), _) => (telemetry::Delivery::Delivered, DeliveryOutcome::Delivered),
        (Err(reason), Some(wait)) => {
            tracing::info!(%job, attempt, %reason, ?wait, "a webhook is tried again");
            let at = SystemTime::now() + wait;
            (telemetry::Delivery::Retried, DeliveryOutcome::RetryAt(at, reason.to_string()))
        }
        (Err(reason), None) => {
            tracing::warn!(%job, attempt, %reason, "a webhook is given up");
            (telemetry::Delivery::GivenUp, DeliveryOutcome::GivenUp(reason.to_string()))
        }
    };
    telemetry().delivered(counted);
    settle(store.settle_delivery(job, settled).await);
}

async fn send(store: &Store, policy: &Arc<Policy>, delivery: &Delivery) -> Result<(), Failed> {
    let found = store.job(&delivery.job, Visibility::All).await;
    let row = found.map_err(|error| Failed::Internal(error.to_string()))?.ok_or(Failed::NoJob)?;
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ended = seconds(row.ended_at.unwrap_or(SystemTime::UNIX_EPOCH)).as_secs_f64();
    let message = Message::ended(&row.id, row.state, ended);
    let body = serde_json::to_vec(&message).map_err(|error| Failed::Internal(error.to_string()))?;
    let (policy, url) = (Arc::clone(policy), delivery.url.clone());
    let now = seconds(SystemTime::now()).as_secs();
    let posting = tokio::task::spawn_blocking(move || post(&url, policy.secret(), now, &body));
    posting.await.unwrap_or_else(|error| Err(Failed::Internal(error.to_string())))
}

/// What cannot be written down is due again after a minute, and delivered once more.
fn settle(outcome: Result<(), StoreError>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "what came of a webhook cannot be written down");
    }
}
