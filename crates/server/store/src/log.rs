//! Checkpoints SQLite's log into the database file, in a task separate from the writer. A
//! checkpoint waits for the disk, which would delay the writer. The main type is [`LogKeeper`].
//!
//! During a checkpoint the writer cannot add to the log. So checkpoints are small and follow the
//! log's growth.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::{AnyConnection, Connection, Executor};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::database::Database;

/// Number of writes per checkpoint. Each write has some 10 kB.
const STEP: u64 = 128;

/// Time after the first write at which a checkpoint is made even if there are fewer writes.
const PATIENCE: Duration = Duration::from_millis(500);

/// Minimum pause between checkpoints.
const PAUSE: Duration = Duration::from_millis(50);

/// Ratio of the pause after a checkpoint to the checkpoint's duration. The pause is at most
/// [`PATIENCE`]. A checkpoint takes processor and disk time from the writer.
const REST: u32 = 4;

/// Counts writes since the last checkpoint.
#[derive(Debug, Default)]
pub(super) struct Written {
    writes: AtomicU64,
    more: Notify,
}

impl Written {
    /// Counts committed writes.
    pub(super) fn add(&self, writes: usize) {
        if writes == 0 {
            return;
        }
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
        self.more.notify_one();
    }

    fn count(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }
}

/// The task that checkpoints the log. It ends when this value is dropped.
pub(super) struct LogKeeper {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl LogKeeper {
    /// Starts the task.
    pub(super) fn start(database: Database, written: Arc<Written>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move { keep(&database, &written, stopped).await });
        Self { stop, task }
    }

    /// Ends the task, and returns once its connection is closed.
    pub(super) async fn end(self) {
        drop(self.stop);
        // An error is a panic of the task, which was already reported.
        let _ = self.task.await;
    }
}

/// Checkpoints the log until it is stopped.
///
/// The task stops only between checkpoints. If it were dropped while it connects, another thread
/// would close the connection later. The store's connection would then not be the last to close.
async fn keep(database: &Database, written: &Written, mut stopped: oneshot::Receiver<()>) {
    let (mut connection, mut folded, mut pause) = (None, 0, PAUSE);
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            () = worth_a_step(written, folded, pause) => {}
        }
        let (count, start) = (written.count(), Instant::now());
        connection = fold(database, connection).await;
        pause = if connection.is_some() {
            folded = count;
            (start.elapsed() * REST).clamp(PAUSE, PATIENCE)
        } else {
            PATIENCE
        };
    }
    if let Some(connection) = connection {
        close(connection).await;
    }
}

/// Waits until there are enough writes for a checkpoint, or until a smaller checkpoint is due.
async fn worth_a_step(written: &Written, folded: u64, pause: Duration) {
    while written.count() == folded {
        written.more.notified().await;
    }
    let due = Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(pause).await;
        if written.count() - folded >= STEP || Instant::now() >= due {
            return;
        }
    }
}

/// Checkpoints as much of the log as is possible without waiting for readers. Returns the
/// connection on success.
async fn fold(database: &Database, kept: Option<AnyConnection>) -> Option<AnyConnection> {
    let mut connection = match kept {
        Some(connection) => connection,
        None => match database.connect().await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!(%error, "the database's log cannot be checkpointed now");
                return None;
            }
        },
    };
    match connection.execute(sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)")).await {
        Ok(_) => Some(connection),
        Err(_) => {
            close(connection).await;
            None
        }
    }
}

async fn close(connection: AnyConnection) {
    // This fails if the database is gone. Then there is nothing to close.
    let _ = connection.close().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Durability, sqlite_path};

    /// The task may be ended at any time: while it connects, and during a checkpoint.
    #[tokio::test]
    async fn nothing_is_open_once_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let log = sqlite_path(folder.path()).with_extension("db-wal");
        let database = Database::new("", folder.path(), Durability::Process).unwrap();
        for moment in 0..30 {
            let mut connection = database.connect().await.unwrap();
            connection.execute(sqlx::raw_sql("CREATE TABLE t (x); DROP TABLE t")).await.unwrap();
            let written = Arc::new(Written::default());
            let mut keeper = LogKeeper::start(database.clone(), Arc::clone(&written));
            written.add(STEP as usize);
            let after = PAUSE + Duration::from_micros(100) * moment;
            let unasked = tokio::time::timeout(after, &mut keeper.task).await;
            assert!(unasked.is_err(), "ended unasked: {unasked:?}");
            keeper.end().await;
            connection.close().await.unwrap();
            assert!(!log.exists(), "ended after {after:?}");
        }
    }
}
