//! Delivers due webhooks while the service runs. The main type is [`WebhookDelivery`].

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;

use super::message::WebhookMessage;
use super::policy::WebhookPolicy;
use super::post::{Failed, post};
use super::schedule::delay;
use warpgauge_store::{Delivery, DeliveryOutcome, Store, StoreError, Visibility};
use warpgauge_telemetry::telemetry;

/// Maximum number of concurrent attempts. Each attempt blocks a thread for at most ten seconds.
const AT_ONCE: usize = 4;

/// Maximum time between two polls of the store. Webhooks that another process stores do not wake
/// this task.
const LONGEST: Duration = Duration::from_secs(30);

/// Pause after an error of the store, or while another process takes the webhooks that are due.
const PAUSE: Duration = Duration::from_secs(1);

/// The task that delivers webhooks. Dropping it stops the task. Webhooks that were not delivered
/// are due at the next start.
pub struct WebhookDelivery {
    _task: JoinSet<()>,
}

impl WebhookDelivery {
    /// Starts the task. It must be called inside an async runtime.
    pub fn start(store: Store, policy: WebhookPolicy) -> Self {
        let mut task = JoinSet::new();
        task.spawn(run(store, Arc::new(policy), LONGEST));
        Self { _task: task }
    }
}

async fn run(store: Store, policy: Arc<WebhookPolicy>, longest: Duration) {
    let mut attempts = JoinSet::new();
    loop {
        let pause = match due(&store, AT_ONCE - attempts.len(), longest).await {
            Ok((found, pause)) => {
                for delivery in found {
                    attempts.spawn(attempt(store.clone(), Arc::clone(&policy), delivery));
                }
                pause
            }
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "cannot read the webhooks that are due");
                PAUSE
            }
        };
        // If all attempts are in progress, the next poll follows the end of one of them.
        let free = attempts.len() < AT_ONCE;
        tokio::select! {
            Some(ended) = attempts.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "an attempt to deliver a webhook panicked");
                }
            }
            () = store.deliveries().wait(), if free => {}
            () = tokio::time::sleep(pause), if free => {}
        }
    }
}

/// Takes at most `free` due webhooks. Also returns the time until the next poll, unless the task is
/// woken earlier.
async fn due(
    store: &Store,
    free: usize,
    longest: Duration,
) -> Result<(Vec<Delivery>, Duration), StoreError> {
    // A read is cheaper than a write, and often no webhook is due.
    let next = store.deliveries().next_due().await?.map_or(longest, |next| next.min(longest));
    if !next.is_zero() {
        return Ok((Vec::new(), next));
    }
    let found = store.deliveries().take_due(free).await?;
    // More webhooks than those taken may be due.
    let pause = if found.is_empty() { PAUSE } else { Duration::ZERO };
    Ok((found, pause))
}

async fn attempt(store: Store, policy: Arc<WebhookPolicy>, delivery: Delivery) {
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
    let (counted, settled) = match (&outcome, retry) {
        (Ok(()), _) => (warpgauge_telemetry::DeliveryResult::Delivered, DeliveryOutcome::Delivered),
        (Err(reason), Some(wait)) => {
            let at = SystemTime::now() + wait;
            (
                warpgauge_telemetry::DeliveryResult::Retried,
                DeliveryOutcome::RetryAt(at, reason.to_string()),
            )
        }
        (Err(reason), None) => (
            warpgauge_telemetry::DeliveryResult::GivenUp,
            DeliveryOutcome::GivenUp(reason.to_string()),
        ),
    };
    telemetry().delivered(counted);
    settle(store.deliveries().settle(job, settled).await);
    // The log message is written after the result is stored.
    match (outcome, retry) {
        (Err(reason), Some(wait)) => {
            tracing::info!(%job, attempt, %reason, ?wait, "a webhook is retried");
        }
        (Err(reason), None) => {
            tracing::warn!(%job, attempt, %reason, "a webhook was not delivered")
        }
        (Ok(()), _) => {}
    }
}

async fn send(
    store: &Store,
    policy: &Arc<WebhookPolicy>,
    delivery: &Delivery,
) -> Result<(), Failed> {
    let found = store.jobs().find(&delivery.job, Visibility::All).await;
    let row = found.map_err(|error| Failed::Internal(error.to_string()))?.ok_or(Failed::NoJob)?;
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ended = seconds(row.ended_at.unwrap_or(SystemTime::UNIX_EPOCH)).as_secs_f64();
    let message = WebhookMessage::ended(&row.id, row.state, ended, policy.public_url());
    let body = serde_json::to_vec(&message).map_err(|error| Failed::Internal(error.to_string()))?;
    let (policy, url) = (Arc::clone(policy), delivery.url.clone());
    let now = seconds(SystemTime::now()).as_secs();
    let posting = tokio::task::spawn_blocking(move || post(&url, policy.secret(), now, &body));
    posting.await.unwrap_or_else(|error| Err(Failed::Internal(error.to_string())))
}

/// Logs an error of the store. A webhook whose result was not written is due again after a minute,
/// and may be delivered twice.
fn settle(outcome: Result<(), StoreError>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the outcome of a webhook cannot be written");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use warpgauge_config::{Config, DEFAULT_TOML};
    use warpgauge_store::{JobEnding, JobKind, JobState, NewJob, StoreConfig};

    /// Starts a receiver that accepts messages one by one and returns the content of each.
    fn receiver() -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (sender, came) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut text = Vec::new();
                let mut part = [0; 4096];
                while !text.ends_with(b"}}") {
                    let read = stream.read(&mut part).unwrap();
                    assert!(read > 0, "the whole message");
                    text.extend_from_slice(&part[..read]);
                }
                stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
                if sender.send(String::from_utf8(text).unwrap()).is_err() {
                    return;
                }
            }
        });
        (url, came)
    }

    async fn run_job(store: &Store, webhook: Option<&str>) -> String {
        let mut job = NewJob::new("a", JobKind::Evaluate, b"{}".to_vec());
        job.webhook = webhook.map(str::to_owned);
        let (submitted, lease) = store.queue().submit_leased(job).await.unwrap();
        let ending =
            JobEnding { state: JobState::Failed, report: None, error: None, points: Vec::new() };
        store.queue().finish(lease.unwrap(), ending).await.unwrap();
        submitted.id
    }

    fn policy() -> Arc<WebhookPolicy> {
        let mut config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        config.server.webhook_hosts = vec!["127.0.0.1:*".to_owned()];
        config.server.webhook_secret = "0123456789abcdef".to_owned();
        Arc::new(WebhookPolicy::new(&config.server.webhook_hosts, &config.server.webhook_secret))
    }

    /// A poll interval that the test never reaches: without being woken, this task would look again
    /// after a day.
    const DAY: Duration = Duration::from_secs(86_400);

    const ROUNDS: u64 = 3;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_idle_delivery_asks_nothing_and_the_end_of_a_job_wakes_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&StoreConfig::new(directory.path())).await.unwrap();
        let (url, mut came) = receiver();
        let mut task = JoinSet::new();
        task.spawn(run(store.clone(), policy(), DAY));
        while store.deliveries().looks() == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..ROUNDS {
            for _ in 0..30 {
                run_job(&store, None).await;
            }
            let id = run_job(&store, Some(&url)).await;
            assert!(came.recv().await.unwrap().contains(&id));
        }
        // One look comes at the start. Each job adds up to three: the wake-up, after its
        // deliveries, and after the attempt.
        let looks = store.deliveries().looks();
        assert!(looks <= 1 + 3 * ROUNDS, "{looks} looks");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_others_entered_is_looked_for_now_and_then() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&StoreConfig::new(directory.path())).await.unwrap();
        let idle = due(&store, AT_ONCE, LONGEST).await.unwrap();
        assert_eq!(idle, (Vec::new(), LONGEST));
        let id = run_job(&store, Some("http://127.0.0.1:9/")).await;
        let (found, pause) = due(&store, AT_ONCE, LONGEST).await.unwrap();
        assert_eq!((found[0].job.as_str(), pause), (id.as_str(), Duration::ZERO));
        // Another process has the webhook; if that process dies, the webhook is due again.
        assert_eq!(due(&store, AT_ONCE, LONGEST).await.unwrap(), (Vec::new(), LONGEST));
        let soon = SystemTime::now() + Duration::from_secs(5);
        let again = DeliveryOutcome::RetryAt(soon, "busy".to_owned());
        store.deliveries().settle(&id, again).await.unwrap();
        let (none, pause) = due(&store, AT_ONCE, LONGEST).await.unwrap();
        assert!(none.is_empty() && pause <= Duration::from_secs(5) && !pause.is_zero());
    }
}
