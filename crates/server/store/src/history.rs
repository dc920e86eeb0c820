//! Measured values over time.

use futures_util::future::BoxFuture;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::clock::{micros, time};
use super::read::Reader;
use super::types::MAX_LABEL_BYTES;
use super::writer::{Batch, Write};
use super::{HistoryRow, Page, PointPage, SeriesFilter, SeriesRow, StoreError};

/// Maximum length of the name of a case, metric, device or method, bytes.
const MAX_NAME_BYTES: usize = 255;

/// Maximum size of `detail`, bytes.
const MAX_DETAIL_BYTES: usize = 16 << 10;

/// Checks the lengths and numbers of a point.
pub(super) fn check(point: &HistoryRow) -> Result<(), StoreError> {
    let names = [
        ("case", &point.case),
        ("metric", &point.metric),
        ("device", &point.device),
        ("method", &point.method),
        ("owner", &point.owner),
    ];
    let optional = [("revision", &point.revision), ("job", &point.job)];
    let given = optional.iter().filter_map(|(field, text)| text.as_ref().map(|t| (*field, t)));
    for (field, text) in names.into_iter().chain(given) {
        if text.len() > MAX_NAME_BYTES.min(MAX_LABEL_BYTES) || text.contains('\0') {
            let problem =
                format!("is too long, or contains NUL; {MAX_NAME_BYTES} bytes are allowed");
            return Err(StoreError::Invalid { field, problem });
        }
    }
    let numbers = [Some(point.value), point.low, point.high];
    if numbers.into_iter().flatten().any(|number| !number.is_finite()) {
        let problem = "is not a finite number".to_owned();
        return Err(StoreError::Invalid { field: "value", problem });
    }
    if point.detail.len() > MAX_DETAIL_BYTES {
        let problem = format!("has {} bytes; {MAX_DETAIL_BYTES} are allowed", point.detail.len());
        return Err(StoreError::Invalid { field: "detail", problem });
    }
    Ok(())
}

/// A write that appends points to the history.
pub(super) struct Append {
    points: Vec<(String, HistoryRow)>,
}

impl Append {
    /// Appends points that were checked.
    pub(super) fn new(points: Vec<HistoryRow>) -> Self {
        let named = |point| (uuid::Uuid::now_v7().to_string(), point);
        Self { points: points.into_iter().map(named).collect() }
    }

    /// Appends the points that pass the check. The others are only logged, because an invalid point
    /// must not prevent a job's end from being stored.
    pub(super) fn what_fits(mut points: Vec<HistoryRow>) -> Self {
        points.retain(|point| match check(point) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "a point of the history cannot be stored");
                false
            }
        });
        Self::new(points)
    }
}

impl Write for Append {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            if self.points.is_empty() {
                return Ok(());
            }
            let failed = batch.failed("append to the history");
            for (id, point) in &self.points {
                let inserted = insert(id, point, batch).await?;
                if !inserted {
                    continue;
                }
                sqlx::query(
                    "INSERT INTO series (owner, case_name, metric, device, method, points, \
                     latest_at) VALUES ($1, $2, $3, $4, $5, 1, $6) \
                     ON CONFLICT (case_name, owner, metric, device, method) DO UPDATE SET \
                     points = series.points + 1, latest_at = CASE WHEN series.latest_at < \
                     excluded.latest_at THEN excluded.latest_at ELSE series.latest_at END",
                )
                .bind(point.owner.as_str())
                .bind(point.case.as_str())
                .bind(point.metric.as_str())
                .bind(point.device.as_str())
                .bind(point.method.as_str())
                .bind(micros(point.at))
                .execute(&mut *batch.connection)
                .await
                .map_err(&failed)?;
            }
            let count = sqlx::query("UPDATE numbers SET value = value + $1 WHERE name = 'points'");
            let count = count.bind(self.points.len() as i64);
            count.execute(&mut *batch.connection).await.map(drop).map_err(failed)
        })
    }
}

async fn insert(id: &str, point: &HistoryRow, batch: &mut Batch<'_>) -> Result<bool, StoreError> {
    let inserted = sqlx::query(
        "INSERT INTO points (id, owner, case_name, metric, device, method, at, value, low, high, \
         revision, job_id, detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
         ON CONFLICT (id) DO NOTHING",
    )
    .bind(id)
    .bind(point.owner.as_str())
    .bind(point.case.as_str())
    .bind(point.metric.as_str())
    .bind(point.device.as_str())
    .bind(point.method.as_str())
    .bind(micros(point.at))
    .bind(point.value)
    .bind(point.low)
    .bind(point.high)
    .bind(point.revision.clone())
    .bind(point.job.clone())
    .bind(point.detail.clone())
    .execute(&mut *batch.connection)
    .await;
    let failed = batch.failed("append to the history");
    Ok(inserted.map_err(failed)?.rows_affected() > 0)
}

/// Removes the oldest points, so that `keep` remain, but at most `most` of them. Returns the number
/// of removed points.
pub(super) async fn take_down(
    keep: u64,
    most: u64,
    batch: &mut Batch<'_>,
) -> Result<u64, StoreError> {
    let failed = batch.failed("remove old points");
    let row = sqlx::query("SELECT value FROM numbers WHERE name = 'points'")
        .fetch_one(&mut *batch.connection)
        .await;
    let there: i64 = row.and_then(|row| row.try_get(0)).map_err(&failed)?;
    let excess = u64::try_from(there).unwrap_or(0).saturating_sub(keep).min(most);
    if excess == 0 {
        return Ok(0);
    }
    let rows = sqlx::query(
        "DELETE FROM points WHERE id IN (SELECT id FROM points ORDER BY id LIMIT $1) \
         RETURNING owner, case_name, metric, device, method",
    )
    .bind(excess as i64)
    .fetch_all(&mut *batch.connection)
    .await
    .map_err(&failed)?;
    for row in &rows {
        let mut query = sqlx::query(
            "UPDATE series SET points = points - 1 WHERE owner = $1 AND case_name = $2 \
             AND metric = $3 AND device = $4 AND method = $5",
        );
        for column in 0..5 {
            query = query.bind(row.try_get::<String, _>(column).map_err(&failed)?);
        }
        query.execute(&mut *batch.connection).await.map_err(&failed)?;
    }
    for sql in [
        sqlx::query("DELETE FROM series WHERE points <= 0"),
        sqlx::query("UPDATE numbers SET value = value - $1 WHERE name = 'points'")
            .bind(rows.len() as i64),
    ] {
        sql.execute(&mut *batch.connection).await.map_err(&failed)?;
    }
    Ok(rows.len() as u64)
}

impl Reader {
    /// Returns a page of points, newest first.
    pub(super) async fn series(
        &self,
        filter: &SeriesFilter<'_>,
        page: &Page,
    ) -> Result<PointPage, StoreError> {
        let limit = page.limit.clamp(1, Page::MAX);
        let conditions = [
            ("case_name = ", Some(filter.case)),
            ("owner = ", filter.owner.owner()),
            ("metric = ", filter.metric),
            ("device = ", filter.device),
            ("method = ", filter.method),
            ("id < ", page.after.as_deref()),
        ];
        let (condition, values) = super::read::conditions(&conditions);
        let sql = format!(
            "SELECT id, owner, case_name, metric, device, method, at, value, low, high, revision, \
             job_id, detail FROM points{condition} ORDER BY id DESC LIMIT ${}",
            values.len() + 1
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in values {
            query = query.bind(value);
        }
        let failed = self.failed("read the history");
        let rows = query.bind(limit as i64 + 1).fetch_all(&self.pool).await.map_err(&failed)?;
        let more = rows.len() > limit;
        let rows = &rows[..rows.len().min(limit)];
        let points: Result<Vec<HistoryRow>, _> = rows.iter().map(point_of).collect();
        let last = rows.last().filter(|_| more).map(|row| row.try_get("id")).transpose();
        Ok(PointPage { points: points.map_err(&failed)?, next: last.map_err(failed)? })
    }

    /// Lists the series, sorted by name. The list starts after `after`.
    pub(super) async fn all_series(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SeriesRow>, StoreError> {
        let conditions = [("owner = ", owner), ("case_name > ", after)];
        let (condition, values) = super::read::conditions(&conditions);
        let sql = format!(
            "SELECT owner, case_name, metric, device, method, points, latest_at FROM series\
             {condition} ORDER BY case_name, owner, metric, device, method LIMIT ${}",
            values.len() + 1
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in values {
            query = query.bind(value);
        }
        let failed = self.failed("list the history");
        let limit = limit.clamp(1, 10_000) as i64;
        let rows = query.bind(limit).fetch_all(&self.pool).await.map_err(&failed)?;
        let series = |row: &AnyRow| -> Result<SeriesRow, sqlx::Error> {
            Ok(SeriesRow {
                owner: row.try_get(0)?,
                case: row.try_get(1)?,
                metric: row.try_get(2)?,
                device: row.try_get(3)?,
                method: row.try_get(4)?,
                points: u64::try_from(row.try_get::<i64, _>(5)?).unwrap_or(0),
                latest_at: time(row.try_get(6)?),
            })
        };
        rows.iter().map(series).collect::<Result<_, _>>().map_err(failed)
    }
}

fn point_of(row: &AnyRow) -> Result<HistoryRow, sqlx::Error> {
    Ok(HistoryRow {
        owner: row.try_get("owner")?,
        case: row.try_get("case_name")?,
        metric: row.try_get("metric")?,
        device: row.try_get("device")?,
        method: row.try_get("method")?,
        at: time(row.try_get("at")?),
        value: row.try_get("value")?,
        low: row.try_get("low")?,
        high: row.try_get("high")?,
        revision: row.try_get("revision")?,
        job: row.try_get("job_id")?,
        detail: row.try_get("detail")?,
    })
}
