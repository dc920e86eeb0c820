//! `cargo xtask bench store`: what accepting, claiming and listing cost, on SQLite and on PostgreSQL.
//!
//! Prints one Markdown table. 64 clients submit at once, each its next job as soon as the one before was
//! accepted; then 100,000 jobs of 10 owners wait, and are claimed and listed.

use std::time::{Duration, Instant};

use warpgauge::store::{
    Durability, Ending, JobFilter, JobKind, JobState, NewJob, NewReport, Page, Store, StoreConfig,
};

#[path = "../tests/support/postgres.rs"]
mod postgres;

const CLIENTS: usize = 64;
const PER_CLIENT: usize = 100;
const QUEUED: usize = 100_000;
const SAMPLES: usize = 500;

#[tokio::main]
async fn main() {
    println!(
        "| database | survives | accept p50 ms | p99 | per s | claim p50 ms | p99 | finish p50 ms | \
         page p50 ms | p99 | RSS MiB before | after |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for durability in [Durability::Process, Durability::Power] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = StoreConfig { durability, ..StoreConfig::new(directory.path()) };
        row("SQLite", &config).await;
    }
    for durability in [Durability::Process, Durability::Power] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = postgres::Server::start(directory.path());
        let data_dir = directory.path().join("warpgauge");
        let config = StoreConfig { durability, url: server.url(), ..StoreConfig::new(data_dir) };
        row("PostgreSQL", &config).await;
    }
}

async fn row(name: &str, config: &StoreConfig) {
    let store = Store::open(config).await.expect("the store opens");
    let started = Instant::now();
    let accepted = accept(&store).await;
    let per_second = (CLIENTS * PER_CLIENT) as f64 / started.elapsed().as_secs_f64();
    let before = rss();
    fill(&store).await;
    let after = rss();
    let (claimed, finished) = claim(&store).await;
    let listed = list(&store).await;
    let survives = match config.durability {
        Durability::Process => "processes",
        Durability::Power => "power",
    };
    println!(
        "| {name} | {survives} | {:.2} | {:.2} | {per_second:.0} | {:.2} | {:.2} | {:.2} | {:.2} | \
         {:.2} | {before} | {after} |",
        quantile(&accepted, 0.5),
        quantile(&accepted, 0.99),
        quantile(&claimed, 0.5),
        quantile(&claimed, 0.99),
        quantile(&finished, 0.5),
        quantile(&listed, 0.5),
        quantile(&listed, 0.99),
    );
    store.close().await;
}

/// A request of some 4 kB, as a contract with its source is.
fn job(owner: usize) -> NewJob {
    let noise: String = (0..50).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    let request = format!("{{\"source_code\":\"{noise}{noise}\"}}").into_bytes();
    NewJob::new(&format!("owner-{owner}"), JobKind::Evaluate, request)
}

async fn accept(store: &Store) -> Vec<f64> {
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let store = store.clone();
        clients.spawn(async move {
            let mut times = Vec::with_capacity(PER_CLIENT);
            for _ in 0..PER_CLIENT {
                let job = job(client % 10);
                let start = Instant::now();
                store.submit(job).await.expect("accepted");
                times.push(milliseconds(start));
            }
            times
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

async fn fill(store: &Store) {
    for chunk in 0..QUEUED / 500 {
        let jobs = (0..500).map(|index| job((chunk + index) % 10)).collect();
        store.submit_all(jobs).await.expect("accepted");
    }
}

async fn claim(store: &Store) -> (Vec<f64>, Vec<f64>) {
    let (mut claimed, mut finished) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let start = Instant::now();
        let job = store.claim().await.expect("claims").expect("a job waits");
        claimed.push(milliseconds(start));
        store.advance_behind(&job.lease, JobState::Compiling).expect("it may compile");
        let body = vec![b'7'; 4_000];
        let report = NewReport { version: 1, kind: "evaluate".to_owned(), body };
        let ending = Ending {
            state: JobState::Completed,
            report: Some(report),
            error: None,
            points: Vec::new(),
        };
        let start = Instant::now();
        store.finish(job.lease, ending).await.expect("it ends");
        finished.push(milliseconds(start));
    }
    (claimed, finished)
}

/// Pages from the beginning, the middle and the end, of all, of one owner, of one state.
async fn list(store: &Store) -> Vec<f64> {
    let filters = [
        JobFilter::default(),
        JobFilter { owner: Some("owner-3"), ..JobFilter::default() },
        JobFilter { states: vec![JobState::Completed], ..JobFilter::default() },
        JobFilter {
            owner: Some("owner-3"),
            states: vec![JobState::Completed, JobState::Failed],
            ..JobFilter::default()
        },
        JobFilter { kind: Some(JobKind::Gate), ..JobFilter::default() },
    ];
    let mut times = Vec::new();
    for filter in &filters {
        let mut page = Page::default();
        for _ in 0..SAMPLES / filters.len() {
            let start = Instant::now();
            let got = store.list(filter, &page).await.expect("a page");
            times.push(milliseconds(start));
            page.after = got.next;
        }
    }
    times
}

fn milliseconds(start: Instant) -> f64 {
    Duration::as_secs_f64(&start.elapsed()) * 1e3
}

fn quantile(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((sorted.len() - 1) as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Memory of this process, MiB.
fn rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}
