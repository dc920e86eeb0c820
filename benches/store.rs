//! `cargo xtask bench store`: what accepting, claiming and listing cost, on SQLite and on PostgreSQL.
//!
//! Prints a Markdown table. First 64 clients submit a job every 20 ms each, whether or not the one before
//! was accepted ("paced"); then they submit without a pause, each its next job as soon as the one before
//! was accepted; then 100,000 jobs of 10 owners wait, and are claimed and listed; then as many more, of which
//! a third require nothing, a third what this process offers, and a third what it does not.
//!
//! Clients stand for machines elsewhere: their requests are made before the clock starts. Arguments name
//! the databases, `sqlite` and `postgresql`; without any, both are measured.

use std::time::{Duration, Instant};

use warpgauge_store::{
    Durability, JobEnding, JobFilter, JobKind, JobState, NewJob, NewReport, Page, Store,
    StoreConfig,
};

#[path = "../tests/support/postgres.rs"]
mod postgres;

const CLIENTS: usize = 64;
const OWNERS: usize = 10;
const PER_CLIENT: usize = 300;
/// How often all clients submit as many without a pause.
const ROUNDS: usize = 3;
const PAUSE: Duration = Duration::from_millis(20);
const QUEUED: usize = 100_000;
const SAMPLES: usize = 500;

#[tokio::main]
async fn main() {
    // Cargo says by itself that this is a benchmark.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|name| name != "--bench").collect();
    assert!(
        chosen.iter().all(|name| ["sqlite", "postgresql"].contains(&name.as_str())),
        "the databases are called sqlite and postgresql"
    );
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|one| one == name);
    println!(
        "| database | survives | accept p50 ms | p99 | per s | paced p50 ms | p99 | claim p50 ms | \
         p99 | finish p50 ms | page p50 ms | p99 | claim of some p50 ms | p99 | RSS MiB before | after |"
    );
    println!("{}", "| --- ".repeat(16) + "|");
    for durability in [Durability::Process, Durability::Power].repeat(usize::from(wanted("sqlite")))
    {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = StoreConfig { durability, ..StoreConfig::new(directory.path()) };
        row("SQLite", &config).await;
    }
    for durability in
        [Durability::Process, Durability::Power].repeat(usize::from(wanted("postgresql")))
    {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = postgres::Server::start(directory.path());
        let data_dir = directory.path().join("warpgauge");
        let config = StoreConfig { durability, url: server.url(), ..StoreConfig::new(data_dir) };
        row("PostgreSQL", &config).await;
    }
}

/// Prints a row of the table.
async fn row(name: &str, config: &StoreConfig) {
    let survives = match config.durability {
        Durability::Process => "processes",
        Durability::Power => "power",
    };
    let store = Store::open(config).await.expect("the store opens");
    let paced = accept_paced(&store, requests()).await;
    let (mut accepted, mut seconds) = (Vec::new(), 0.0);
    for _ in 0..ROUNDS {
        let requests = requests();
        let started = Instant::now();
        accepted.extend(accept(&store, requests).await);
        seconds += started.elapsed().as_secs_f64();
    }
    let before = rss();
    fill(&store).await;
    let after = rss();
    let (claimed, finished) = claim(&store).await;
    let listed = list(&store).await;
    fill_for_some(&store).await;
    let (chosen, _) = claim(&store).await;
    store.close().await;
    println!(
        "| {name} | {survives} | {:.2} | {:.2} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | \
         {:.2} | {:.2} | {:.2} | {before} | {after} |",
        quantile(&accepted, 0.5),
        quantile(&accepted, 0.99),
        accepted.len() as f64 / seconds,
        quantile(&paced, 0.5),
        quantile(&paced, 0.99),
        quantile(&claimed, 0.5),
        quantile(&claimed, 0.99),
        quantile(&finished, 0.5),
        quantile(&listed, 0.5),
        quantile(&listed, 0.99),
        quantile(&chosen, 0.5),
        quantile(&chosen, 0.99),
    );
}

/// A request of some 4 kB, as a contract with its source is.
fn request() -> Vec<u8> {
    let noise: String = (0..50).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    format!("{{\"source_code\":\"{noise}{noise}\"}}").into_bytes()
}

/// What each client will ask for.
fn requests() -> Vec<Vec<Vec<u8>>> {
    (0..CLIENTS).map(|_| (0..PER_CLIENT).map(|_| request()).collect()).collect()
}

/// The job that a request becomes as it arrives: it gets its id then.
fn job(owner: usize, request: Vec<u8>) -> NewJob {
    NewJob::new(&format!("owner-{}", owner % OWNERS), JobKind::Evaluate, request)
}

/// Each client submits its next job as soon as the one before was accepted.
async fn accept(store: &Store, requests: Vec<Vec<Vec<u8>>>) -> Vec<f64> {
    let mut clients = tokio::task::JoinSet::new();
    for (client, requests) in requests.into_iter().enumerate() {
        let store = store.clone();
        clients.spawn(async move {
            let mut times = Vec::with_capacity(requests.len());
            for request in requests {
                let start = Instant::now();
                store.queue().submit(job(client, request)).await.expect("accepted");
                times.push(milliseconds(start));
            }
            times
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

/// Each client submits a job every [`PAUSE`], however long the one before takes.
async fn accept_paced(store: &Store, requests: Vec<Vec<Vec<u8>>>) -> Vec<f64> {
    let mut clients = tokio::task::JoinSet::new();
    let begin = tokio::time::Instant::now();
    for (client, requests) in requests.into_iter().enumerate() {
        let store = store.clone();
        // Spread over the pause, as clients that know nothing of each other are.
        let first = begin + PAUSE.mul_f64(client as f64 / CLIENTS as f64);
        clients.spawn(async move {
            let mut ticks = tokio::time::interval_at(first, PAUSE);
            let mut submits = tokio::task::JoinSet::new();
            for request in requests {
                ticks.tick().await;
                let start = Instant::now();
                let store = store.clone();
                submits.spawn(async move {
                    store.queue().submit(job(client, request)).await.expect("accepted");
                    milliseconds(start)
                });
            }
            submits.join_all().await
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

/// Jobs that not every process takes.
async fn fill_for_some(store: &Store) {
    store.membership().offer(String::new(), |requires| requires == "mine").await.expect("offered");
    for chunk in 0..QUEUED / 500 {
        let one = |index: usize| {
            let mut job = job(chunk + index, request());
            job.requires = [None, Some("mine"), Some("another's")][index % 3].map(str::to_owned);
            job
        };
        store.queue().submit_all((0..500).map(one).collect()).await.expect("accepted");
    }
}

async fn fill(store: &Store) {
    for chunk in 0..QUEUED / 500 {
        let jobs = (0..500).map(|index| job(chunk + index, request())).collect();
        store.queue().submit_all(jobs).await.expect("accepted");
    }
}

async fn claim(store: &Store) -> (Vec<f64>, Vec<f64>) {
    let (mut claimed, mut finished) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let start = Instant::now();
        let job = store.queue().claim().await.expect("claims").expect("a job waits");
        claimed.push(milliseconds(start));
        store.queue().advance_behind(&job.lease, JobState::Compiling).expect("it may compile");
        let body = vec![b'7'; 4_000];
        let report = NewReport {
            version: 1,
            kind: "evaluate".to_owned(),
            verdict: Some("correct"),
            kernel: Some("vector_add".to_owned()),
            median_ns: Some(7_936),
            decision: None,
            worst_case: None,
            body,
        };
        let ending = JobEnding {
            state: JobState::Completed,
            report: Some(report),
            error: None,
            points: Vec::new(),
        };
        let start = Instant::now();
        store.queue().finish(job.lease, ending).await.expect("it ends");
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
        JobFilter { verdict: Some("wrong"), ..JobFilter::default() },
        JobFilter { owner: Some("owner-3"), verdict: Some("wrong"), ..JobFilter::default() },
    ];
    let mut times = Vec::new();
    for filter in &filters {
        let mut page = Page::default();
        for _ in 0..SAMPLES / filters.len() {
            let start = Instant::now();
            let got = store.jobs().list(filter, &page).await.expect("a page");
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
