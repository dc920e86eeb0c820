//! Reads jobs and reports. The main type is [`Reader`].

use std::cmp::Reverse;

use sqlx::any::AnyRow;
use sqlx::{AnyPool, AssertSqlSafe, Row};

use super::clock::time;
use super::condition::OpenedFile;
use super::objects::{Body, cut};
use super::state::{STATES, name, parse};
use super::{JobFilter, JobKind, JobPage, JobRow, JobStateCounts, Page, StoreError, Visibility};

use warpgauge_model::ErrorCode;

/// Columns of a [`JobRow`].
pub(super) const COLUMNS: &str = "id, owner, kind, state, priority, label, webhook, \
                                  idempotency_key, attempts, max_attempts, created_at, started_at, ended_at, \
                                  cancel_requested, error_code, error, bytes, verdict, \
                                  decision, worst_case, kernel, median_ns";

/// Converts a row with [`COLUMNS`] into a job.
pub(super) fn row_of(row: &AnyRow, place: &str) -> Result<JobRow, StoreError> {
    let failed = |source| StoreError::database("read a job", place, source);
    let odd = |what: String| StoreError::Odd { place: place.to_owned(), what };
    let id: String = row.try_get("id").map_err(failed)?;
    let kind: String = row.try_get("kind").map_err(failed)?;
    let state: String = row.try_get("state").map_err(failed)?;
    let kind = JobKind::named(&kind)
        .ok_or_else(|| odd(format!("job {id} of kind `{}`", cut(&kind, 32))))?;
    let state =
        parse(&state).ok_or_else(|| odd(format!("job {id} in state `{}`", cut(&state, 32))))?;
    let number = |column: &str| row.try_get::<i64, _>(column);
    let when = |column: &str| row.try_get::<Option<i64>, _>(column).map(|micros| micros.map(time));
    let read = || -> Result<JobRow, sqlx::Error> {
        Ok(JobRow {
            owner: row.try_get("owner")?,
            kind,
            state,
            priority: number("priority")?.clamp(i16::MIN.into(), i16::MAX.into()) as i16,
            label: row.try_get("label")?,
            webhook: row.try_get("webhook")?,
            idempotency_key: row.try_get("idempotency_key")?,
            attempts: u8::try_from(number("attempts")?).unwrap_or(u8::MAX),
            max_attempts: u8::try_from(number("max_attempts")?).unwrap_or(u8::MAX),
            created_at: time(number("created_at")?),
            started_at: when("started_at")?,
            ended_at: when("ended_at")?,
            cancel_requested: number("cancel_requested")? != 0,
            error_code: row.try_get::<Option<String>, _>("error_code")?.map(ErrorCode::from),
            error: row.try_get("error")?,
            verdict: row.try_get("verdict")?,
            decision: row.try_get("decision")?,
            worst_case: row.try_get("worst_case")?,
            kernel: row.try_get("kernel")?,
            median_ns: row.try_get("median_ns")?,
            bytes: u64::try_from(number("bytes")?).unwrap_or(0),
            id: id.clone(),
        })
    };
    read().map_err(failed)
}

/// Reads a body from the columns `codec`, `body` and `object`.
pub(super) fn body_of(row: &AnyRow) -> Result<Body, sqlx::Error> {
    Ok(Body {
        codec: row.try_get("codec")?,
        inline: row.try_get("body")?,
        object: row.try_get("object")?,
    })
}

/// Returns a WHERE clause for the conditions that have a value, and these values.
pub(super) fn conditions<'a>(
    conditions: &[(&'static str, Option<&'a str>)],
) -> (String, Vec<&'a str>) {
    let mut sql = String::new();
    let mut values = Vec::new();
    for (condition, value) in conditions {
        let Some(value) = value else { continue };
        sql.push_str(if values.is_empty() { " WHERE " } else { " AND " });
        values.push(*value);
        sql.push_str(&format!("{condition}${}", values.len()));
    }
    (sql, values)
}

/// Reads from a database.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) pool: AnyPool,
    pub(super) place: String,
    /// The database file. Errors report it if it is no longer at its path. `None` for a server.
    pub(super) file: Option<OpenedFile>,
}

impl Reader {
    pub(super) fn failed(
        &self,
        operation: &'static str,
    ) -> impl Fn(sqlx::Error) -> StoreError + use<> {
        let (place, file) = (self.place.clone(), self.file.clone());
        move |source| {
            // If the file is gone, the database's message would be misleading.
            let gone = file.as_ref().and_then(|file| file.check().err());
            gone.unwrap_or_else(|| StoreError::database(operation, &place, source))
        }
    }

    pub(super) async fn job(
        &self,
        id: &str,
        who: Visibility<'_>,
    ) -> Result<Option<JobRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM jobs WHERE id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id);
        let row = query.fetch_optional(&self.pool).await.map_err(self.failed("read a job"))?;
        let job = row.map(|row| row_of(&row, &self.place)).transpose()?;
        Ok(job.filter(|job| who.sees(&job.owner)))
    }

    /// Reads the row of a body from `requests` or `reports`.
    pub(super) async fn body_row(
        &self,
        sql: &'static str,
        id: &str,
    ) -> Result<Option<AnyRow>, StoreError> {
        let row = sqlx::query(sql).bind(id).fetch_optional(&self.pool).await;
        row.map_err(self.failed("read a stored body"))
    }

    /// Returns a page of jobs, newest first.
    ///
    /// Each requested state is a separate query, so that an index provides its rows in order. The
    /// number of rows that are read is limited by the number of states times the rows of a page,
    /// independent of the number of jobs.
    pub(super) async fn list(
        &self,
        filter: &JobFilter<'_>,
        page: &Page,
    ) -> Result<JobPage, StoreError> {
        let limit = page.limit.clamp(1, Page::MAX);
        if page.after.as_ref().is_some_and(|cursor| uuid::Uuid::parse_str(cursor).is_err()) {
            let problem = "is not the cursor of a previous page".to_owned();
            return Err(StoreError::Invalid { field: "cursor", problem });
        }
        let mut states: Vec<Option<&str>> =
            filter.states.iter().map(|state| Some(name(*state))).collect();
        states.sort_unstable();
        states.dedup();
        if states.is_empty() {
            states.push(None);
        }
        let before = match &page.after {
            Some(cursor) => self.arrival_of(cursor).await?,
            None => i64::MAX,
        };
        let mut jobs = Vec::new();
        for state in states {
            jobs.extend(self.list_state(filter, state, before, limit + 1).await?);
        }
        jobs.sort_unstable_by_key(|(arrival, _)| Reverse(*arrival));
        let more = jobs.len() > limit;
        jobs.truncate(limit);
        let jobs: Vec<JobRow> = jobs.into_iter().map(|(_, job)| job).collect();
        let next = jobs.last().filter(|_| more).map(|job| job.id.clone());
        Ok(JobPage { jobs, next })
    }

    /// Returns the arrival number of the last job of a page. If retention has removed that job,
    /// returns the number of the newest job with an older id.
    async fn arrival_of(&self, id: &str) -> Result<i64, StoreError> {
        let row = sqlx::query(
            "SELECT COALESCE((SELECT arrival FROM jobs WHERE id = $1), \
             (SELECT arrival + 1 FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT 1), 0)",
        );
        let row = row.bind(id).fetch_one(&self.pool).await;
        row.and_then(|row| row.try_get(0)).map_err(self.failed("list jobs"))
    }

    /// Returns jobs that arrived before `before`, the latest first, with their arrival numbers.
    async fn list_state(
        &self,
        filter: &JobFilter<'_>,
        state: Option<&str>,
        before: i64,
        limit: usize,
    ) -> Result<Vec<(i64, JobRow)>, StoreError> {
        let conditions = [
            ("owner = ", filter.owner),
            ("state = ", state),
            ("kind = ", filter.kind.map(JobKind::name)),
            ("verdict = ", filter.verdict),
            ("decision = ", filter.decision),
            ("label = ", filter.label),
            ("idempotency_key = ", filter.idempotency_key),
        ];
        let (condition, values) = super::read::conditions(&conditions);
        let (and, count) = (if values.is_empty() { " WHERE" } else { " AND" }, values.len());
        let sql = format!(
            "SELECT {COLUMNS}, arrival FROM jobs{condition}{and} arrival < ${} \
             ORDER BY arrival DESC LIMIT ${}",
            count + 1,
            count + 2
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in values {
            query = query.bind(value);
        }
        let rows = query.bind(before).bind(limit as i64).fetch_all(&self.pool).await;
        let failed = self.failed("list jobs");
        let arrived = |row: &AnyRow| {
            let arrival = row.try_get("arrival").map_err(&failed)?;
            Ok((arrival, row_of(row, &self.place)?))
        };
        rows.map_err(&failed)?.iter().map(arrived).collect()
    }

    /// Counts jobs by state. The query reads one row per owner, independent of the owner's number
    /// of jobs.
    pub(super) async fn counts(&self, who: Visibility<'_>) -> Result<JobStateCounts, StoreError> {
        let columns = STATES.map(|state| format!("n_{}", name(state)));
        let sums: Vec<String> = columns
            .iter()
            .map(String::as_str)
            .chain(["waiting", "running"])
            .map(|column| format!("CAST(COALESCE(SUM({column}), 0) AS BIGINT)"))
            .collect();
        let condition = if who.owner().is_some() { " WHERE owner = $1" } else { "" };
        let sql = format!("SELECT {} FROM owners{condition}", sums.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(sql));
        if let Some(owner) = who.owner() {
            query = query.bind(owner);
        }
        let failed = self.failed("count jobs");
        let row = query.fetch_one(&self.pool).await.map_err(&failed)?;
        let count = |column: usize| {
            row.try_get::<i64, _>(column).map(|count| u64::try_from(count).unwrap_or(0))
        };
        let mut counts = JobStateCounts::default();
        for (index, place) in counts.by_state.iter_mut().enumerate() {
            *place = count(index).map_err(&failed)?;
        }
        counts.waiting = count(9).map_err(&failed)?;
        counts.running = count(10).map_err(&failed)?;
        Ok(counts)
    }
}
