//! Sessions of agents. [`Sessions`] limits their number, and records the owner of each.
//!
//! Clients of the protocol's newest version use no sessions. Clients of older versions begin a
//! session with `initialize`, and many disconnect without ending it. So the server ends an unused
//! session to make room for a new one. A client that loses its session receives 404 and begins a
//! new one; jobs continue without it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use poem::http::StatusCode;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use crate::error::ApiError;
use warpgauge_model::ErrorCode;

/// Maximum number of sessions.
const MAX_SESSIONS: usize = 256;

/// Time for which a session without messages is kept. It exceeds the maximum time that a call waits
/// for its job, because a job may have no events.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// Time for which an answer is kept for a client that reconnects after its connection broke.
/// Answers take memory, and the job remains available later.
const ANSWERS_KEPT: Duration = Duration::from_secs(10);

const _: () = assert!(IDLE.as_secs() > warpgauge_mcp::MAX_WAIT.as_secs());

/// The sessions of all agents.
#[derive(Clone)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<String, Session>,
    /// Number of sessions whose id is not known yet.
    beginning: usize,
}

struct Session {
    owner: String,
    /// Number of requests of this session that are in progress.
    under_way: usize,
    used: Instant,
}

impl Default for Sessions {
    fn default() -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        manager.session_config.completed_cache_ttl = ANSWERS_KEPT;
        Self { manager: Arc::new(manager), table: Arc::default() }
    }
}

impl Sessions {
    /// Returns the session manager that `rmcp` uses.
    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Begins a request of the session. The session is not idle until the returned value is
    /// dropped.
    pub(super) async fn use_of(&self, id: &str, owner: &str) -> Result<UnderWay, ApiError> {
        self.forget_ended().await;
        let mut table = self.lock();
        match table.sessions.get_mut(id) {
            Some(session) if session.owner == owner => {
                session.under_way += 1;
                Ok(UnderWay { id: id.to_owned(), sessions: self.clone() })
            }
            // A session of another owner is reported as missing.
            _ => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                ErrorCode::NoSuchSession,
                "there is no such session: it was ended, or was idle for long; begin one with \
                 `initialize`",
            )),
        }
    }

    /// Reserves a slot for another session. If none is free, ends a session of the owner with the
    /// most sessions: the one that was idle for the longest time.
    pub(super) async fn begin(&self, owner: &str) -> Result<Place, ApiError> {
        self.forget_ended().await;
        let gone = {
            let mut table = self.lock();
            let gone = if table.sessions.len() + table.beginning < MAX_SESSIONS {
                None
            } else {
                Some(table.idle(owner).ok_or_else(full)?)
            };
            if let Some(id) = &gone {
                table.sessions.remove(id);
            }
            table.beginning += 1;
            gone
        };
        let place = Place { sessions: self.clone() };
        if let Some(id) = gone {
            tracing::debug!("ended an agent's session to make room for another");
            // The session may have ended already.
            let _ = self.manager.close_session(&id.as_str().into()).await;
        }
        Ok(place)
    }

    /// Drops sessions that `rmcp` has ended.
    async fn forget_ended(&self) {
        let alive = self.manager.sessions.read().await;
        self.lock().sessions.retain(|id, _| alive.contains_key(id.as_str()));
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the session that must end to make room for a new session of `owner`.
    fn idle(&self, owner: &str) -> Option<String> {
        let mut count: HashMap<&str, usize> = HashMap::from([(owner, 1)]);
        for session in self.sessions.values() {
            *count.entry(&session.owner).or_default() += 1;
        }
        let idle = self.sessions.iter().filter(|(_, session)| session.under_way == 0);
        let most = |session: &Session| count.get(session.owner.as_str()).copied();
        let chosen =
            idle.max_by_key(|(_, session)| (most(session), std::cmp::Reverse(session.used)));
        chosen.map(|(id, _)| id.clone())
    }
}

fn full() -> ApiError {
    let message = format!(
        "all {MAX_SESSIONS} sessions of agents are in use; end one (DELETE /mcp), or try again \
         later"
    );
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooManySessions, message).retry_after(5)
}

/// The slot of a session that is beginning.
pub(super) struct Place {
    sessions: Sessions,
}

impl Place {
    /// Records that the session began under this id.
    pub(super) fn is(self, id: &str, owner: &str) -> UnderWay {
        let session = Session { owner: owner.to_owned(), under_way: 1, used: Instant::now() };
        self.sessions.lock().sessions.insert(id.to_owned(), session);
        UnderWay { id: id.to_owned(), sessions: self.sessions.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.lock().beginning -= 1;
    }
}

/// A request of a session that is in progress.
pub(super) struct UnderWay {
    id: String,
    sessions: Sessions,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.lock().sessions.get_mut(&self.id) {
            session.under_way -= 1;
            session.used = Instant::now();
        }
    }
}
