//! Shared parts of the store's tests, such as an empty database of either kind.

use std::time::SystemTime;

use super::{
    HistoryRow, JobEnding, JobKind, JobState, NewJob, NewReport, Quotas, RequestReader, Store,
    StoreConfig, StoreError,
};
use server::Server;

#[path = "../../../../tests/support/postgres.rs"]
pub(super) mod server;

/// Runs each named test on SQLite, and on PostgreSQL in the group of tests that needs it.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::testing::sqlite()).await;
            })+
        }

        // The name selects the group of tests that needs PostgreSQL.
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                needs!("PostgreSQL", crate::testing::server::installed());
                super::$name(crate::testing::postgres()).await;
            })+
        }
    };
}
pub(super) use on_both;

/// An empty database that is deleted when this value is dropped.
pub(super) struct Fresh {
    pub(super) config: StoreConfig,
    /// The server must end before its directory is deleted.
    server: Option<Server>,
    directory: tempfile::TempDir,
}

/// Creates a SQLite database in a temporary directory.
pub(super) fn sqlite() -> Fresh {
    let directory = tempfile::tempdir().unwrap();
    let config = StoreConfig::new(directory.path());
    Fresh { server: None, directory, config }
}

/// Starts a PostgreSQL server with an empty database, on a socket in a temporary directory.
///
/// The programs are Debian's, or those on `PATH`.
pub(super) fn postgres() -> Fresh {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let data_dir = directory.path().join("warpgauge");
    let config = StoreConfig { url: server.url(), ..StoreConfig::new(data_dir) };
    Fresh { server: Some(server), directory, config }
}

impl Fresh {
    pub(super) async fn store(&self) -> Store {
        Store::open(&self.config).await.unwrap()
    }

    /// Kills PostgreSQL, as a crash would.
    pub(super) fn stop_server(&mut self) {
        drop(self.server.take());
    }

    /// Starts PostgreSQL again with its data.
    pub(super) fn start_server(&mut self) {
        self.server = Some(Server::start(self.directory.path()));
    }

    pub(super) fn quotas(mut self, max_waiting: u64, max_running: u64) -> Self {
        self.config.quotas = Quotas { max_waiting, max_running };
        self
    }
}

pub(super) fn job(owner: &str) -> NewJob {
    NewJob::new(owner, JobKind::Evaluate, br#"{"kernel":"x"}"#.to_vec())
}

pub(super) fn completed(body: &[u8]) -> JobEnding {
    let report = NewReport {
        version: 1,
        kind: "evaluate".to_owned(),
        verdict: Some("correct"),
        decision: None,
        worst_case: None,
        kernel: Some("vector_add".to_owned()),
        median_ns: Some(7_936),
        body: body.to_vec(),
    };
    JobEnding { state: JobState::Completed, report: Some(report), error: None, points: Vec::new() }
}

/// Lists all files below a directory.
pub(super) fn files(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns the request of a claimed job.
pub(super) fn bytes(mut request: RequestReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut request, &mut bytes).unwrap();
    bytes
}

/// Appends measured values, either all or none.
pub(super) async fn append_points(
    store: &Store,
    points: Vec<HistoryRow>,
) -> Result<(), StoreError> {
    points.iter().try_for_each(super::history::check)?;
    store.parts.access.writer.write(super::history::Append::new(points)).await
}

/// Returns a point of a series that differs only by its case.
pub(super) fn point(case: &str, value: f64) -> HistoryRow {
    HistoryRow {
        owner: "a".to_owned(),
        case: case.to_owned(),
        metric: "median_ms".to_owned(),
        device: "H200".to_owned(),
        method: "events".to_owned(),
        at: SystemTime::now(),
        value,
        low: Some(value - 1.0),
        high: None,
        revision: None,
        job: None,
        detail: Vec::new(),
    }
}
