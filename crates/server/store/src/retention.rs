//! Removes jobs and points of the history beyond the retention limits. A job that has not ended is
//! never removed.

use futures_util::future::BoxFuture;
use sqlx::Row;

use super::state::parse;
use super::tally::Place;
use super::writer::{Batch, Write};
use super::{JobState, StoreError};

/// Maximum number of jobs that one transaction removes.
pub(super) const CHUNK: u64 = 200;

/// Maximum number of pages that one transaction returns to the file system.
pub(super) const PAGES: u64 = 200;

/// A write that removes the oldest ended jobs.
pub(super) struct TakeDown {
    /// Only jobs that ended before this time, microseconds since the Unix epoch; `None` means any.
    pub(super) before: Option<i64>,
    /// Maximum number of jobs to remove.
    pub(super) jobs: u64,
    /// Number of bytes after whose removal no further job is removed.
    pub(super) bytes: u64,
}

/// Result of [`TakeDown`].
#[derive(Default)]
pub(super) struct TakenDown {
    pub(super) jobs: u64,
    pub(super) bytes: u64,
    /// Files to which no row refers any longer.
    pub(super) files: Vec<String>,
}

impl Write for TakeDown {
    type Out = TakenDown;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<TakenDown, StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("find jobs to remove");
            let rows = sqlx::query(
                "SELECT id, owner, state, bytes FROM jobs \
                 WHERE ended_at IS NOT NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2",
            )
            .bind(self.before.unwrap_or(i64::MAX))
            .bind(self.jobs.min(CHUNK) as i64)
            .fetch_all(&mut *batch.connection)
            .await
            .map_err(&failed)?;
            let mut down = TakenDown::default();
            for row in rows {
                if down.bytes >= self.bytes {
                    break;
                }
                let id: String = row.try_get(0).map_err(&failed)?;
                let owner: String = row.try_get(1).map_err(&failed)?;
                let state: String = row.try_get(2).map_err(&failed)?;
                let bytes: i64 = row.try_get(3).map_err(&failed)?;
                take_down(&id, batch, &mut down.files).await?;
                let state = parse(&state).unwrap_or(JobState::Failed);
                batch.tally.moved(&owner, Some(Place::waiting(state)), None);
                batch.tally.weighs(&owner, -bytes);
                down.jobs += 1;
                down.bytes += u64::try_from(bytes).unwrap_or(0);
            }
            Ok(down)
        })
    }
}

/// Removes all rows of a job.
async fn take_down(
    id: &str,
    batch: &mut Batch<'_>,
    files: &mut Vec<String>,
) -> Result<(), StoreError> {
    let failed = batch.failed("remove a job");
    let rows = sqlx::query(
        "SELECT object FROM requests WHERE job_id = $1 AND object IS NOT NULL \
         UNION ALL SELECT object FROM reports WHERE job_id = $1 AND object IS NOT NULL \
         UNION ALL SELECT object FROM artifacts WHERE job_id = $1 AND object IS NOT NULL",
    )
    .bind(id)
    .fetch_all(&mut *batch.connection)
    .await
    .map_err(&failed)?;
    for row in rows {
        files.push(row.try_get(0).map_err(&failed)?);
    }
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(packed), 0) AS BIGINT) FROM artifacts \
         WHERE job_id = $1 AND gone = 0",
    )
    .bind(id)
    .fetch_one(&mut *batch.connection)
    .await;
    let packed: i64 = row.and_then(|row| row.try_get(0)).map_err(&failed)?;
    if packed > 0 {
        super::artifacts::add_bytes(-packed, batch).await?;
    }
    for sql in [
        "DELETE FROM artifacts WHERE job_id = $1",
        "DELETE FROM reports WHERE job_id = $1",
        "DELETE FROM requests WHERE job_id = $1",
        "DELETE FROM deliveries WHERE job_id = $1",
        "DELETE FROM jobs WHERE id = $1",
    ] {
        sqlx::query(sql).bind(id).execute(&mut *batch.connection).await.map_err(&failed)?;
    }
    Ok(())
}

/// A write that removes owners without jobs, and the oldest points beyond the number to keep.
pub(super) struct Tidy {
    /// Number of points to keep; `None` means all.
    pub(super) points: Option<u64>,
}

impl Write for Tidy {
    type Out = u64;

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("remove owners without jobs");
            let counts = super::STATES.map(|state| format!("n_{} = 0", super::state::name(state)));
            let sql = format!(
                "DELETE FROM owners WHERE waiting = 0 AND running = 0 AND {}",
                counts.join(" AND ")
            );
            let delete = sqlx::query(sqlx::AssertSqlSafe(sql));
            delete.execute(&mut *batch.connection).await.map_err(failed)?;
            match self.points {
                Some(keep) => super::history::take_down(keep, CHUNK, batch).await,
                None => Ok(0),
            }
        })
    }
}

/// A write that returns empty pages to the file system. It keeps a tenth of the file's pages, which
/// new jobs will need. It returns the number of pages. PostgreSQL has a separate process for this.
pub(super) struct Shrink;

impl Write for Shrink {
    type Out = u64;

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            if batch.is_postgres() {
                return Ok(0);
            }
            let failed = batch.failed("return free pages");
            let row = sqlx::query(
                "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count",
            );
            let row = row.fetch_one(&mut *batch.connection).await.map_err(&failed)?;
            let free: i64 = row.try_get(0).map_err(&failed)?;
            let all: i64 = row.try_get(1).map_err(&failed)?;
            let pages = u64::try_from(free - all / 10).unwrap_or(0).min(PAGES);
            if pages > 0 {
                let pragma = format!("PRAGMA incremental_vacuum({pages})");
                let shrink = sqlx::raw_sql(sqlx::AssertSqlSafe(pragma));
                shrink.execute(&mut *batch.connection).await.map_err(&failed)?;
            }
            Ok(pages)
        })
    }
}
