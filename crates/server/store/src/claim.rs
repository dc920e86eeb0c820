//! Claims the next job. Owners take turns fairly; within one owner, priority and then age decide.
//!
//! The device time that an owner has used decides its turn (start-time fair queueing): the owner
//! with the least time goes first. An owner that returns after a time without jobs starts with at
//! least the time of the owner that had the last turn. So an owner gains no credit while it has no
//! jobs.

use futures_util::future::BoxFuture;
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::oneshot;

use super::objects::Body;
use super::offer::MOST_REQUIREMENTS;
use super::read::{COLUMNS, row_of};
use super::submit::ADVANCE_CHARGE;
use super::tally::Place;
use super::writer::{AnyWrite, Batch};
use super::{JobRow, StoreError};

/// Number of owners that the query reads in addition to one for each claim.
const MORE_OWNERS: usize = 32;

/// A claimed job whose request is not fetched yet.
pub(super) struct Taken {
    pub(super) job: JobRow,
    pub(super) epoch: i64,
    pub(super) body: Body,
    /// Lease that requeues the job if the claimer leaves before it receives the job.
    pub(super) lease: Option<super::JobLease>,
}

/// A claim that waits for the writer.
pub(super) struct Claiming {
    pub(super) reply: oneshot::Sender<Result<Option<Taken>, StoreError>>,
    /// Creates the lease of the claimed job.
    pub(super) lease: super::lease::LeaseMaker,
    /// Owners whose jobs the claim must not take.
    pub(super) not_of: Vec<String>,
}

/// Claims that are handled in one transaction.
pub(super) struct Claims {
    claims: Vec<Claiming>,
    /// For each claim, the job that it received, if any.
    taken: Vec<Option<Taken>>,
}

impl Claims {
    pub(super) fn new(claims: Vec<Claiming>) -> Self {
        Self { claims, taken: Vec::new() }
    }
}

impl AnyWrite for Claims {
    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.taken = take(&self.claims, batch).await?;
            Ok(())
        })
    }

    fn split(self: Box<Self>) -> Vec<Box<dyn AnyWrite>> {
        let one = |claim| Box::new(Self::new(vec![claim])) as Box<dyn AnyWrite>;
        self.claims.into_iter().map(one).collect()
    }

    fn weight(&self) -> usize {
        self.taken.iter().flatten().count()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let mut failure = failure;
        let mut taken = self.taken.into_iter();
        for claim in self.claims {
            let outcome = match failure.take() {
                Some(error) => Err(error),
                None => Ok(taken.next().flatten().map(|mut taken| {
                    let (id, state) = (taken.job.id.clone(), taken.job.state);
                    taken.lease = Some(claim.lease.lease(id, taken.epoch, state));
                    taken
                })),
            };
            // If the claimer has left, the dropped lease requeues the job.
            let _ = claim.reply.send(outcome);
        }
    }
}

struct Candidate {
    owner: String,
    running: i64,
    served: i64,
}

/// Selects the waiting jobs that this process may take.
enum Choice {
    /// All jobs: no waiting job has requirements.
    Plain,
    /// Jobs without requirements, and jobs with one of these requirements.
    These(Vec<String>),
}

async fn take(
    claims: &[Claiming],
    batch: &mut Batch<'_>,
) -> Result<Vec<Option<Taken>>, StoreError> {
    let choice = choice(batch).await?;
    let passed_over = claims.iter().map(|claim| claim.not_of.len()).max().unwrap_or(0);
    let mut candidates = candidates(claims.len() + passed_over, &choice, batch).await?;
    let mut taken = Vec::with_capacity(claims.len());
    for claim in claims {
        taken.push(take_for(claim, &mut candidates, &choice, batch).await?);
    }
    Ok(taken)
}

/// Takes the next job for a claim. Returns `None` if there is none.
async fn take_for(
    claim: &Claiming,
    candidates: &mut Vec<Candidate>,
    choice: &Choice,
    batch: &mut Batch<'_>,
) -> Result<Option<Taken>, StoreError> {
    let limit = i64::try_from(batch.context.quotas.max_running).unwrap_or(i64::MAX);
    loop {
        let may = |candidate: &&mut Candidate| !claim.not_of.contains(&candidate.owner);
        let least = candidates
            .iter_mut()
            .filter(may)
            .min_by(|a, b| (a.served, &a.owner).cmp(&(b.served, &b.owner)));
        let Some(candidate) = least else { return Ok(None) };
        let owner = candidate.owner.clone();
        if limit > 0 && candidate.running >= limit {
            candidates.retain(|candidate| candidate.owner != owner);
            continue;
        }
        match take_from(&owner, choice, batch).await? {
            Some(job) => {
                batch.tally.advance_to(candidate.served);
                batch.tally.served(&owner, ADVANCE_CHARGE);
                let (from, to) = (Place::waiting(job.job.state), Place::held(job.job.state));
                batch.tally.moved(&owner, Some(from), Some(to));
                batch.leases.push((job.job.id.clone(), Some(job.epoch)));
                candidate.served = candidate.served.saturating_add(ADVANCE_CHARGE);
                candidate.running += 1;
                return Ok(Some(job));
            }
            None => candidates.retain(|candidate| candidate.owner != owner),
        }
    }
}

/// Returns the SQL statement that finds an owner's next job whose `requires` matches `which`. The
/// statement takes one step down the index, independent of the number of waiting jobs. Its order
/// must be that of the index; otherwise PostgreSQL does not use the index.
fn next_of(owner: &str, columns: &str, which: &str, on_postgres: bool) -> String {
    let indexed = indexed("jobs_waiting", on_postgres);
    format!(
        "SELECT {columns} FROM jobs{indexed} WHERE jobs.owner = {owner} AND state = 'queued' \
         AND holder IS NULL AND jobs.requires {which} \
         ORDER BY jobs.requires, priority DESC, arrival LIMIT 1"
    )
}

/// Returns the clause that names the index for SQLite. SQLite has no statistics on waiting jobs;
/// without the clause it scans all of them through another index. A statement that cannot use the
/// named index fails.
pub(super) fn indexed(name: &str, on_postgres: bool) -> String {
    if on_postgres { String::new() } else { format!(" INDEXED BY {name}") }
}

/// Reads the distinct requirements of waiting jobs. Each requirement takes one step down the index,
/// independent of the number of jobs that have it.
async fn choice(batch: &mut Batch<'_>) -> Result<Choice, StoreError> {
    let on_postgres = batch.is_postgres();
    let indexed = indexed("jobs_requiring", on_postgres);
    // This repeats the condition of the partial index.
    let there = if on_postgres { "length(requires) >= 0" } else { "requires IS NOT NULL" };
    let next = |more: &str| {
        format!(
            "SELECT requires FROM jobs{indexed} WHERE state = 'queued' AND holder IS NULL \
             AND {there}{more} ORDER BY requires LIMIT 1"
        )
    };
    let failed = batch.failed("read the requirements of jobs");
    let mut found: Vec<String> = Vec::new();
    let takes = batch.context.offered.takes();
    for _ in 0..MOST_REQUIREMENTS {
        let query = match found.last() {
            None => sqlx::query(AssertSqlSafe(next(""))),
            Some(last) => sqlx::query(AssertSqlSafe(next(" AND requires > $1"))).bind(last.clone()),
        };
        let row = query.fetch_optional(&mut *batch.connection).await.map_err(&failed)?;
        let Some(row) = row else { break };
        found.push(row.try_get(0).map_err(&failed)?);
    }
    if found.is_empty() {
        return Ok(Choice::Plain);
    }
    found.retain(|requires| takes.as_ref().is_some_and(|takes| takes(requires)));
    Ok(Choice::These(found))
}

/// Returns the owners that may have a turn, sorted by the device time that they have used.
async fn candidates(
    wanted: usize,
    choice: &Choice,
    batch: &mut Batch<'_>,
) -> Result<Vec<Candidate>, StoreError> {
    let failed = batch.failed("find the next job");
    let limit = batch.context.quotas.max_running;
    let most = i64::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(i64::MAX);
    let (with, and, these) = match choice {
        Choice::Plain => (String::new(), String::new(), &[][..]),
        // Owners whose jobs all need other processes must not block later owners.
        Choice::These(these) => {
            let on_postgres = batch.is_postgres();
            let one = |which: &str| {
                format!("({}) IS NOT NULL", next_of("owners.owner", "1", which, on_postgres))
            };
            let none = one("IS NULL");
            if these.is_empty() {
                (String::new(), format!(" AND {none}"), &[][..])
            } else {
                // One statement covers all requirements. With a separate condition for each,
                // planning takes longer than execution.
                let places: Vec<String> =
                    (0..these.len()).map(|at| format!("(${})", at + 3)).collect();
                let with = format!("WITH these(requires) AS (VALUES {}) ", places.join(", "));
                let some =
                    format!("EXISTS (SELECT 1 FROM these WHERE {})", one("= these.requires"));
                (with, format!(" AND ({none} OR {some})"), these.as_slice())
            }
        }
    };
    let sql = format!(
        "{with}SELECT owner, running, served FROM owners WHERE waiting > 0 AND running < $1{and} \
         ORDER BY served, owner LIMIT $2"
    );
    let query = sqlx::query(AssertSqlSafe(sql)).bind(most).bind((wanted + MORE_OWNERS) as i64);
    let query = these.iter().fold(query, |query, requires| query.bind(requires.as_str()));
    let rows = query.fetch_all(&mut *batch.connection).await;
    let candidate = |row: &sqlx::any::AnyRow| -> Result<Candidate, sqlx::Error> {
        Ok(Candidate { owner: row.try_get(0)?, running: row.try_get(1)?, served: row.try_get(2)? })
    };
    rows.and_then(|rows| rows.iter().map(candidate).collect()).map_err(failed)
}

/// Takes the owner's next job. Returns `None` if other processes have taken all of them.
async fn take_from(
    owner: &str,
    choice: &Choice,
    batch: &mut Batch<'_>,
) -> Result<Option<Taken>, StoreError> {
    let failed = batch.failed("claim a job");
    let requires = match choice {
        Choice::Plain => None,
        Choice::These(these) => match first_of(owner, these, batch).await? {
            Some(requires) => requires,
            None => return Ok(None),
        },
    };
    // A job that another process is claiming is skipped, so that this claim does not wait.
    let on_postgres = batch.is_postgres();
    let skip = if on_postgres { " FOR UPDATE SKIP LOCKED" } else { "" };
    let which = if requires.is_some() { "= $4" } else { "IS NULL" };
    let next = next_of("$3", "id", which, on_postgres);
    let sql = format!(
        "UPDATE jobs SET holder = $1, epoch = epoch + 1, attempts = attempts + 1, started_at = $2, \
         error = NULL WHERE id = ({next}{skip}) RETURNING {COLUMNS}, epoch"
    );
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(batch.context.instance.as_str())
        .bind(super::clock::now())
        .bind(owner);
    let query = requires.iter().fold(query, |query, requires| query.bind(requires.as_str()));
    let row = query.fetch_optional(&mut *batch.connection).await;
    let Some(row) = row.map_err(&failed)? else { return Ok(None) };
    let job = row_of(&row, &batch.context.database.place)?;
    let epoch: i64 = row.try_get("epoch").map_err(&failed)?;
    let request = sqlx::query("SELECT codec, body, object FROM requests WHERE job_id = $1")
        .bind(job.id.as_str())
        .fetch_optional(&mut *batch.connection)
        .await;
    let body = match request.map_err(&failed)? {
        Some(row) => super::read::body_of(&row).map_err(&failed)?,
        None => Body::default(),
    };
    Ok(Some(Taken { job, epoch, body, lease: None }))
}

/// Returns the requirements of an owner's next job that has no requirements or one of `these`. The
/// outer `None` means that there is no such job.
async fn first_of(
    owner: &str,
    these: &[String],
    batch: &mut Batch<'_>,
) -> Result<Option<Option<String>>, StoreError> {
    let failed = batch.failed("find the next job");
    let on_postgres = batch.is_postgres();
    let first = |which: &str| {
        let next = next_of("$1", "requires, priority, arrival", which, on_postgres);
        format!("SELECT * FROM ({next}) AS one")
    };
    let mut sql = first("IS NULL");
    for at in 0..these.len() {
        sql.push_str(" UNION ALL ");
        sql.push_str(&first(&format!("= ${}", at + 2)));
    }
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
    let query = these.iter().fold(query, |query, requires| query.bind(requires.as_str()));
    let rows = query.fetch_all(&mut *batch.connection).await.map_err(&failed)?;
    let mut best: Option<((i64, i64), Option<String>)> = None;
    for row in rows {
        let read = || -> Result<_, sqlx::Error> {
            let (priority, arrival): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
            Ok(((-priority, arrival), row.try_get(0)?))
        };
        let (turn, requires) = read().map_err(&failed)?;
        if best.as_ref().is_none_or(|(first, _)| turn < *first) {
            best = Some((turn, requires));
        }
    }
    Ok(best.map(|(_, requires)| requires))
}
