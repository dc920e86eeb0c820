//! Taking down what is older, or more, than is to be kept, and files that no row names.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use object_store::ObjectStore;
use sqlx::Row;

use super::access::Access;
use super::retention::{CHUNK, PAGES, Shrink, TakeDown, Tidy};
use super::{CleanupCounts, Retention, StoreError, Visibility};

/// Age from which a file that no row names is taken for a leftover: nobody takes so long between
/// writing a file and its row.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);

/// Transactions in which one clean-up makes the file smaller: by 16 MB at most, and the next goes on.
const SHRINK_STEPS: u32 = 20;

/// Removes what is not to be kept any longer.
pub struct Cleaner {
    pub(super) access: Access,
}

impl Cleaner {
    /// Takes down ended jobs beyond the age, number and bytes that are to be kept, the oldest first.
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

    /// In transactions of bounded size, so that nobody waits long for the writer.
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

    /// Jobs that have ended, and bytes of all jobs.
    async fn ended(&self) -> Result<(u64, u64), StoreError> {
        let counts = self.access.reader.counts(Visibility::All).await?;
        let ended = super::STATES.iter().filter(|state| super::has_ended(**state));
        let failed = self.access.reader.failed("count jobs");
        let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM owners";
        let row = sqlx::query(sum).fetch_one(&self.access.reader.pool).await;
        let bytes: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
        Ok((ended.map(|state| counts.of(*state)).sum(), u64::try_from(bytes).unwrap_or(0)))
    }

    /// Removes files that no row names: what a crash left between a file and its row.
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

    /// Whether a row names a file.
    async fn named(&self, key: &str) -> Result<bool, StoreError> {
        let failed = self.access.reader.failed("look for the row of a file");
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
            // Not one of ours: somebody put it there.
            _ => return Ok(true),
        };
        let names: Result<HashSet<Option<String>>, _> =
            rows.map_err(&failed)?.iter().map(|row| row.try_get(0)).collect();
        Ok(names.map_err(failed)?.contains(&Some(key.to_owned())))
    }
}
