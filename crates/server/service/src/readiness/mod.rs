//! Checks whether evaluations can run at present, and determines the reasons if not. The main type
//! is [`Readiness`].
//!
//! A check covers the devices, the compilers, the files, and the database over a separate
//! connection. Its result serves all callers for a second, and at most one check runs at a time. So
//! a hanging disk blocks only one thread, and the answer reports it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout_at;

use crate::admission::Admission;
use crate::error::{ServiceError, chain};
use crate::settings::ProcessRole;
use crate::submission::ServiceFuture;
use warpgauge_executor::Executor;
use warpgauge_job_views::Unready;
use warpgauge_model::DeviceState;
use warpgauge_store::{Store, StoreError};

/// Codes in `reasons` which mean that the database cannot be used.
const OF_DATABASE: [&str; 4] =
    ["database_damaged", "database_gone", "database_unreachable", "database_failed"];

/// Age of the latest check at which users of the database start a new one.
const OLD: Duration = Duration::from_secs(2);

/// Time for which the result of a check is used without a new check.
const FRESH: Duration = Duration::from_secs(1);

/// Time after which a check is considered to hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum wait for a new check if a recent one found no reason. A check takes milliseconds. If it
/// takes longer on a busy machine, the caller receives the recent result.
const BRIEFLY: Duration = Duration::from_millis(30);

/// Maximum wait for a new check if a recent one found a reason.
const LONGER: Duration = Duration::from_millis(800);

/// Maximum age of a check that counts as recent.
const RECENT: Duration = Duration::from_secs(10);

/// Time after which a heartbeat of the database is considered to hang.
const BEAT: Duration = Duration::from_secs(5);

/// Converts an error of the store into a reason why no evaluation can run.
fn of_store(error: &StoreError) -> Unready {
    let code = match error {
        StoreError::DiskFull { .. } => "disk_full",
        StoreError::ReadOnly { .. } => "read_only",
        StoreError::DataDir { .. } | StoreError::Object { .. } => "files_unusable",
        StoreError::Gone { .. } => "database_gone",
        StoreError::Corrupt { .. }
        | StoreError::Odd { .. }
        | StoreError::Foreign { .. }
        | StoreError::Newer { .. } => "database_damaged",
        StoreError::Unreachable { .. } => "database_unreachable",
        StoreError::Busy { .. } => "database_busy",
        StoreError::Closed => return Unready::shutting_down(),
        error if error.is_transient() => "database_unreachable",
        _ => "database_failed",
    };
    Unready::new(code, error.for_callers())
}

/// Checks whether evaluations can run.
pub(super) struct Readiness {
    findings: Findings,
    store: Store,
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
    role: ProcessRole,
}

/// Result of the latest check. Also records whether a check is in progress.
#[derive(Default)]
struct Findings {
    found: watch::Sender<Option<Found>>,
    looking_since: Mutex<Option<Instant>>,
    heartbeat: Mutex<Heartbeat>,
}

#[derive(Clone)]
struct Found {
    /// Start and end of the check.
    since: Instant,
    at: Instant,
    unready: Vec<Unready>,
}

/// State of the database according to the latest heartbeat, which writes to it.
#[derive(Default)]
struct Heartbeat {
    since: Option<Instant>,
    failure: Option<Unready>,
}

/// A check in progress. Dropping it records the end of the check.
struct Looking(Arc<Readiness>);

impl Drop for Looking {
    fn drop(&mut self) {
        *self.0.findings.looking_since() = None;
    }
}

impl Findings {
    fn looking_since(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.looking_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heartbeat(&self) -> std::sync::MutexGuard<'_, Heartbeat> {
        self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a heartbeat.
    fn beats(&self) {
        self.heartbeat().since = Some(Instant::now());
    }

    /// Records the end of a heartbeat.
    fn beaten<T>(&self, outcome: &Result<T, StoreError>) {
        let failure = outcome.as_ref().err().map(of_store);
        *self.heartbeat() = Heartbeat { since: None, failure };
    }

    /// Clears failures of earlier heartbeats after a check found the database usable. A `whole`
    /// check clears every failure; any other check clears only `database_unreachable`.
    fn is_well(&self, whole: bool) {
        let mut heartbeat = self.heartbeat();
        let stays = |it: &Unready| !whole && it.code != "database_unreachable";
        heartbeat.failure = heartbeat.failure.take().filter(stays);
    }

    /// Returns the failure of the database that the latest check or heartbeat found.
    fn against_database(&self) -> Option<Unready> {
        let is_bad = |unready: &&Unready| OF_DATABASE.contains(&unready.code.as_str());
        let found = self.found.borrow();
        let looked = found.iter().flat_map(|found| &found.unready).find(is_bad).cloned();
        looked.or_else(|| self.heartbeat().failure.as_ref().filter(is_bad).cloned())
    }

    /// Returns whether the latest check began before `asked` and found the database file missing or
    /// replaced.
    fn was_gone_before(&self, asked: Instant) -> bool {
        let gone = self.against_database().is_some_and(|unready| unready.code == "database_gone");
        gone && self.found.borrow().as_ref().is_none_or(|found| found.since < asked)
    }

    /// Returns whether the latest check is old.
    fn is_old(&self) -> bool {
        self.found.borrow().as_ref().is_none_or(|found| found.at.elapsed() > OLD)
    }

    fn of_heartbeats(&self) -> Option<Unready> {
        let heartbeat = self.heartbeat();
        let hangs = heartbeat.since.filter(|since| since.elapsed() > BEAT);
        if let Some(since) = hangs {
            let message = format!(
                "the database has not accepted a heartbeat for {} s; check whether its server, or the disk \
                 of the data directory, hangs",
                since.elapsed().as_secs()
            );
            return Some(Unready::new("database_busy", message));
        }
        heartbeat.failure.clone()
    }
}

impl Readiness {
    /// Creates the readiness check for this store and executor. No check has run yet.
    pub(super) fn new(
        store: Store,
        executor: Arc<dyn Executor>,
        admission: Arc<Admission>,
        role: ProcessRole,
    ) -> Arc<Self> {
        Arc::new(Self { findings: Findings::default(), store, executor, admission, role })
    }

    /// Records the start of a heartbeat.
    pub(super) fn beats(&self) {
        self.findings.beats();
    }

    /// Records the end of a heartbeat.
    pub(super) fn beaten<T>(&self, outcome: &Result<T, StoreError>) {
        self.findings.beaten(outcome);
    }

    /// Runs work that reads the database. Fails as soon as it is known that the database cannot be
    /// used.
    pub(super) fn with_database<'a, T: Send + 'a>(
        self: &'a Arc<Self>,
        work: impl Future<Output = Result<T, ServiceError>> + Send + 'a,
    ) -> ServiceFuture<'a, T> {
        async move {
            self.database_works().await?;
            tokio::select! {
                biased;
                done = work => done,
                failure = self.database_fails() => Err(failure),
            }
        }
        .boxed()
    }

    /// Returns the reasons why no evaluation can run now; empty if evaluations can run.
    pub(super) async fn look(self: &Arc<Self>) -> Vec<Unready> {
        if self.admission.is_closing() {
            return vec![Unready::shutting_down()];
        }
        let known = self.findings.found.borrow().clone();
        match known.filter(|known| known.at.elapsed() < FRESH) {
            Some(known) => known.unready,
            None => self.look_again().await,
        }
    }

    /// Runs a new check, or waits for the one in progress. Earlier results are not used.
    async fn look_again(self: &Arc<Self>) -> Vec<Unready> {
        let mut found = self.findings.found.subscribe();
        let known = found.borrow_and_update().clone();
        let since = self.begin_look();
        let known = known.filter(|known| known.at.elapsed() < RECENT);
        let wait = match &known {
            Some(known) if known.unready.is_empty() => BRIEFLY,
            Some(_) => LONGER,
            None => PATIENCE,
        };
        let newer = |found: &Option<Found>| found.as_ref().is_some_and(|found| found.at >= since);
        let looked = timeout_at((since + wait).into(), found.wait_for(newer)).await;
        match (looked, known) {
            (Ok(Ok(found)), _) => {
                found.as_ref().map(|found| found.unready.clone()).unwrap_or_default()
            }
            (_, Some(known)) => known.unready,
            (_, None) => {
                let message = format!(
                    "the check of the data directory and the database has taken more than {} s; check whether \
                     a disk or the database's server hangs",
                    PATIENCE.as_secs()
                );
                vec![Unready::new("checks_hang", message)]
            }
        }
    }

    /// Fails at once while the database is known to be unreachable or damaged, instead of after a
    /// timeout. Starts a new check from time to time, and waits for that check only if a failure is
    /// known.
    ///
    /// # Errors
    /// The failure of the database, with a remedy.
    pub(super) async fn database_works(self: &Arc<Self>) -> Result<(), ServiceError> {
        let asked = Instant::now();
        if self.findings.against_database().is_none() {
            if self.findings.is_old() && self.role == ProcessRole::Server {
                self.begin_look();
            }
            return Ok(());
        }
        self.look().await;
        // A file that was restored is usable at once; this costs a check of some milliseconds. A
        // check in progress may have begun before `asked`; the next one has not.
        for _ in 0..2 {
            if self.findings.was_gone_before(asked) {
                self.look_again().await;
            }
        }
        match self.findings.against_database() {
            Some(unready) => Err(ServiceError::unavailable(unready.message)),
            None => Ok(()),
        }
    }

    /// Waits until a check finds that the database is unreachable or damaged. Returns the failure
    /// with a remedy.
    async fn database_fails(&self) -> ServiceError {
        let mut found = self.findings.found.subscribe();
        loop {
            if let Some(unready) = self.findings.against_database() {
                return ServiceError::unavailable(unready.message);
            }
            if found.changed().await.is_err() {
                // After this, no other check can follow.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Starts a check unless one is in progress. Returns the start of the check.
    fn begin_look(self: &Arc<Self>) -> Instant {
        *self.findings.looking_since().get_or_insert_with(|| {
            let since = Instant::now();
            tokio::spawn(look_now(Looking(Arc::clone(self)), since));
            since
        })
    }

    fn no_device(&self) -> Option<Unready> {
        let devices = self.executor.offer().devices;
        let mut reasons = Vec::new();
        for device in &devices {
            match &device.state {
                DeviceState::Failed { reason } => {
                    reasons.push(format!("device {}: {reason}", device.info.ordinal));
                }
                DeviceState::Starting | DeviceState::Ready => return None,
            }
        }
        let reasons =
            if reasons.is_empty() { "there is none".to_owned() } else { reasons.join("; ") };
        let message = format!(
            "no device works ({reasons}); see GET /devices and the log; the server retries from time to time"
        );
        Some(Unready::new("no_device", message))
    }

    /// Checks the compilers and files on a separate thread. If a check hangs, its thread is
    /// abandoned. It blocks neither other checks nor the end of the process.
    async fn of_files(self: &Arc<Self>) -> Vec<Unready> {
        let (answer, told) = oneshot::channel();
        let looked_at = Arc::clone(self);
        let thread = std::thread::Builder::new().name("readiness".to_owned());
        let started = thread.spawn(move || {
            let mut found = Vec::new();
            found.extend(looked_at.executor.unready());
            if let Err(error) = looked_at.store.health().check_files() {
                tracing::debug!(error = chain(&error), "the data directory cannot be used");
                found.push(of_store(&error));
            }
            let _ = answer.send(found);
        });
        match started {
            Ok(_) => told.await.unwrap_or_default(),
            Err(error) => {
                let message =
                    format!("no thread can be started: {error}; see the limits of the process");
                vec![Unready::new("files_unusable", message)]
            }
        }
    }
}

async fn look_now(looking: Looking, since: Instant) {
    let readiness = &looking.0;
    let mut unready = Vec::new();
    unready.extend(readiness.no_device());
    unready.extend(readiness.of_files().await);
    let mut said = None;
    if let Err(error) = readiness.store.health().check_database().await {
        unready.push(of_store(&error));
        said = Some(chain(&error));
    } else {
        readiness.findings.is_well(readiness.store.health().check_is_whole());
        unready.extend(readiness.findings.of_heartbeats());
    }
    // The checks of the files and of the database may report the same failure of a disk.
    unready.dedup_by(|one, other| one.code == other.code);
    let found = Some(Found { since, at: Instant::now(), unready: unready.clone() });
    let before = readiness.findings.found.send_replace(found).map(|found| found.unready);
    if before.unwrap_or_default() == unready {
        return;
    }
    if unready.is_empty() {
        tracing::info!("evaluations can run again");
    }
    for Unready { code, message } in &unready {
        tracing::warn!(code, message, "no evaluation can run");
    }
    if let Some(error) = said {
        tracing::warn!(error, "the database cannot be used");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_look_or_a_heartbeat_has_against_the_database_counts() {
        let findings = Findings::default();
        let told = || findings.against_database().map(|unready| unready.code);
        assert!(told().is_none() && findings.is_old());
        let found = |code: &str| {
            let now = Instant::now();
            Found { since: now, at: now, unready: vec![Unready::new(code, "m")] }
        };
        findings.found.send_replace(Some(found("no_device")));
        assert!(told().is_none() && !findings.is_old(), "devices are another matter");
        findings.found.send_replace(Some(found("database_damaged")));
        assert_eq!(told().as_deref(), Some("database_damaged"));
        let asked = Instant::now();
        findings.found.send_replace(Some(found("database_gone")));
        assert!(!findings.was_gone_before(asked), "that look began after the question");
        assert!(findings.was_gone_before(Instant::now()), "it may be back since");
        let now = Instant::now();
        findings.found.send_replace(Some(Found { since: now, at: now, unready: Vec::new() }));
        let gone = StoreError::Gone { place: "/p/x.db".to_owned(), what: "emptied".to_owned() };
        findings.beaten(&Err::<(), _>(gone));
        assert_eq!(told().as_deref(), Some("database_gone"));
        assert!(!findings.against_database().unwrap().message.contains("/p/"));
        findings.is_well(false);
        assert!(told().is_some(), "a server whose rows are gone answers all the same");
        findings.is_well(true);
        assert_eq!(told(), None, "a file that was moved away is back");
        let away = Unready::new("database_unreachable", "m");
        *findings.heartbeat() = Heartbeat { since: None, failure: Some(away) };
        findings.is_well(false);
        assert_eq!(told(), None);
    }

    #[test]
    fn a_heartbeat_that_hangs_or_fails_is_told_until_one_succeeds() {
        let findings = Findings::default();
        let told = || findings.of_heartbeats().map(|unready| unready.code);
        assert_eq!(told(), None);
        findings.beats();
        assert_eq!(told(), None);
        findings.heartbeat().since = Instant::now().checked_sub(BEAT + BEAT);
        assert_eq!(told().as_deref(), Some("database_busy"));
        let failed =
            Err::<(), _>(StoreError::Gone { place: "x".to_owned(), what: "emptied".to_owned() });
        findings.beaten(&failed);
        assert_eq!(told().as_deref(), Some("database_gone"));
        findings.beaten(&Ok(()));
        assert_eq!(told(), None);
    }
}
