//! Artifacts of jobs. Their total size is limited: the oldest are removed first. The main type is
//! [`ArtifactStore`].

use futures_util::future::BoxFuture;
use sqlx::Row;

use super::access::Access;
use super::objects::{Body, folder};
use super::types::MAX_LABEL_BYTES;
use super::writer::{Batch, Write};
use super::{ArtifactRow, StoreError, StoredArtifact};

/// Maximum number of artifacts of one job.
pub(super) const MAX_OF_JOB: i64 = 256;

/// Stores the artifacts of jobs.
pub struct ArtifactStore {
    pub(super) access: Access,
    /// Maximum size of all artifacts together, bytes.
    pub(super) max_bytes: u64,
}

impl ArtifactStore {
    /// Stores an artifact of a job. A second artifact with the same name is ignored. The oldest
    /// artifacts are removed if the limit requires it.
    pub async fn put(
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
        let body = self.access.objects.keep(&key, bytes).await?;
        let file = body.object.clone();
        let put = PutArtifact {
            job: job.to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
            bytes: i64::try_from(length).unwrap_or(i64::MAX),
            packed: body.weight(length),
            body,
            budget: i64::try_from(self.max_bytes).unwrap_or(i64::MAX),
        };
        let outcome = self.access.writer.write(put).await;
        match &outcome {
            Ok(put) => self.access.objects.remove(put.files.iter().cloned()).await,
            Err(error) if error.is_refusal() => self.access.objects.remove(file).await,
            Err(_) => {}
        }
        outcome.map(drop)
    }

    /// Lists the artifacts of a job, in the order in which they were stored.
    pub async fn list(&self, job: &str) -> Result<Vec<ArtifactRow>, StoreError> {
        let failed = self.access.reader.failed("list artifacts");
        let rows = sqlx::query(
            "SELECT name, kind, bytes, created_at, gone FROM artifacts WHERE job_id = $1 \
             ORDER BY created_at, name",
        )
        .bind(job)
        .fetch_all(&self.access.reader.pool)
        .await
        .map_err(&failed)?;
        rows.iter().map(artifact_of).collect::<Result<_, _>>().map_err(failed)
    }

    /// Returns an artifact of a job. Its content is missing if it was removed to make room for
    /// newer artifacts.
    pub async fn get(&self, job: &str, name: &str) -> Result<Option<StoredArtifact>, StoreError> {
        let failed = self.access.reader.failed("read an artifact");
        let row = sqlx::query(
            "SELECT name, kind, bytes, created_at, gone, codec, body, object FROM artifacts \
             WHERE job_id = $1 AND name = $2",
        )
        .bind(job)
        .bind(name)
        .fetch_optional(&self.access.reader.pool)
        .await
        .map_err(&failed)?;
        let Some(row) = row else { return Ok(None) };
        let artifact = artifact_of(&row).map_err(&failed)?;
        let body = super::read::body_of(&row).map_err(failed)?;
        let bytes = if artifact.gone { None } else { Some(self.access.objects.fetch(body).await?) };
        Ok(Some(StoredArtifact { artifact, bytes }))
    }
}

/// A write that stores an artifact. It returns the files of the artifacts that it removed.
pub(super) struct PutArtifact {
    pub(super) job: String,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) bytes: i64,
    pub(super) packed: i64,
    pub(super) body: Body,
    /// Maximum size of all artifacts together, bytes.
    pub(super) budget: i64,
}

/// Result of [`PutArtifact`].
pub(super) struct Put {
    /// Files to which no row refers any longer.
    pub(super) files: Vec<String>,
}

impl Write for PutArtifact {
    type Out = Put;

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            self.check(batch).await?;
            let failed = batch.failed("store an artifact");
            let fits = self.packed <= self.budget;
            let inserted = sqlx::query(
                "INSERT INTO artifacts (job_id, name, kind, created_at, bytes, packed, gone, codec, \
                 body, object) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                 ON CONFLICT (job_id, name) DO NOTHING",
            )
            .bind(self.job.as_str())
            .bind(self.name.as_str())
            .bind(self.kind.as_str())
            .bind(super::clock::now())
            .bind(self.bytes)
            .bind(self.packed)
            .bind(i64::from(!fits))
            .bind(self.body.codec)
            .bind(self.body.inline.clone().filter(|_| fits))
            .bind(self.body.object.clone().filter(|_| fits))
            .execute(&mut *batch.connection)
            .await;
            let kept = fits && inserted.map_err(&failed)?.rows_affected() > 0;
            let mut files: Vec<String> =
                self.body.object.clone().filter(|_| !kept).into_iter().collect();
            let total = add_bytes(if kept { self.packed } else { 0 }, batch).await?;
            if total > self.budget {
                files.extend(make_room(total - self.budget, batch).await?);
            }
            Ok(Put { files })
        })
    }
}

impl PutArtifact {
    /// Checks that the job exists and has fewer than the maximum number of artifacts.
    async fn check(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        let failed = batch.failed("store an artifact");
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM artifacts WHERE job_id = $1), \
             (SELECT COUNT(*) FROM jobs WHERE id = $1)",
        )
        .bind(self.job.as_str())
        .fetch_one(&mut *batch.connection)
        .await
        .map_err(&failed)?;
        let (has, exists): (i64, i64) =
            (row.try_get(0).map_err(&failed)?, row.try_get(1).map_err(&failed)?);
        if exists == 0 {
            return Err(StoreError::LeaseLost { job: self.job.clone() });
        }
        if has >= MAX_OF_JOB {
            let problem =
                format!("number {has} for job {}; at most {MAX_OF_JOB} are allowed", self.job);
            return Err(StoreError::Invalid { field: "artifacts", problem });
        }
        Ok(())
    }
}

/// Adds to the counter of artifact bytes, and returns its new value.
pub(super) async fn add_bytes(bytes: i64, batch: &mut Batch<'_>) -> Result<i64, StoreError> {
    let failed = batch.failed("count the bytes of artifacts");
    let row = sqlx::query(
        "UPDATE numbers SET value = value + $1 WHERE name = 'artifact_bytes' RETURNING value",
    )
    .bind(bytes)
    .fetch_one(&mut *batch.connection)
    .await;
    row.and_then(|row| row.try_get(0)).map_err(failed)
}

/// Removes the oldest artifacts until this many bytes are free. Returns their files.
async fn make_room(excess: i64, batch: &mut Batch<'_>) -> Result<Vec<String>, StoreError> {
    let failed = batch.failed("make room for artifacts");
    let (mut freed, mut files) = (0, Vec::new());
    while freed < excess {
        let rows = sqlx::query(
            "SELECT job_id, name, packed, object FROM artifacts WHERE gone = 0 \
             ORDER BY created_at, job_id, name LIMIT 64",
        )
        .fetch_all(&mut *batch.connection)
        .await
        .map_err(&failed)?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            if freed >= excess {
                break;
            }
            let job: String = row.try_get(0).map_err(&failed)?;
            let name: String = row.try_get(1).map_err(&failed)?;
            let packed: i64 = row.try_get(2).map_err(&failed)?;
            files.extend(row.try_get::<Option<String>, _>(3).map_err(&failed)?);
            let gone = sqlx::query(
                "UPDATE artifacts SET gone = 1, body = NULL, object = NULL \
                 WHERE job_id = $1 AND name = $2",
            );
            gone.bind(job).bind(name).execute(&mut *batch.connection).await.map_err(&failed)?;
            freed += packed;
        }
    }
    add_bytes(-freed, batch).await?;
    Ok(files)
}

/// Reads an artifact's row, without its body.
pub(super) fn artifact_of(row: &sqlx::any::AnyRow) -> Result<ArtifactRow, sqlx::Error> {
    Ok(ArtifactRow {
        name: row.try_get("name")?,
        kind: row.try_get("kind")?,
        bytes: u64::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or(0),
        created_at: super::clock::time(row.try_get("created_at")?),
        gone: row.try_get::<i64, _>("gone")? != 0,
    })
}
