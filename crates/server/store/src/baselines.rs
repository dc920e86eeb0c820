//! Baselines of the gate. A name may have several versions; one version is promoted for each device
//! and method. The main type is [`BaselineStore`].

use futures_util::future::BoxFuture;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::access::Access;
use super::objects::Body;
use super::read::Reader;
use super::types::MAX_LABEL_BYTES;
use super::writer::{Batch, Write};
use super::{BaselineRow, NewBaselineRow, StoreError, StoredBaseline, Visibility};

/// Maximum number of baselines of one owner.
pub(super) const MAX_OF_OWNER: i64 = 10_000;

/// Checks the lengths of the texts in a baseline.
pub(super) fn check(baseline: &NewBaselineRow) -> Result<(), StoreError> {
    for (field, text, min) in
        [("name", &baseline.name, 1), ("pin", &baseline.pin, 0), ("owner", &baseline.owner, 0)]
    {
        if !(min..=MAX_LABEL_BYTES).contains(&text.len()) || text.contains('\0') {
            let problem = format!("must have {min} to {MAX_LABEL_BYTES} bytes, none of them NUL");
            return Err(StoreError::Invalid { field, problem });
        }
    }
    Ok(())
}

/// Stores the baselines of the gate.
pub struct BaselineStore {
    pub(super) access: Access,
}

impl BaselineStore {
    /// Stores a baseline as a new version under its name. Returns its id.
    pub async fn put(&self, mut baseline: NewBaselineRow) -> Result<String, StoreError> {
        check(&baseline)?;
        let id = uuid::Uuid::now_v7().to_string();
        let bytes = std::mem::take(&mut baseline.body);
        let body = self.access.objects.keep(&format!("baselines/{id}"), bytes).await?;
        let file = body.object.clone();
        let put = PutBaseline { id: id.clone(), baseline, body };
        match self.access.writer.write(put).await {
            Ok(()) => Ok(id),
            Err(error) => {
                if error.is_refusal() {
                    self.access.objects.remove(file).await;
                }
                Err(error)
            }
        }
    }

    /// Returns the promoted baseline of an owner for a name and a pin (GPU model, driver, method).
    pub async fn promoted(
        &self,
        owner: &str,
        name: &str,
        pin: &str,
    ) -> Result<Option<StoredBaseline>, StoreError> {
        let found = self.access.reader.promoted(owner, name, pin).await?;
        self.with_body(found).await
    }

    /// Returns a baseline by its id.
    pub async fn get(
        &self,
        id: &str,
        who: Visibility<'_>,
    ) -> Result<Option<StoredBaseline>, StoreError> {
        let found = self.access.reader.baseline(id, who).await?;
        self.with_body(found).await
    }

    async fn with_body(
        &self,
        found: Option<(BaselineRow, Body)>,
    ) -> Result<Option<StoredBaseline>, StoreError> {
        let Some((row, body)) = found else { return Ok(None) };
        let body = self.access.objects.fetch(body).await?;
        Ok(Some(StoredBaseline { row, body }))
    }

    /// Lists baselines sorted by name, newest first within a name. `None` lists all names.
    pub async fn list(
        &self,
        who: Visibility<'_>,
        name: Option<&str>,
        limit: usize,
    ) -> Result<Vec<BaselineRow>, StoreError> {
        self.access.reader.baselines(who, name, limit).await
    }

    /// Promotes a baseline. Returns whether it exists.
    pub async fn promote(&self, id: &str, who: Visibility<'_>) -> Result<bool, StoreError> {
        Ok(self.change(id, who, Change::Promote).await?.found)
    }

    /// Removes a baseline. Returns whether it existed.
    pub async fn delete(&self, id: &str, who: Visibility<'_>) -> Result<bool, StoreError> {
        let changed = self.change(id, who, Change::Delete).await?;
        self.access.objects.remove(changed.file).await;
        Ok(changed.found)
    }

    async fn change(
        &self,
        id: &str,
        who: Visibility<'_>,
        change: Change,
    ) -> Result<Changed, StoreError> {
        let owner = who.owner().map(str::to_owned);
        self.access.writer.write(ChangeBaseline { id: id.to_owned(), owner, change }).await
    }
}

/// A write that stores a new baseline.
pub(super) struct PutBaseline {
    pub(super) id: String,
    pub(super) baseline: NewBaselineRow,
    pub(super) body: Body,
}

impl Write for PutBaseline {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("store a baseline");
            let given = &self.baseline;
            let row = sqlx::query("SELECT COUNT(*) FROM baselines WHERE owner = $1")
                .bind(given.owner.as_str())
                .fetch_one(&mut *batch.connection)
                .await;
            let has: i64 = row.and_then(|row| row.try_get(0)).map_err(&failed)?;
            if has >= MAX_OF_OWNER {
                let problem =
                    format!("number {has}; at most {MAX_OF_OWNER} are allowed; delete some");
                return Err(StoreError::Invalid { field: "baselines", problem });
            }
            sqlx::query(
                "INSERT INTO baselines (id, owner, name, pin, promoted, created_at, job_id, codec, \
                 body, object) VALUES ($1, $2, $3, $4, 0, $5, $6, $7, $8, $9) \
                 ON CONFLICT (id) DO NOTHING",
            )
            .bind(self.id.as_str())
            .bind(given.owner.as_str())
            .bind(given.name.as_str())
            .bind(given.pin.as_str())
            .bind(super::clock::now())
            .bind(given.job.clone())
            .bind(self.body.codec)
            .bind(self.body.inline.clone())
            .bind(self.body.object.clone())
            .execute(&mut *batch.connection)
            .await
            .map_err(failed)?;
            if given.promote { promote(&self.id, batch).await.map(drop) } else { Ok(()) }
        })
    }
}

/// Promotes a baseline for its owner, name and pin, in place of the previously promoted one.
async fn promote(id: &str, batch: &mut Batch<'_>) -> Result<bool, StoreError> {
    let failed = batch.failed("promote a baseline");
    sqlx::query(
        "UPDATE baselines SET promoted = 0 WHERE promoted = 1 AND EXISTS (SELECT 1 FROM baselines b \
         WHERE b.id = $1 AND b.owner = baselines.owner AND b.name = baselines.name \
         AND b.pin = baselines.pin)",
    )
    .bind(id)
    .execute(&mut *batch.connection)
    .await
    .map_err(&failed)?;
    let promoted = sqlx::query("UPDATE baselines SET promoted = 1 WHERE id = $1").bind(id);
    let done = promoted.execute(&mut *batch.connection).await.map_err(failed)?;
    Ok(done.rows_affected() > 0)
}

/// Change of an existing baseline.
pub(super) enum Change {
    Promote,
    Delete,
}

/// A write that changes a baseline, if the caller may see it.
pub(super) struct ChangeBaseline {
    pub(super) id: String,
    pub(super) owner: Option<String>,
    pub(super) change: Change,
}

/// Result of a change: whether the baseline exists, and its file if the baseline was deleted.
pub(super) struct Changed {
    pub(super) found: bool,
    pub(super) file: Option<String>,
}

impl Write for ChangeBaseline {
    type Out = Changed;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Changed, StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("change a baseline");
            let row = sqlx::query("SELECT owner, object FROM baselines WHERE id = $1")
                .bind(self.id.as_str())
                .fetch_optional(&mut *batch.connection)
                .await
                .map_err(&failed)?;
            let Some(row) = row else { return Ok(Changed { found: false, file: None }) };
            let owner: String = row.try_get(0).map_err(&failed)?;
            if self.owner.as_ref().is_some_and(|own| *own != owner) {
                return Ok(Changed { found: false, file: None });
            }
            match self.change {
                Change::Promote => {
                    let found = promote(&self.id, batch).await?;
                    Ok(Changed { found, file: None })
                }
                Change::Delete => {
                    let delete = sqlx::query("DELETE FROM baselines WHERE id = $1");
                    let delete = delete.bind(self.id.as_str());
                    delete.execute(&mut *batch.connection).await.map_err(&failed)?;
                    Ok(Changed { found: true, file: row.try_get(1).map_err(failed)? })
                }
            }
        })
    }
}

const COLUMNS: &str = "id, owner, name, pin, promoted, created_at, job_id";

impl Reader {
    /// Lists baselines sorted by name, newest first within a name. `None` lists all names.
    pub(super) async fn baselines(
        &self,
        who: Visibility<'_>,
        name: Option<&str>,
        limit: usize,
    ) -> Result<Vec<BaselineRow>, StoreError> {
        let conditions = [("owner = ", who.owner()), ("name = ", name)];
        let (condition, values) = super::read::conditions(&conditions);
        let sql = format!(
            "SELECT {COLUMNS} FROM baselines{condition} ORDER BY owner, name, pin, id DESC LIMIT ${}",
            values.len() + 1
        );
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for value in values {
            query = query.bind(value);
        }
        let failed = self.failed("list baselines");
        let limit = limit.clamp(1, MAX_OF_OWNER as usize) as i64;
        let rows = query.bind(limit).fetch_all(&self.pool).await.map_err(&failed)?;
        rows.iter().map(baseline_of).collect::<Result<_, _>>().map_err(failed)
    }

    /// Returns the promoted baseline of this owner, name and pin, with its compressed body.
    pub(super) async fn promoted(
        &self,
        owner: &str,
        name: &str,
        pin: &str,
    ) -> Result<Option<(BaselineRow, Body)>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, codec, body, object FROM baselines \
             WHERE owner = $1 AND name = $2 AND pin = $3 AND promoted = 1"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(owner).bind(name).bind(pin);
        self.one(query.fetch_optional(&self.pool).await)
    }

    /// Returns a baseline by its id, with its compressed body.
    pub(super) async fn baseline(
        &self,
        id: &str,
        who: Visibility<'_>,
    ) -> Result<Option<(BaselineRow, Body)>, StoreError> {
        let sql = format!("SELECT {COLUMNS}, codec, body, object FROM baselines WHERE id = $1");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id);
        let found = self.one(query.fetch_optional(&self.pool).await)?;
        Ok(found.filter(|(row, _)| who.sees(&row.owner)))
    }

    fn one(
        &self,
        row: Result<Option<AnyRow>, sqlx::Error>,
    ) -> Result<Option<(BaselineRow, Body)>, StoreError> {
        let both = |row: AnyRow| Ok((baseline_of(&row)?, super::read::body_of(&row)?));
        row.and_then(|row| row.map(both).transpose()).map_err(self.failed("read a baseline"))
    }
}

fn baseline_of(row: &AnyRow) -> Result<BaselineRow, sqlx::Error> {
    Ok(BaselineRow {
        id: row.try_get("id")?,
        owner: row.try_get("owner")?,
        name: row.try_get("name")?,
        pin: row.try_get("pin")?,
        promoted: row.try_get::<i64, _>("promoted")? != 0,
        created_at: super::clock::time(row.try_get("created_at")?),
        job: row.try_get("job_id")?,
    })
}
