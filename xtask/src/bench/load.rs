//! Measures the service while many clients send requests: [`run`].

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use crate::http::Client;

/// Maximum time that a client waits before it retries. The limit ensures that clients notice the
/// end of the run.
const RETRY_LIMIT: Duration = Duration::from_secs(2);

/// Results of all clients together.
#[derive(Default)]
pub struct Load {
    /// Number of answers by HTTP status; status 0 means no answer.
    pub by_status: BTreeMap<u16, u64>,
    /// Number of evaluations that ended with a report of success.
    pub completed: u64,
    /// Round-trip times of these evaluations, milliseconds.
    pub latency_ms: Vec<f64>,
    /// Total time for which a device had work according to these reports, milliseconds.
    pub device_busy_ms: f64,
    /// Time from the first request to the last answer.
    pub elapsed: Duration,
}

impl Load {
    /// Returns the number of requests that ended neither in a successful report nor with status
    /// 429. Requests without an answer (status 0) count.
    pub fn errors(&self) -> u64 {
        let answers = |status: &u16| self.by_status.get(status).copied().unwrap_or(0);
        let all: u64 = self.by_status.values().sum();
        all - answers(&429) - self.completed
    }

    /// Returns the number of answers for each status, such as `200: 5000, 429: 3`.
    pub fn statuses(&self) -> String {
        let parts: Vec<String> =
            self.by_status.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        parts.join(", ")
    }

    fn add(&mut self, other: Load) {
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
        self.completed += other.completed;
        self.latency_ms.extend(other.latency_ms);
        self.device_busy_ms += other.device_busy_ms;
    }
}

/// Sends `body` repeatedly, from `clients` parallel clients, for `duration`.
pub fn run(url: &str, body: &Value, clients: usize, duration: Duration) -> Result<Load> {
    let bytes = serde_json::to_vec(body)?;
    let start = Instant::now();
    let mut total = thread::scope(|scope| {
        let handles: Vec<_> = (0..clients)
            .map(|_| scope.spawn(|| one_client(url, &bytes, start, duration)))
            .collect();
        let mut total = Load::default();
        for handle in handles {
            match handle.join() {
                Ok(load) => total.add(load),
                Err(_) => *total.by_status.entry(0).or_default() += 1,
            }
        }
        total
    });
    total.elapsed = start.elapsed();
    Ok(total)
}

fn one_client(url: &str, body: &[u8], start: Instant, duration: Duration) -> Load {
    // Each client uses a separate connection.
    let client = Client::new(url);
    let mut load = Load::default();
    while start.elapsed() < duration {
        let Ok(answer) = client.post("/evaluate", "application/json", body) else {
            *load.by_status.entry(0).or_default() += 1;
            continue;
        };
        *load.by_status.entry(answer.status).or_default() += 1;
        if answer.status == 429 {
            let wait = Duration::from_secs(answer.retry_after.unwrap_or(1));
            thread::sleep(wait.min(RETRY_LIMIT));
        } else if answer.status == 200 && answer.body["status"] == "success" {
            load.completed += 1;
            load.latency_ms.push(answer.elapsed.as_secs_f64() * 1e3);
            load.device_busy_ms += answer.body["timings"]["device_busy"].as_f64().unwrap_or(0.0);
        }
    }
    load
}
