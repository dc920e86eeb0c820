//! Runners for one order: a place, a deadline, and their end when nobody waits for the outcome any more.

use std::time::{Duration, Instant};

use crate::error::{self, ExecError};
use crate::local::LocalExecutor;
use warpgauge_torch::{Killer, Place, Runners, Session, Unusable, Versions};

/// When it is worth trying again where too many wait.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The right to run submissions until a deadline.
pub(super) struct Entered<'a> {
    runners: &'a Runners,
    pub versions: Versions,
    deadline: Instant,
    _place: Place,
}

impl LocalExecutor {
    /// Waits for a place, and for PyTorch if no process has it yet. Time runs from then on.
    pub(super) async fn enter_torch(&self, timeout: f64) -> Result<Entered<'_>, ExecError> {
        let runners = self.torch.as_ref().map_err(|why| ExecError::NotOffered(why.clone()))?;
        let place = runners.place().await.map_err(of_unusable)?;
        let versions = runners.warm().await.map_err(of_unusable)?;
        let deadline = Instant::now() + Duration::try_from_secs_f64(timeout).unwrap_or_default();
        Ok(Entered { runners, versions, deadline, _place: place })
    }
}

fn of_unusable(why: Unusable) -> ExecError {
    match why {
        Unusable::QueueFull { waiting } => {
            ExecError::QueueFull { waiting, retry_after: RETRY_AFTER }
        }
        Unusable::Failed { .. } => ExecError::Unavailable(why.to_string()),
    }
}

impl Entered<'_> {
    /// A fresh runner.
    pub(super) async fn session(&self) -> Result<Session, ExecError> {
        self.runners.session(self.deadline).await.map_err(of_unusable)
    }

    /// As many as are wanted.
    pub(super) async fn sessions(&self, count: usize) -> Result<Vec<Session>, ExecError> {
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            sessions.push(self.session().await?);
        }
        Ok(sessions)
    }

    /// Threads that a submission computes with.
    pub(super) fn threads(&self) -> u32 {
        u32::try_from(self.runners.threads()).unwrap_or(u32::MAX)
    }
}

/// Ends runners when it is dropped.
struct Leash(Vec<Killer>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.iter().for_each(Killer::kill);
    }
}

/// Works with runners on a thread that may block; they end when nobody waits any more.
pub(super) async fn with_runners<T: Send + 'static>(
    sessions: Vec<Session>,
    work: impl FnOnce(Vec<Session>) -> T + Send + 'static,
) -> Result<T, ExecError> {
    let _leash = Leash(sessions.iter().map(Session::killer).collect());
    let done = tokio::task::spawn_blocking(move || work(sessions)).await;
    done.map_err(|error| error::internal("judging a torch kernel", &error))
}
