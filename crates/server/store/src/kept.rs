//! What is kept beside jobs: artifacts, announcements, history, baselines; and its retention.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use object_store::ObjectStore;
use sqlx::Row;

use super::artifacts::PutArtifact;
use super::baselines::{Change, ChangeBaseline, PutBaseline};
use super::deliveries::{Settle, TakeDue};
use super::open::folder;
use super::retention::{CHUNK, PAGES, Shrink, TakeDown, Tidy};
use super::types::MAX_LABEL_BYTES;
use super::{
    ArtifactRow, BaselineRow, Cleaned, Delivery, DeliveryOutcome, NewBaseline, Retention, Store,
    StoreError, StoredArtifact, StoredBaseline, Visibility,
};

/// Age from which a file that no row names is taken for a leftover: nobody takes so long between
/// writing a file and its row.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);

/// Transactions in which one clean-up makes the file smaller: by 16 MB at most, and the next goes on.
const SHRINK_STEPS: u32 = 20;

impl Store {
    /// Keeps a file of a job. The first of a name stays; the oldest of all give way to the budget.
    pub async fn put_artifact(
        &self,
        job: &str,
        name: &str,
        kind: &str,
        bytes: Vec<u8>,
    ) -> Result<(), StoreError> {
        for (field, text) in [("name", name), ("kind", kind)] {
            if !(1..=MAX_LABEL_BYTES).contains(&text.len()) || text.contains('\0') {
                let problem = format!("must have 1 to {MAX_LABEL_BYTES} bytes, none of them NUL");
                return Err(StoreError::Invalid { field, problem });
            }
        }
        let length = bytes.len() as u64;
        let key = format!("{}/artifact-{}", folder(job), uuid::Uuid::new_v4());
        let body = self.objects.keep(&key, bytes).await?;
        let file = body.object.clone();
        let put = PutArtifact {
            job: job.to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
            bytes: i64::try_from(length).unwrap_or(i64::MAX),
            packed: body.weight(length),
            body,
            budget: i64::try_from(self.artifacts_max_bytes).unwrap_or(i64::MAX),
        };
        let outcome = self.writer.write(put).await;
        match &outcome {
            Ok(put) => self.objects.remove(put.files.iter().cloned()).await,
            Err(error) if error.is_refusal() => self.objects.remove(file).await,
            Err(_) => {}
        }
        outcome.map(drop)
    }

    /// What a job left, in order of its keeping.
    pub async fn artifacts(&self, job: &str) -> Result<Vec<ArtifactRow>, StoreError> {
        let failed = self.reader.failed("list artifacts");
        let rows = sqlx::query(
            "SELECT name, kind, bytes, created_at, gone FROM artifacts WHERE job_id = $1 \
             ORDER BY created_at, name",
        )
        .bind(job)
        .fetch_all(&self.reader.pool)
        .await
        .map_err(&failed)?;
        let artifact = super::artifacts::artifact_of;
        rows.iter().map(artifact).collect::<Result<_, _>>().map_err(failed)
    }

    /// A file of a job; without bytes if it gave way to younger ones.
    pub async fn artifact(
        &self,
        job: &str,
        name: &str,
    ) -> Result<Option<StoredArtifact>, StoreError> {
        let failed = self.reader.failed("read an artifact");
        let row = sqlx::query(
            "SELECT name, kind, bytes, created_at, gone, codec, body, object FROM artifacts \
             WHERE job_id = $1 AND name = $2",
        )
        .bind(job)
        .bind(name)
        .fetch_optional(&self.reader.pool)
        .await
        .map_err(&failed)?;
        let Some(row) = row else { return Ok(None) };
        let artifact = super::artifacts::artifact_of(&row).map_err(&failed)?;
        let body = super::read::body_of(&row).map_err(failed)?;
        let bytes = if artifact.gone { None } else { Some(self.objects.fetch(body).await?) };
        Ok(Some(StoredArtifact { artifact, bytes }))
    }

    /// When the next webhook is due: how long from now, zero if it is; `None` if none waits.
    pub async fn next_delivery(&self) -> Result<Option<Duration>, StoreError> {
        self.bell.looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let failed = self.reader.failed("look for webhooks");
        let row = sqlx::query("SELECT MIN(next_at) FROM deliveries WHERE state = 'pending'")
            .fetch_one(&self.reader.pool)
            .await
            .map_err(&failed)?;
        let next: Option<i64> = row.try_get(0).map_err(&failed)?;
        let wait = |next: i64| {
            u64::try_from(next - super::clock::now()).map_or(Duration::ZERO, Duration::from_micros)
        };
        Ok(next.map(wait))
    }

    /// Returns once a job with a webhook has ended in this process since the last call. What others
    /// entered, and what is tried again, does not ring: see [`Store::next_delivery`].
    pub async fn wait_for_delivery(&self) {
        self.bell.heard().await;
    }

    /// How often [`Store::next_delivery`] was asked.
    pub fn looks_for_deliveries(&self) -> u64 {
        self.bell.looks.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Webhooks that are due. Each is this process' for a minute; then it is due again.
    pub async fn due_deliveries(&self, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        self.writer.write(TakeDue { limit }).await
    }

    /// Notes what became of a webhook.
    pub async fn settle_delivery(
        &self,
        job: &str,
        outcome: DeliveryOutcome,
    ) -> Result<(), StoreError> {
        self.writer.write(Settle { job: job.to_owned(), outcome }).await
    }

    /// Keeps a baseline, as a new version under its name; its id.
    pub async fn put_baseline(&self, mut baseline: NewBaseline) -> Result<String, StoreError> {
        super::baselines::check(&baseline)?;
        let id = uuid::Uuid::now_v7().to_string();
        let bytes = std::mem::take(&mut baseline.body);
        let body = self.objects.keep(&format!("baselines/{id}"), bytes).await?;
        let file = body.object.clone();
        let put = PutBaseline { id: id.clone(), baseline, body };
        match self.writer.write(put).await {
            Ok(()) => Ok(id),
            Err(error) => {
                if error.is_refusal() {
                    self.objects.remove(file).await;
                }
                Err(error)
            }
        }
    }

    /// The promoted baseline of that owner, name and pin.
    pub async fn promoted_baseline(
        &self,
        owner: &str,
        name: &str,
        pin: &str,
    ) -> Result<Option<StoredBaseline>, StoreError> {
        let found = self.reader.promoted(owner, name, pin).await?;
        self.with_body(found).await
    }

    /// A baseline by its id.
    pub async fn baseline(
        &self,
        id: &str,
        who: Visibility<'_>,
    ) -> Result<Option<StoredBaseline>, StoreError> {
        let found = self.reader.baseline(id, who).await?;
        self.with_body(found).await
    }

    async fn with_body(
        &self,
        found: Option<(BaselineRow, super::objects::Body)>,
    ) -> Result<Option<StoredBaseline>, StoreError> {
        let Some((row, body)) = found else { return Ok(None) };
        let body = self.objects.fetch(body).await?;
        Ok(Some(StoredBaseline { row, body }))
    }

    /// Baselines by name, newest first within one; of one name, or of all.
    pub async fn baselines(
        &self,
        who: Visibility<'_>,
        name: Option<&str>,
        limit: usize,
    ) -> Result<Vec<BaselineRow>, StoreError> {
        self.reader.baselines(who, name, limit).await
    }

    /// Makes a baseline the one that counts; whether there is such a one.
    pub async fn promote_baseline(
        &self,
        id: &str,
        who: Visibility<'_>,
    ) -> Result<bool, StoreError> {
        Ok(self.change_baseline(id, who, Change::Promote).await?.found)
    }

    /// Removes a baseline; whether there was such a one.
    pub async fn delete_baseline(&self, id: &str, who: Visibility<'_>) -> Result<bool, StoreError> {
        let changed = self.change_baseline(id, who, Change::Delete).await?;
        self.objects.remove(changed.file).await;
        Ok(changed.found)
    }

    async fn change_baseline(
        &self,
        id: &str,
        who: Visibility<'_>,
        change: Change,
    ) -> Result<super::baselines::Changed, StoreError> {
        let owner = who.owner().map(str::to_owned);
        self.writer.write(ChangeBaseline { id: id.to_owned(), owner, change }).await
    }

    /// Takes down ended jobs beyond the age, number and bytes that are to be kept, the oldest first.
    pub async fn cleanup(&self, policy: &Retention) -> Result<Cleaned, StoreError> {
        let mut cleaned = Cleaned::default();
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
            let gone = self.writer.write(Tidy { points: policy.max_points }).await?;
            cleaned.points += gone;
            if gone < CHUNK {
                break;
            }
        }
        for _ in 0..SHRINK_STEPS {
            let pages = self.writer.write(Shrink).await?;
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
        cleaned: &mut Cleaned,
    ) -> Result<(), StoreError> {
        while jobs > 0 && bytes > 0 {
            let down = self.writer.write(TakeDown { before, jobs, bytes }).await?;
            self.objects.remove(down.files).await;
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
        let counts = self.reader.counts(Visibility::All).await?;
        let ended = super::STATES.iter().filter(|state| super::has_ended(**state));
        let failed = self.reader.failed("count jobs");
        let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM owners";
        let row = sqlx::query(sum).fetch_one(&self.reader.pool).await;
        let bytes: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
        Ok((ended.map(|state| counts.of(*state)).sum(), u64::try_from(bytes).unwrap_or(0)))
    }

    /// Removes files that no row names: what a crash left between a file and its row.
    pub(super) async fn remove_leftovers(&self, older_than: Duration) -> Result<u64, StoreError> {
        let failed = |error: object_store::Error| StoreError::file("list", "objects", error.into());
        let mut removed = self.objects.remove_unfinished(older_than).await?;
        let mut files = self.objects.files().list(None);
        let now = SystemTime::now();
        while let Some(file) = files.try_next().await.map_err(failed)? {
            let modified: SystemTime = file.last_modified.into();
            let age = now.duration_since(modified).unwrap_or_default();
            if age < older_than {
                continue;
            }
            let key = file.location.to_string();
            if !self.named(&key).await? {
                self.objects.remove([key]).await;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Whether a row names a file.
    async fn named(&self, key: &str) -> Result<bool, StoreError> {
        let failed = self.reader.failed("look for the row of a file");
        let parts: Vec<&str> = key.split('/').collect();
        let rows = match parts.as_slice() {
            ["jobs", _, id, _] => {
                let query = sqlx::query(
                    "SELECT object FROM requests WHERE job_id = $1 UNION ALL \
                     SELECT object FROM reports WHERE job_id = $1 UNION ALL \
                     SELECT object FROM artifacts WHERE job_id = $1",
                );
                query.bind(*id).fetch_all(&self.reader.pool).await
            }
            ["baselines", id] => {
                let query = sqlx::query("SELECT object FROM baselines WHERE id = $1");
                query.bind(*id).fetch_all(&self.reader.pool).await
            }
            ["matrices", _] => {
                let query = sqlx::query("SELECT object FROM matrices WHERE object = $1");
                query.bind(key).fetch_all(&self.reader.pool).await
            }
            // Not one of ours: somebody put it there.
            _ => return Ok(true),
        };
        let names: Result<HashSet<Option<String>>, _> =
            rows.map_err(&failed)?.iter().map(|row| row.try_get(0)).collect();
        Ok(names.map_err(failed)?.contains(&Some(key.to_owned())))
    }
}
