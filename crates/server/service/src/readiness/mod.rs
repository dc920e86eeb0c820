//! Whether anything can be evaluated at this moment, and if not, why.
//!
//! Everything is looked up, not remembered: compilers and files where they should be, the database over
//! a connection of its own. One look serves all who ask within a second, and there is never more than
//! one: a disk that hangs holds up one thread, and the answer to the caller says so.

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

/// What keeps the database from being used, by its codes in `reasons`.
const OF_DATABASE: [&str; 4] =
    ["database_damaged", "database_gone", "database_unreachable", "database_failed"];

/// How old what is known of the database may be before those who use it have it looked at again.
const OLD: Duration = Duration::from_secs(2);

/// How long what was found holds.
const FRESH: Duration = Duration::from_secs(1);

/// How long a look may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a caller waits for a new look while an older one is…
const BRIEFLY: Duration = Duration::from_millis(800);

/// …no older than this.
const RECENT: Duration = Duration::from_secs(10);

/// How long the database may take over a heartbeat.
const BEAT: Duration = Duration::from_secs(5);

/// What is wrong with the store, for those who ask whether anything can be evaluated.
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

/// Looks whether evaluations can run.
pub(super) struct Readiness {
    findings: Findings,
    store: Store,
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
    role: ProcessRole,
}

/// What was found by the latest look, and whether one is under way.
#[derive(Default)]
struct Findings {
    found: watch::Sender<Option<Found>>,
    looking_since: Mutex<Option<Instant>>,
    heartbeat: Mutex<Heartbeat>,
}

#[derive(Clone)]
struct Found {
    /// When the look began, and when it ended.
    since: Instant,
    at: Instant,
    unready: Vec<Unready>,
}

/// The database as the heartbeats see it, which write to it.
#[derive(Default)]
struct Heartbeat {
    since: Option<Instant>,
    failure: Option<Unready>,
}

/// A look that is under way until this is dropped.
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

    /// A heartbeat begins.
    fn beats(&self) {
        self.heartbeat().since = Some(Instant::now());
    }

    /// The heartbeat has ended with `outcome`.
    fn beaten<T>(&self, outcome: &Result<T, StoreError>) {
        let failure = outcome.as_ref().err().map(of_store);
        *self.heartbeat() = Heartbeat { since: None, failure };
    }

    /// The database was looked at and is well: what a heartbeat found was before, all of it where the look was
    /// `whole`, and that the database could not be reached in any case.
    fn is_well(&self, whole: bool) {
        let mut heartbeat = self.heartbeat();
        let stays = |it: &Unready| !whole && it.code != "database_unreachable";
        heartbeat.failure = heartbeat.failure.take().filter(stays);
    }

    /// What the latest look, or the latest heartbeat, has against the database.
    fn against_database(&self) -> Option<Unready> {
        let is_bad = |unready: &&Unready| OF_DATABASE.contains(&unready.code.as_str());
        let found = self.found.borrow();
        let looked = found.iter().flat_map(|found| &found.unready).find(is_bad).cloned();
        looked.or_else(|| self.heartbeat().failure.as_ref().filter(is_bad).cloned())
    }

    /// Whether the latest look, which began before this instant, found another file or none in the place of the
    /// database.
    fn was_gone_before(&self, asked: Instant) -> bool {
        let gone = self.against_database().is_some_and(|unready| unready.code == "database_gone");
        gone && self.found.borrow().as_ref().is_none_or(|found| found.since < asked)
    }

    /// Whether the latest look is old.
    fn is_old(&self) -> bool {
        self.found.borrow().as_ref().is_none_or(|found| found.at.elapsed() > OLD)
    }

    fn of_heartbeats(&self) -> Option<Unready> {
        let heartbeat = self.heartbeat();
        let hangs = heartbeat.since.filter(|since| since.elapsed() > BEAT);
        if let Some(since) = hangs {
            let message = format!(
                "the database has not taken a heartbeat for {} s; see whether its server, or the disk \
                 of the data directory, hangs",
                since.elapsed().as_secs()
            );
            return Some(Unready::new("database_busy", message));
        }
        heartbeat.failure.clone()
    }
}

impl Readiness {
    /// Readiness of this store and executor. Nothing has been looked at.
    pub(super) fn new(
        store: Store,
        executor: Arc<dyn Executor>,
        admission: Arc<Admission>,
        role: ProcessRole,
    ) -> Arc<Self> {
        Arc::new(Self { findings: Findings::default(), store, executor, admission, role })
    }

    /// A heartbeat begins.
    pub(super) fn beats(&self) {
        self.findings.beats();
    }

    /// The heartbeat has ended with `outcome`.
    pub(super) fn beaten<T>(&self, outcome: &Result<T, StoreError>) {
        self.findings.beaten(outcome);
    }

    /// Does what reads the database, unless the database is known not to work, and for as long as it is not.
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

    /// Why nothing can be evaluated now; empty if something can.
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

    /// The same, whatever an earlier look found. Waits for one that is under way.
    async fn look_again(self: &Arc<Self>) -> Vec<Unready> {
        let mut found = self.findings.found.subscribe();
        let known = found.borrow_and_update().clone();
        let since = self.begin_look();
        let known = known.filter(|known| known.at.elapsed() < RECENT);
        let wait = if known.is_some() { BRIEFLY } else { PATIENCE };
        let newer = |found: &Option<Found>| found.as_ref().is_some_and(|found| found.at >= since);
        let looked = timeout_at((since + wait).into(), found.wait_for(newer)).await;
        match (looked, known) {
            (Ok(Ok(found)), _) => {
                found.as_ref().map(|found| found.unready.clone()).unwrap_or_default()
            }
            (_, Some(known)) => known.unready,
            (_, None) => {
                let message = format!(
                    "looking at the data directory and the database has taken more than {} s; see whether \
                     a disk or the database's server hangs",
                    PATIENCE.as_secs()
                );
                vec![Unready::new("checks_hang", message)]
            }
        }
    }

    /// Refuses what needs the database while that is known to be away or damaged: at once, and not when an
    /// attempt has taken as long as it may. Has it looked at again from time to time, without waiting for that
    /// unless something is known to be wrong.
    ///
    /// # Errors
    /// What is wrong with the database, and what to do.
    pub(super) async fn database_works(self: &Arc<Self>) -> Result<(), ServiceError> {
        let asked = Instant::now();
        if self.findings.against_database().is_none() {
            if self.findings.is_old() && self.role == ProcessRole::Server {
                self.begin_look();
            }
            return Ok(());
        }
        self.look().await;
        // A file that is back is used at once, which costs a look of milliseconds. One that was under way may have
        // begun before; the next has not.
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

    /// Resolves when a look finds that the database is away or damaged: with what is wrong, and what to do.
    async fn database_fails(&self) -> ServiceError {
        let mut found = self.findings.found.subscribe();
        loop {
            if let Some(unready) = self.findings.against_database() {
                return ServiceError::unavailable(unready.message);
            }
            if found.changed().await.is_err() {
                // There will be no other look.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Begins a look, unless one is under way; when that one began.
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
            "no device works ({reasons}); see GET /devices and the log; it is tried again from time to time"
        );
        Some(Unready::new("no_device", message))
    }

    /// What compilers and files have to say. On a thread of its own: one that hangs is left behind, and
    /// holds up neither others nor the end of the process.
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
    // Files and database have much the same to say of a disk.
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
        tracing::warn!(code, message, "nothing can be evaluated");
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
