//! Tests of the store under faults: killed processes, full disks, foreign databases.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use futures_util::future::BoxFuture;
use sqlx::{Connection, Executor};

use super::database::{Backend, Database, sqlite_path};
use super::testing::{Fresh, bytes, completed, job, on_both, postgres, sqlite};
use super::writer::{Batch, Write};
use super::*;

/// A statement on the writing connection.
struct Statement(&'static str);

impl Write for Statement {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let done = batch.connection.execute(sqlx::raw_sql(self.0)).await;
            done.map(drop).map_err(batch.failed("prepare a test"))
        })
    }
}

async fn raw(fresh: &Fresh, sql: &'static str) -> Database {
    let config = &fresh.config;
    std::fs::create_dir_all(&config.data_dir).unwrap();
    let database = Database::new(&config.url, &config.data_dir, config.durability).unwrap();
    let mut connection = database.connect().await.unwrap();
    connection.execute(sqlx::raw_sql(sql)).await.unwrap();
    connection.close().await.unwrap();
    database
}

async fn version_one_becomes_the_present_one(fresh: Fresh) {
    let fixture = match fresh.config.url.as_str() {
        "" => include_str!("fixtures/version-1.sqlite.sql"),
        _ => include_str!("fixtures/version-1.postgres.sql"),
    };
    raw(&fresh, fixture).await;
    let store = fresh.store().await;
    let ended = "01996e50-0000-7000-8000-000000000001";
    assert_eq!(store.jobs().report(ended).await.unwrap().unwrap().body, br#"{"v":1}"#);
    let counts = store.jobs().counts(Visibility::Owner("a")).await.unwrap();
    assert_eq!((counts.total(), counts.waiting), (2, 1));
    // The list is sorted by id, and the new job comes before all older ones.
    let younger = store.queue().submit(NewJob { priority: -1, ..job("a") }).await.unwrap().id;
    let listed = store.jobs().list(&JobFilter::default(), &Page::default()).await.unwrap().jobs;
    let listed: Vec<&str> = listed.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(listed, [&younger, "01996e50-0000-7000-8000-000000000002", ended]);
    let claimed = store.queue().claim().await.unwrap().unwrap();
    assert_eq!((claimed.job.priority, claimed.job.label.as_deref()), (5, Some("nightly")));
    assert_eq!(bytes(claimed.request), br#"{"kernel":"x"}"#);
    store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
    store.queue().finish(claimed.lease, completed(b"{}")).await.unwrap();
    assert!(
        store.view().cases(Visibility::All, None, 1).await.unwrap().is_empty(),
        "what came later"
    );
    store.close().await;
    fresh.store().await;
}

async fn a_newer_database_is_refused(fresh: Fresh) {
    let store = fresh.store().await;
    store.queue().submit(job("a")).await.unwrap();
    store.close().await;
    raw(&fresh, "INSERT INTO schema_versions VALUES (99, 'of tomorrow', 0)").await;
    let path = sqlite_path(&fresh.config.data_dir);
    let before = std::fs::read(&path).ok();
    let error = Store::open(&fresh.config).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("left unchanged"), "{error}");
    assert_eq!(std::fs::read(&path).ok(), before);
}

async fn a_foreign_database_is_refused(fresh: Fresh) {
    raw(&fresh, "CREATE TABLE recipes (name TEXT)").await;
    let error = Store::open(&fresh.config).await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    raw(&fresh, "INSERT INTO recipes VALUES ('soup'); DROP TABLE recipes").await;
    // These databases have a table of versions with the same name but another content.
    let others = [
        "CREATE TABLE schema_versions (version TEXT)",
        "CREATE TABLE schema_versions (version BIGINT, name TEXT)",
        "CREATE TABLE schema_versions (version BIGINT, name TEXT); \
         INSERT INTO schema_versions VALUES (1, 'create_users'), (2, 'add_email')",
    ];
    for sql in others {
        raw(&fresh, sql).await;
        let error = Store::open(&fresh.config).await.unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{sql}: {error}");
        raw(&fresh, "DROP TABLE schema_versions").await;
    }
    fresh.store().await;
}

/// A killed process loses no accepted job, and no job ends twice.
async fn kills_lose_nothing(fresh: Fresh) {
    let (mut accepted, mut finished) = (BTreeSet::new(), BTreeSet::new());
    for lines in [1, 2, 7, 20, 45] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", CHILD])
            .env("WARPGAUGE_TEST_DATABASE", &fresh.config.url)
            .env("WARPGAUGE_TEST_DATA", &fresh.config.data_dir)
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut note = |line: &str| {
            // Output of the test harness may precede the child's first line.
            if let Some((_, id)) = line.split_once("accepted ") {
                accepted.insert(id.to_owned());
            } else if let Some((_, id)) = line.split_once("finished ") {
                assert!(finished.insert(id.to_owned()), "{id} ended twice");
            } else {
                return false;
            }
            true
        };
        let mut ours = 0;
        while ours < lines {
            ours += usize::from(note(&said.next().expect("the child goes on until it is killed")));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        said.for_each(|line| {
            note(&line);
        });
    }
    let store = fresh.store().await;
    let mut gone = store.membership().requeue_expired().await.unwrap();
    assert!(gone.exhausted.is_empty() && gone.cancelled.is_empty());
    gone.queued.clear();
    while let Some(claimed) = store.queue().claim().await.unwrap() {
        store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
        assert!(finished.insert(claimed.job.id.clone()), "{} ended twice", claimed.job.id);
        store.queue().finish(claimed.lease, completed(b"{}")).await.unwrap();
    }
    for id in &accepted {
        let row =
            store.jobs().find(id, Visibility::All).await.unwrap().expect("accepted, not lost");
        assert_eq!(row.state, JobState::Completed);
        assert!(store.jobs().report(id).await.unwrap().is_some());
    }
    let counts = store.jobs().counts(Visibility::All).await.unwrap();
    assert_eq!((counts.waiting, counts.running), (0, 0));
    assert_eq!(counts.of(JobState::Completed), counts.total());
}

const CHILD: &str = "faults_tests::child_works_until_it_is_killed";

/// The process that [`kills_lose_nothing`] kills; not a test.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by another test, which kills it"]
async fn child_works_until_it_is_killed() {
    let Ok(url) = std::env::var("WARPGAUGE_TEST_DATABASE") else { return };
    let data = std::env::var("WARPGAUGE_TEST_DATA").unwrap();
    let store = Store::open(&StoreConfig { url, ..StoreConfig::new(data) }).await.unwrap();
    let mut claimers = tokio::task::JoinSet::new();
    for owner in ["a", "b", "c"] {
        let store = store.clone();
        claimers.spawn(async move {
            loop {
                let new = NewJob { max_attempts: 10, ..job(owner) };
                println!("accepted {}", store.queue().submit(new).await.unwrap().id);
                store.membership().requeue_expired().await.unwrap();
                let Some(claimed) = store.queue().claim().await.unwrap() else { continue };
                store.queue().advance_behind(&claimed.lease, JobState::Compiling).unwrap();
                let id = claimed.job.id;
                store.queue().finish(claimed.lease, completed(b"{}")).await.unwrap();
                println!("finished {id}");
            }
        });
    }
    claimers.join_all().await;
}

on_both!(
    version_one_becomes_the_present_one,
    a_newer_database_is_refused,
    a_foreign_database_is_refused,
    kills_lose_nothing,
);

/// The file shrinks after retention has removed rows.
#[tokio::test(flavor = "multi_thread")]
async fn the_file_shrinks_with_what_is_in_it() {
    let fresh = sqlite();
    let store = fresh.store().await;
    let noise = || (0..1_000).flat_map(|_| *uuid::Uuid::new_v4().as_bytes()).collect();
    let jobs = (0..300).map(|_| NewJob::new("a", JobKind::Evaluate, noise())).collect();
    let jobs = store.queue().submit_all(jobs).await.unwrap();
    for job in &jobs {
        store.queue().cancel(&job.id, Visibility::All).await.unwrap();
    }
    store.close().await;
    // The last process to close the database checkpoints its log.
    let size = || std::fs::metadata(sqlite_path(&fresh.config.data_dir)).unwrap().len();
    let full = size();
    assert!(full > 300 * 16_000, "{full}");
    let store = fresh.store().await;
    let policy = Retention { max_jobs: 10, ..Retention::default() };
    let cleaned = store.cleaner().clean_up(&policy).await.unwrap();
    assert_eq!(cleaned.jobs, 290);
    assert!(cleaned.pages > 900, "{cleaned:?}");
    store.close().await;
    let left = size();
    assert!(left < full / 5, "{left} of {full}");
    let counts = fresh.store().await.jobs().counts(Visibility::All).await.unwrap();
    assert_eq!(counts.total(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_accepted() {
    let fresh = sqlite();
    let store = fresh.store().await;
    store.parts.access.writer.write(Statement("PRAGMA max_page_count = 100")).await.unwrap();
    let mut accepted = Vec::new();
    let error = loop {
        // Incompressible bytes make the file grow.
        let request = uuid::Uuid::new_v4().as_bytes().to_vec();
        let noise: Vec<u8> = (0..256).flat_map(|_| *uuid::Uuid::new_v4().as_bytes()).collect();
        let new = NewJob::new("a", JobKind::Evaluate, [request, noise].concat());
        match store.queue().submit(new).await {
            Ok(submitted) => accepted.push(submitted.id),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(accepted.len() > 10);
    let counts = store.jobs().counts(Visibility::All).await.unwrap();
    assert_eq!(counts.total(), accepted.len() as u64);
    store.parts.access.writer.write(Statement("PRAGMA max_page_count = 100000")).await.unwrap();
    for id in accepted {
        let claimed = store.queue().claim().await.unwrap().unwrap();
        assert_eq!(claimed.job.id, id, "the oldest first");
        store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
        store.queue().finish(claimed.lease, completed(b"{}")).await.unwrap();
    }
}

/// A lease that is dropped while writes fail requeues its job later.
#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_given_back_is_given_back_later() {
    let fresh = sqlite();
    let store = fresh.store().await;
    let id = store.queue().submit(job("a")).await.unwrap().id;
    let claimed = store.queue().claim().await.unwrap().unwrap();
    store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
    let broken = "CREATE TRIGGER broken BEFORE UPDATE ON jobs BEGIN SELECT RAISE(ABORT, 'x'); END";
    store.parts.access.writer.write(Statement(broken)).await.unwrap();
    let error = store.queue().finish(claimed.lease, completed(b"{}")).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    store.membership().heartbeat().await.unwrap();
    store.parts.access.writer.write(Statement("DROP TRIGGER broken")).await.unwrap();
    assert_eq!(store.queue().held(), 1, "nobody knows better yet");
    store.membership().heartbeat().await.unwrap();
    let again = store.queue().claim().await.unwrap().expect("it waits again");
    assert_eq!((again.job.id, again.job.attempts), (id, 2));
    store.membership().heartbeat().await.unwrap();
    store.queue().advance(&again.lease, JobState::Compiling).await.unwrap();
    store.queue().finish(again.lease, completed(b"{}")).await.unwrap();
    assert_eq!(store.queue().held(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_found_no_room_is_written_once_there_is() {
    let fresh = sqlite();
    let store = fresh.store().await;
    let id = store.queue().submit(job("a")).await.unwrap().id;
    let mut lease = store.queue().claim().await.unwrap().unwrap().lease;
    store.queue().advance(&lease, JobState::Compiling).await.unwrap();
    // Incompressible bytes, small enough to stay in the database.
    let noise: Vec<u8> = (0..512).flat_map(|_| *uuid::Uuid::new_v4().as_bytes()).collect();
    store.parts.access.writer.write(Statement("PRAGMA max_page_count = 1")).await.unwrap();
    let mut refused = 0;
    // Free pages of the file may hold some reports.
    let error = loop {
        match store.queue().try_finish(&mut lease, completed(&noise)).await {
            Err(error) => break error,
            Ok(()) => {
                refused += 1;
                assert!(refused < 100, "there is room for ever");
                store.queue().submit(job("a")).await.unwrap();
                lease = store.queue().claim().await.unwrap().unwrap().lease;
                store.queue().advance(&lease, JobState::Compiling).await.unwrap();
            }
        }
    };
    assert!(matches!(error, StoreError::DiskFull { .. }) && error.may_pass(), "{error}");
    let unended = lease.job().to_owned();
    // A step without a waiting caller is lost.
    store.queue().advance_behind(&lease, JobState::Profiling).unwrap();
    assert!(!store.jobs().find(&unended, Visibility::All).await.unwrap().unwrap().state.is_end());
    store.parts.access.writer.write(Statement("PRAGMA max_page_count = 100000")).await.unwrap();
    store.queue().try_finish(&mut lease, completed(&noise)).await.unwrap();
    let job = store.jobs().find(&unended, Visibility::All).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (JobState::Completed, 1));
    assert_eq!(store.jobs().report(&unended).await.unwrap().unwrap().body, noise);
    drop(lease);
    assert_eq!(
        store.jobs().find(&id, Visibility::All).await.unwrap().unwrap().state,
        JobState::Completed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_to_is_named() {
    let fresh = sqlite();
    let store = fresh.store().await;
    let id = store.queue().submit(job("a")).await.unwrap().id;
    store.parts.access.writer.write(Statement("PRAGMA query_only = 1")).await.unwrap();
    let error = store.queue().submit(job("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert!(error.to_string().contains("warpgauge.db"), "{error}");
    assert!(
        store.jobs().find(&id, Visibility::All).await.unwrap().is_some(),
        "it can still be read"
    );
    // Even root cannot create a directory there.
    let error = Store::open(&StoreConfig::new("/proc/warpgauge")).await.unwrap_err();
    assert!(matches!(error, StoreError::DataDir { .. }), "{error}");
    assert!(error.to_string().contains("/proc/warpgauge"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_named() {
    let fresh = sqlite();
    let path = sqlite_path(&fresh.config.data_dir);
    std::fs::write(&path, "this is not a database, and longer than its header would be".repeat(99))
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Store::open(&fresh.config).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_is_an_error_that_says_so() {
    let fresh = sqlite();
    let url = "postgres://me:secret@localhost:1/none".to_owned();
    let error = Store::open(&StoreConfig { url, ..fresh.config.clone() }).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{text}");
    assert!(text.contains("postgres://me@localhost:1/none") && !text.contains("secret"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_a_lost_connection_is_made_again() {
    needs!("PostgreSQL", crate::testing::server::installed());
    let fresh = postgres();
    let store = fresh.store().await;
    store.queue().submit(job("a")).await.unwrap();
    let kill = "SELECT CAST(pg_terminate_backend(pid) AS TEXT) FROM pg_stat_activity \
                WHERE pid <> pg_backend_pid() AND usename = 'warpgauge'";
    let database =
        Database::new(&fresh.config.url, &fresh.config.data_dir, fresh.config.durability).unwrap();
    assert_eq!(database.backend, Backend::Postgres);
    let mut connection = database.connect().await.unwrap();
    connection.execute(sqlx::raw_sql(kill)).await.unwrap();
    store.queue().submit(job("a")).await.unwrap();
    assert_eq!(store.jobs().counts(Visibility::All).await.unwrap().total(), 2);
}
