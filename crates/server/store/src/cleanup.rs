//! Removes rows beyond the retention limits, and files to which no row refers. The main type is
//! [`Cleaner`].

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use object_store::ObjectStore;
use sqlx::Row;

use super::access::Access;
use super::retention::{CHUNK, PAGES, Shrink, TakeDown, Tidy};
use super::{CleanupCounts, Retention, StoreError, Visibility};

/// Minimum age at which a file without a row is removed. Writing a file and its row takes far less
/// time.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);

/// Maximum number of transactions with which one clean-up shrinks the file, by at most 16 MB in
/// total. The next clean-up continues.
const SHRINK_STEPS: u32 = 20;

/// Removes jobs, points of the history and files that exceed the retention limits.
pub struct Cleaner {
    pub(super) access: Access,
}

impl Cleaner {
    /// Removes ended jobs beyond the limits of age, number and size, the oldest first.
    pub async fn clean_up(&self, policy: &Retention) -> Result<CleanupCounts, StoreError> {
        let mut cleaned = CleanupCounts::default();
        if let Some(age) = policy.max_age {
            let before = SystemTime::now().checked_sub(age).map_or(0, super::clock::micros);
            self.take_down(Some(before), u64::MAX, u64::MAX, &mut cleaned).await?;
        }
        if policy.max_jobs > 0 {
            let ended = self.ended().await?.0;
            self.take_down(None, ended.saturating_sub(policy.max_jobs), u64::MAX, &mut cleaned)
                .await?;
        }
        if policy.max_bytes > 0 {
            let bytes = self.ended().await?.1;
            self.take_down(None, u64::MAX, bytes.saturating_sub(policy.max_bytes), &mut cleaned)
                .await?;
        }
        loop {
            let gone = self.access.writer.write(Tidy { points: policy.max_points }).await?;
            cleaned.points += gone;
            if gone < CHUNK {
                break;
            }
        }
        for _ in 0..SHRINK_STEPS {
            let pages = self.access.writer.write(Shrink).await?;
            cleaned.pages += pages;
            if pages < PAGES {
                break;
            }
        }
        cleaned.files = self.remove_leftovers(LEFTOVER_AGE).await?;
        Ok(cleaned)
    }

    /// Removes jobs in transactions of limited size, so that other writes do not wait long.
    async fn take_down(
        &self,
        before: Option<i64>,
        mut jobs: u64,
        mut bytes: u64,
        cleaned: &mut CleanupCounts,
    ) -> Result<(), StoreError> {
        while jobs > 0 && bytes > 0 {
            let down = self.access.writer.write(TakeDown { before, jobs, bytes }).await?;
            self.access.objects.remove(down.files).await;
            cleaned.jobs += down.jobs;
            cleaned.bytes += down.bytes;
            if down.jobs == 0 {
                break;
            }
            jobs = jobs.saturating_sub(down.jobs);
            bytes = bytes.saturating_sub(down.bytes);
        }
        Ok(())
    }

    /// Returns the number of ended jobs, and the size of all jobs, bytes.
    async fn ended(&self) -> Result<(u64, u64), StoreError> {
        let counts = self.access.reader.counts(Visibility::All).await?;
        let ended = super::STATES.iter().filter(|state| super::has_ended(**state));
        let failed = self.access.reader.failed("count jobs");
        let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM owners";
        let row = sqlx::query(sum).fetch_one(&self.access.reader.pool).await;
        let bytes: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
        Ok((ended.map(|state| counts.of(*state)).sum(), u64::try_from(bytes).unwrap_or(0)))
    }

    /// Removes files to which no row refers. A crash may leave a file without its row.
    pub(super) async fn remove_leftovers(&self, older_than: Duration) -> Result<u64, StoreError> {
        let failed = |error: object_store::Error| StoreError::file("list", "objects", error.into());
        let mut removed = self.access.objects.remove_unfinished(older_than).await?;
        let mut files = self.access.objects.files().list(None);
        let now = SystemTime::now();
        while let Some(file) = files.try_next().await.map_err(failed)? {
            let modified: SystemTime = file.last_modified.into();
            let age = now.duration_since(modified).unwrap_or_default();
            if age < older_than {
                continue;
            }
            let key = file.location.to_string();
            if !self.named(&key).await? {
                self.access.objects.remove([key]).await;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns whether a row refers to a file.
    async fn named(&self, key: &str) -> Result<bool, StoreError> {
        let failed = self.access.reader.failed("find the row of a file");
        let parts: Vec<&str> = key.split('/').collect();
        let rows = match parts.as_slice() {
            ["jobs", _, id, _] => {
                let query = sqlx::query(
                    "SELECT object FROM requests WHERE job_id = $1 UNION ALL \
                     SELECT object FROM reports WHERE job_id = $1 UNION ALL \
                     SELECT object FROM artifacts WHERE job_id = $1",
                );
                query.bind(*id).fetch_all(&self.access.reader.pool).await
            }
            ["baselines", id] => {
                let query = sqlx::query("SELECT object FROM baselines WHERE id = $1");
                query.bind(*id).fetch_all(&self.access.reader.pool).await
            }
            ["matrices", _] => {
                let query = sqlx::query("SELECT object FROM matrices WHERE object = $1");
                query.bind(key).fetch_all(&self.access.reader.pool).await
            }
            // The store does not write such names, so the file belongs to another program.
            _ => return Ok(true),
        };
        let names: Result<HashSet<Option<String>>, _> =
            rows.map_err(&failed)?.iter().map(|row| row.try_get(0)).collect();
        Ok(names.map_err(failed)?.contains(&Some(key.to_owned())))
    }
}
