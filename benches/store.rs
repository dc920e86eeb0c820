//! `cargo xtask bench store`: what accepting, claiming and listing cost, on SQLite and on PostgreSQL.
//!
//! Prints two Markdown tables. In the first, 64 clients submit without a pause, each its next job as soon
//! as the one before was accepted; then 100,000 jobs of 10 owners wait, and are claimed and listed. In the
//! second, 64 clients submit a job every 20 ms each, whether or not the one before was accepted.
//!
//! Clients stand for machines elsewhere: their jobs are made before the clock starts.

use std::time::{Duration, Instant};

use warpgauge::store::{
    Durability, Ending, JobFilter, JobKind, JobState, NewJob, NewReport, Page, Store, StoreConfig,
};

#[path = "../tests/support/postgres.rs"]
mod postgres;

const CLIENTS: usize = 64;
const PER_CLIENT: usize = 300;
const PAUSE: Duration = Duration::from_millis(20);
const QUEUED: usize = 100_000;
const SAMPLES: usize = 500;

#[tokio::main]
async fn main() {
    println!(
        "| database | survives | accept p50 ms | p99 | per s | claim p50 ms | p99 | finish p50 ms | \
         page p50 ms | p99 | RSS MiB before | after |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut paced = Vec::new();
    for durability in [Durability::Process, Durability::Power] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = StoreConfig { durability, ..StoreConfig::new(directory.path()) };
        paced.push(row("SQLite", &config).await);
    }
    for durability in [Durability::Process, Durability::Power] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = postgres::Server::start(directory.path());
        let data_dir = directory.path().join("warpgauge");
        let config = StoreConfig { durability, url: server.url(), ..StoreConfig::new(data_dir) };
        paced.push(row("PostgreSQL", &config).await);
    }
    println!("\n| database | survives | paced accept p50 ms | p99 | per s |");
    println!("| --- | --- | --- | --- | --- |");
    paced.iter().for_each(|row| println!("{row}"));
}

/// Prints a row of the first table; the row of the second.
async fn row(name: &str, config: &StoreConfig) -> String {
    let survives = match config.durability {
        Durability::Process => "processes",
        Durability::Power => "power",
    };
    let store = Store::open(config).await.expect("the store opens");
    let jobs = jobs();
    let started = Instant::now();
    let times = accept_paced(&store, jobs).await;
    let per_second = times.len() as f64 / started.elapsed().as_secs_f64();
    let (p50, p99) = (quantile(&times, 0.5), quantile(&times, 0.99));
    let paced = format!("| {name} | {survives} | {p50:.2} | {p99:.2} | {per_second:.0} |");
    let jobs = self::jobs();
    let started = Instant::now();
    let accepted = accept(&store, jobs).await;
    let per_second = accepted.len() as f64 / started.elapsed().as_secs_f64();
    let before = rss();
    fill(&store).await;
    let after = rss();
    let (claimed, finished) = claim(&store).await;
    let listed = list(&store).await;
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
    paced
}

/// A request of some 4 kB, as a contract with its source is.
fn job(owner: usize) -> NewJob {
    let noise: String = (0..50).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    let request = format!("{{\"source_code\":\"{noise}{noise}\"}}").into_bytes();
    NewJob::new(&format!("owner-{owner}"), JobKind::Evaluate, request)
}

/// What each client will submit.
fn jobs() -> Vec<Vec<NewJob>> {
    (0..CLIENTS).map(|client| (0..PER_CLIENT).map(|_| job(client % 10)).collect()).collect()
}

/// Each client submits its next job as soon as the one before was accepted.
async fn accept(store: &Store, jobs: Vec<Vec<NewJob>>) -> Vec<f64> {
    let mut clients = tokio::task::JoinSet::new();
    for jobs in jobs {
        let store = store.clone();
        clients.spawn(async move {
            let mut times = Vec::with_capacity(jobs.len());
            for job in jobs {
                let start = Instant::now();
                store.submit(job).await.expect("accepted");
                times.push(milliseconds(start));
            }
            times
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

/// Each client submits a job every [`PAUSE`], however long the one before takes.
async fn accept_paced(store: &Store, jobs: Vec<Vec<NewJob>>) -> Vec<f64> {
    let mut clients = tokio::task::JoinSet::new();
    let begin = tokio::time::Instant::now();
    for (client, jobs) in jobs.into_iter().enumerate() {
        let store = store.clone();
        // Spread over the pause, as clients that know nothing of each other are.
        let first = begin + PAUSE.mul_f64(client as f64 / CLIENTS as f64);
        clients.spawn(async move {
            let mut ticks = tokio::time::interval_at(first, PAUSE);
            let mut submits = tokio::task::JoinSet::new();
            for job in jobs {
                ticks.tick().await;
                let start = Instant::now();
                let store = store.clone();
                submits.spawn(async move {
                    store.submit(job).await.expect("accepted");
                    milliseconds(start)
                });
            }
            submits.join_all().await
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
