//! Whether anything can be evaluated at this moment, and if not, why.
//!
//! Everything is looked up, not remembered: compilers and files where they should be, the database over
//! a connection of its own. One look serves all who ask within a second, and there is never more than
//! one: a disk that hangs holds up one thread, and whoever asks is told so.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio::time::timeout_at;

use super::error::{ServiceError, chain};
use super::shared::Shared;
use super::start::Role;

use warpgauge_jobs::Unready;
use warpgauge_model::DeviceState;
use warpgauge_store::StoreError;

/// What keeps the database from being used, by its codes in `reasons`.
const OF_DATABASE: [&str; 4] =
    ["database_damaged", "database_gone", "database_unreachable", "database_failed"];

/// How old what is known of the database may be before those who use it have it looked at again.
const OLD: Duration = Duration::from_secs(2);

/// How long what was found holds.
const FRESH: Duration = Duration::from_secs(1);

/// How long a look may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long whoever asks waits for a new look while an older one is…
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

/// What was found by the latest look, and whether one is under way.
#[derive(Default)]
pub(super) struct Readiness {
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
struct Looking(Arc<Shared>);

impl Drop for Looking {
    fn drop(&mut self) {
        *self.0.readiness.looking_since() = None;
    }
}

impl Readiness {
    fn looking_since(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.looking_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heartbeat(&self) -> std::sync::MutexGuard<'_, Heartbeat> {
        self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A heartbeat begins.
    pub(super) fn beats(&self) {
        self.heartbeat().since = Some(Instant::now());
    }

    /// It has come to this.
    pub(super) fn beaten<T>(&self, outcome: &Result<T, StoreError>) {
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

/// Why nothing can be evaluated now; empty if something can.
pub(super) async fn look(shared: &Arc<Shared>) -> Vec<Unready> {
    if shared.closing.load(Ordering::Acquire) {
        return vec![Unready::shutting_down()];
    }
    let known = shared.readiness.found.borrow().clone();
    match known.filter(|known| known.at.elapsed() < FRESH) {
        Some(known) => known.unready,
        None => look_again(shared).await,
    }
}

/// The same, whatever an earlier look found. Waits for one that is under way.
async fn look_again(shared: &Arc<Shared>) -> Vec<Unready> {
    let mut found = shared.readiness.found.subscribe();
    let known = found.borrow_and_update().clone();
    let since = begin_look(shared);
    let known = known.filter(|known| known.at.elapsed() < RECENT);
    let wait = if known.is_some() { BRIEFLY } else { PATIENCE };
    let newer = |found: &Option<Found>| found.as_ref().is_some_and(|found| found.at >= since);
    let looked = timeout_at((since + wait).into(), found.wait_for(newer)).await;
    match (looked, known) {
        (Ok(Ok(found)), _) => found.as_ref().map(|found| found.unready.clone()).unwrap_or_default(),
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
pub(super) async fn database_works(shared: &Arc<Shared>) -> Result<(), ServiceError> {
    let asked = Instant::now();
    if shared.readiness.against_database().is_none() {
        if shared.readiness.is_old() && shared.role == Role::Server {
            begin_look(shared);
        }
        return Ok(());
    }
    look(shared).await;
    // A file that is back is used at once, which costs a look of milliseconds. One that was under way may have
    // begun before; the next has not.
    for _ in 0..2 {
        if shared.readiness.was_gone_before(asked) {
            look_again(shared).await;
        }
    }
    match shared.readiness.against_database() {
        Some(unready) => Err(ServiceError::Unavailable(unready.message)),
        None => Ok(()),
    }
}

/// Resolves when a look finds that the database is away or damaged: with what is wrong, and what to do.
pub(super) async fn database_fails(shared: &Arc<Shared>) -> ServiceError {
    let mut found = shared.readiness.found.subscribe();
    loop {
        if let Some(unready) = shared.readiness.against_database() {
            return ServiceError::Unavailable(unready.message);
        }
        if found.changed().await.is_err() {
            // There will be no other look.
            std::future::pending::<()>().await;
        }
    }
}

/// Begins a look, unless one is under way; when that one began.
fn begin_look(shared: &Arc<Shared>) -> Instant {
    *shared.readiness.looking_since().get_or_insert_with(|| {
        let since = Instant::now();
        tokio::spawn(look_now(Looking(Arc::clone(shared)), since));
        since
    })
}

async fn look_now(looking: Looking, since: Instant) {
    let shared = &looking.0;
    let mut unready = Vec::new();
    unready.extend(no_device(shared));
    unready.extend(of_files(shared).await);
    let mut said = None;
    if let Err(error) = shared.store.check_database().await {
        unready.push(of_store(&error));
        said = Some(chain(&error));
    } else {
        shared.readiness.is_well(shared.store.check_is_whole());
        unready.extend(shared.readiness.of_heartbeats());
    }
    // Files and database have much the same to say of a disk.
    unready.dedup_by(|one, other| one.code == other.code);
    let found = Some(Found { since, at: Instant::now(), unready: unready.clone() });
    let before = shared.readiness.found.send_replace(found).map(|found| found.unready);
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

fn no_device(shared: &Shared) -> Option<Unready> {
    let devices = shared.executor.offer().devices;
    let mut reasons = Vec::new();
    for device in &devices {
        match &device.state {
            DeviceState::Failed { reason } => {
                reasons.push(format!("device {}: {reason}", device.info.ordinal));
            }
            DeviceState::Starting | DeviceState::Ready => return None,
        }
    }
    let reasons = if reasons.is_empty() { "there is none".to_owned() } else { reasons.join("; ") };
    let message = format!(
        "no device works ({reasons}); see GET /devices and the log; it is tried again from time to time"
    );
    Some(Unready::new("no_device", message))
}

/// What compilers and files have to say. On a thread of its own: one that hangs is left behind, and
/// holds up neither others nor the end of the process.
async fn of_files(shared: &Arc<Shared>) -> Vec<Unready> {
    let (answer, told) = oneshot::channel();
    let looked_at = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("readiness".to_owned());
    let started = thread.spawn(move || {
        let shared = looked_at;
        let mut found = Vec::new();
        found.extend(shared.executor.unready());
        if let Err(error) = shared.store.check_files() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_look_or_a_heartbeat_has_against_the_database_counts() {
        let readiness = Readiness::default();
        let told = || readiness.against_database().map(|unready| unready.code);
        assert!(told().is_none() && readiness.is_old());
        let found = |code: &str| {
            let now = Instant::now();
            Found { since: now, at: now, unready: vec![Unready::new(code, "m")] }
        };
        readiness.found.send_replace(Some(found("no_device")));
        assert!(told().is_none() && !readiness.is_old(), "devices are another matter");
        readiness.found.send_replace(Some(found("database_damaged")));
        assert_eq!(told().as_deref(), Some("database_damaged"));
        let asked = Instant::now();
        readiness.found.send_replace(Some(found("database_gone")));
        assert!(!readiness.was_gone_before(asked), "that look began after the question");
        assert!(readiness.was_gone_before(Instant::now()), "it may be back since");
        let now = Instant::now();
        readiness.found.send_replace(Some(Found { since: now, at: now, unready: Vec::new() }));
        let gone = StoreError::Gone { place: "/p/x.db".to_owned(), what: "emptied".to_owned() };
        readiness.beaten(&Err::<(), _>(gone));
        assert_eq!(told().as_deref(), Some("database_gone"));
        assert!(!readiness.against_database().unwrap().message.contains("/p/"));
        readiness.is_well(false);
        assert!(told().is_some(), "a server whose rows are gone answers all the same");
        readiness.is_well(true);
        assert_eq!(told(), None, "a file that was moved away is back");
        let away = Unready::new("database_unreachable", "m");
        *readiness.heartbeat() = Heartbeat { since: None, failure: Some(away) };
        readiness.is_well(false);
        assert_eq!(told(), None);
    }

    #[test]
    fn a_heartbeat_that_hangs_or_fails_is_told_until_one_succeeds() {
        let readiness = Readiness::default();
        let told = || readiness.of_heartbeats().map(|unready| unready.code);
        assert_eq!(told(), None);
        readiness.beats();
        assert_eq!(told(), None);
        readiness.heartbeat().since = Instant::now().checked_sub(BEAT + BEAT);
        assert_eq!(told().as_deref(), Some("database_busy"));
        let failed =
            Err::<(), _>(StoreError::Gone { place: "x".to_owned(), what: "emptied".to_owned() });
        readiness.beaten(&failed);
        assert_eq!(told().as_deref(), Some("database_gone"));
        readiness.beaten(&Ok(()));
        assert_eq!(told(), None);
    }
}
