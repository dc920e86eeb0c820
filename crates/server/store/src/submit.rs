//! Accepts jobs. All waiting submissions are inserted with a few statements. The main types are
//! [`Group`] and [`Submits`].

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use sqlx::Row;
use tokio::sync::oneshot;

use super::lease::LeaseMaker;
use super::objects::Body;
use super::offer::MAX_REQUIREMENT_BYTES;
use super::repeated::{Earlier, earlier, free_keys, repetitions};
use super::rows::Statements;
use super::state::name;
use super::tally::Place;
use super::types::{
    MAX_ATTEMPTS, MAX_KEY_BYTES, MAX_LABEL_BYTES, MAX_OWNER_BYTES, MAX_WEBHOOK_BYTES,
};
use super::writer::{AnyWrite, Batch};
use super::{AcceptedJob, JobLease, JobState, NewJob, StoreError};

/// Device time that an owner is charged for a job before its duration is known, microseconds.
pub(super) const ADVANCE_CHARGE: i64 = 1_000_000;

/// A job with its id and its compressed request.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) job: NewJob,
    pub(super) body: Body,
    pub(super) bytes: i64,
    /// Whether this process runs the job at once.
    pub(super) leased: bool,
}

impl Entry {
    fn state(&self) -> JobState {
        if self.leased { JobState::Submitted } else { JobState::Queued }
    }
}

/// Jobs of one call: either all are accepted or none.
pub(super) struct Group {
    pub(super) entries: Vec<Entry>,
    pub(super) reply: oneshot::Sender<Result<Accepted, StoreError>>,
    /// Creates the lease of a job that this process runs at once.
    pub(super) lease: Option<LeaseMaker>,
}

/// Result of submitting a group.
pub(super) struct Accepted {
    pub(super) jobs: Vec<AcceptedJob>,
    /// Lease of a single new job that this process runs at once. If the lease is dropped before the
    /// caller receives it, the job is requeued.
    pub(super) lease: Option<JobLease>,
}

/// Checks the lengths of a job's texts, and its number of attempts.
pub(super) fn check(job: &NewJob) -> Result<(), StoreError> {
    let bounded = |field, text: Option<&str>, min: usize, max: usize| match text {
        Some(text) if !(min..=max).contains(&text.len()) => {
            let problem = format!("has {} bytes; {min} to {max} are allowed", text.len());
            Err(StoreError::Invalid { field, problem })
        }
        // Neither database stores NUL in text unchanged.
        Some(text) if text.contains('\0') => {
            Err(StoreError::Invalid { field, problem: "contains a NUL character".to_owned() })
        }
        _ => Ok(()),
    };
    bounded("owner", Some(&job.owner), 0, MAX_OWNER_BYTES)?;
    let key = job.idempotency.as_ref().map(|idempotency| idempotency.key.as_str());
    bounded("Idempotency-Key", key, 1, MAX_KEY_BYTES)?;
    bounded("label", job.label.as_deref(), 1, MAX_LABEL_BYTES)?;
    bounded("webhook", job.webhook.as_deref(), 1, MAX_WEBHOOK_BYTES)?;
    bounded("requires", job.requires.as_deref(), 1, MAX_REQUIREMENT_BYTES)?;
    if !(1..=MAX_ATTEMPTS).contains(&job.max_attempts) {
        let problem = format!("is {}; 1 to {MAX_ATTEMPTS} are allowed", job.max_attempts);
        return Err(StoreError::Invalid { field: "max_attempts", problem });
    }
    Ok(())
}

/// Groups that are accepted in one transaction.
pub(super) struct Submits {
    groups: Vec<Group>,
    outcomes: Vec<Result<Vec<AcceptedJob>, StoreError>>,
}

impl Submits {
    pub(super) fn new(groups: Vec<Group>) -> Self {
        Self { groups, outcomes: Vec::new() }
    }
}

impl AnyWrite for Submits {
    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.outcomes = accept(&self.groups, batch).await?;
            Ok(())
        })
    }

    fn split(self: Box<Self>) -> Vec<Box<dyn AnyWrite>> {
        let one = |group| Box::new(Self::new(vec![group])) as Box<dyn AnyWrite>;
        self.groups.into_iter().map(one).collect()
    }

    fn weight(&self) -> usize {
        self.groups.iter().map(|group| group.entries.len()).sum()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        // A failure goes to one group only: see `split`.
        let failure = failure.map(Err).into_iter();
        let outcomes = failure.chain(self.outcomes);
        for (group, outcome) in self.groups.into_iter().zip(outcomes) {
            let accepted = outcome.map(|jobs| {
                let new = jobs.first().filter(|job| !job.existing);
                let made = group.lease.zip(new);
                let lease = made.map(|(lease, job)| lease.lease(job.id.clone(), 1, job.state));
                Accepted { jobs, lease }
            });
            let _ = group.reply.send(accepted);
        }
    }
}

/// Counts of an owner's jobs while the groups are checked.
#[derive(Default)]
struct Standing {
    waiting: i64,
    running: i64,
    served: i64,
    returns: bool,
}

async fn accept(
    groups: &[Group],
    batch: &mut Batch<'_>,
) -> Result<Vec<Result<Vec<AcceptedJob>, StoreError>>, StoreError> {
    let (mut standings, virtual_time) = standings(groups, batch).await?;
    let mut outcomes: Vec<Option<Result<Vec<AcceptedJob>, StoreError>>> = Vec::new();
    for group in groups {
        outcomes.push(match over_quota(group, &mut standings, batch) {
            None => None,
            // A repeated request that was accepted before needs no quota.
            Some(refusal) => Some(repetitions(group, batch).await?.ok_or(refusal)),
        });
    }
    let open = || groups.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_none());
    let entries: Vec<&Entry> = open().flat_map(|(group, _)| &group.entries).collect();
    let mut inserted = insert_jobs(&entries, batch).await?;
    let left = entries.iter().filter(|entry| !inserted.contains(entry.id.as_str()));
    let freed = free_keys(left.copied().collect(), batch).await?;
    if !freed.is_empty() {
        inserted.extend(insert_jobs(&freed, batch).await?);
    }
    let mut accepted: Vec<&Entry> = Vec::new();
    for (group, outcome) in groups.iter().zip(&mut outcomes).filter(|(_, o)| o.is_none()) {
        let settled = settle(group, &inserted, batch).await?;
        if settled.is_ok() {
            accepted.extend(group.entries.iter().filter(|e| inserted.contains(e.id.as_str())));
        }
        *outcome = Some(settled);
    }
    insert_requests(&accepted, batch).await?;
    enter(&accepted, &standings, virtual_time, batch);
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(StoreError::Closed))).collect())
}

/// Returns the counts of the groups' owners before the groups are accepted, and the virtual time.
async fn standings(
    groups: &[Group],
    batch: &mut Batch<'_>,
) -> Result<(BTreeMap<String, Standing>, i64), StoreError> {
    static FIND: LazyLock<Statements> = LazyLock::new(|| {
        let head = "SELECT NULL, 0, 0, value FROM numbers WHERE name = 'virtual_time' UNION ALL \
                    SELECT owner, waiting, running, served FROM owners WHERE owner IN (";
        Statements::filling(head, "?", ")")
    });
    let owners = groups.iter().flat_map(|group| &group.entries).map(|entry| &entry.job.owner);
    let mut standings = BTreeMap::new();
    for owner in owners {
        if !standings.contains_key(owner) {
            standings.insert(owner.clone(), Standing { returns: true, ..Standing::default() });
        }
    }
    let failed = batch.failed("accept a job");
    let mut virtual_time = 0;
    let names: Vec<String> = standings.keys().cloned().collect();
    for (sql, _, owners) in FIND.filled(batch.context.database.backend, &names) {
        let query = owners.fold(sqlx::query(sql), |query, owner| query.bind(owner.as_str()));
        for row in query.fetch_all(&mut *batch.connection).await.map_err(&failed)? {
            let owner: Option<String> = row.try_get(0).map_err(&failed)?;
            let Some(owner) = owner else {
                virtual_time = row.try_get(3).map_err(&failed)?;
                continue;
            };
            let Some(standing) = standings.get_mut(&owner) else { continue };
            standing.waiting = row.try_get(1).map_err(&failed)?;
            standing.running = row.try_get(2).map_err(&failed)?;
            standing.served = row.try_get(3).map_err(&failed)?;
            standing.returns = standing.waiting + standing.running <= 0;
        }
    }
    Ok((standings, virtual_time))
}

/// Adds a group to the counts of its owners, unless an owner would exceed its quota.
fn over_quota(
    group: &Group,
    standings: &mut BTreeMap<String, Standing>,
    batch: &Batch<'_>,
) -> Option<StoreError> {
    let quotas = batch.context.quotas;
    let over = |what, current: i64, more: i64, limit: u64| {
        let current = u64::try_from(current).unwrap_or(0);
        let more = u64::try_from(more).unwrap_or(0);
        (limit > 0 && more > 0 && current + more > limit).then_some(StoreError::Quota {
            what,
            current,
            limit,
        })
    };
    let mut more: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for entry in &group.entries {
        let (waiting, running) = more.entry(&entry.job.owner).or_default();
        *(if entry.leased { running } else { waiting }) += 1;
    }
    for (owner, (waiting, running)) in &more {
        let now = standings.get(*owner)?;
        let refusal = over("waiting", now.waiting, *waiting, quotas.max_waiting)
            .or_else(|| over("running", now.running, *running, quotas.max_running));
        if refusal.is_some() {
            return refusal;
        }
    }
    for (owner, (waiting, running)) in more {
        let Some(now) = standings.get_mut(owner) else { continue };
        now.waiting += waiting;
        now.running += running;
    }
    None
}

/// Returns the result for a group after its jobs were inserted.
async fn settle(
    group: &Group,
    inserted: &HashSet<&str>,
    batch: &mut Batch<'_>,
) -> Result<Result<Vec<AcceptedJob>, StoreError>, StoreError> {
    let mut all = Vec::with_capacity(group.entries.len());
    let mut refusal = None;
    for entry in &group.entries {
        if inserted.contains(entry.id.as_str()) {
            let (id, state) = (entry.id.clone(), entry.state());
            all.push(AcceptedJob { id, state, existing: false });
            continue;
        }
        match earlier(entry, batch).await? {
            Earlier::Differs(error) => refusal = refusal.or(Some(error)),
            Earlier::Same(submitted) if submitted.existing => all.push(submitted),
            // The id already exists: this is a retry of a transaction whose result was lost.
            _ => {
                if entry.leased {
                    batch.leases.push((entry.id.clone(), Some(1)));
                }
                let (id, state) = (entry.id.clone(), entry.state());
                all.push(AcceptedJob { id, state, existing: false });
            }
        }
    }
    let Some(refusal) = refusal else { return Ok(Ok(all)) };
    for entry in group.entries.iter().filter(|entry| inserted.contains(entry.id.as_str())) {
        let delete = sqlx::query("DELETE FROM jobs WHERE id = $1").bind(entry.id.as_str());
        let deleted = delete.execute(&mut *batch.connection).await;
        deleted.map_err(batch.failed("remove a job"))?;
    }
    Ok(Err(refusal))
}

/// Inserts all entries that do not exist yet. Returns their ids.
async fn insert_jobs<'a>(
    entries: &[&'a Entry],
    batch: &mut Batch<'_>,
) -> Result<HashSet<&'a str>, StoreError> {
    static INSERT: LazyLock<Statements> = LazyLock::new(|| {
        let head = "INSERT INTO jobs (id, owner, kind, priority, label, webhook, \
                    idempotency_key, request_hash, max_attempts, bytes, requires, state, attempts, \
                    epoch, holder, created_at, started_at) VALUES ";
        let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, $1, $2, $2, $3, $4, $5)";
        Statements::filling(head, row, " ON CONFLICT DO NOTHING")
    });
    let now = super::clock::now();
    let mut inserted = HashSet::with_capacity(entries.len());
    for leased in [false, true] {
        let entries: Vec<&Entry> =
            entries.iter().copied().filter(|entry| entry.leased == leased).collect();
        for (sql, piece, rows) in INSERT.filled(batch.context.database.backend, &entries) {
            let state = if leased { JobState::Submitted } else { JobState::Queued };
            let mut query = sqlx::query(sql);
            for Entry { id, job, bytes, .. } in rows {
                let idempotency = job.idempotency.as_ref();
                query = query
                    .bind(id.as_str())
                    .bind(job.owner.as_str())
                    .bind(job.kind.name())
                    .bind(i64::from(job.priority))
                    .bind(job.label.as_deref())
                    .bind(job.webhook.as_deref())
                    .bind(idempotency.map(|idempotency| idempotency.key.as_str()))
                    // Without a key, requests are not compared by hash.
                    .bind(idempotency.map_or(&[][..], |idempotency| &idempotency.request_hash))
                    .bind(i64::from(job.max_attempts))
                    .bind(*bytes)
                    .bind(job.requires.as_deref());
            }
            query = query
                .bind(name(state))
                .bind(i64::from(leased))
                .bind(leased.then_some(batch.context.instance.as_str()))
                .bind(now)
                .bind(leased.then_some(now));
            let done = query.execute(&mut *batch.connection).await;
            let rows = done.map_err(batch.failed("accept a job"))?.rows_affected();
            let all = rows == piece.len() as u64;
            for entry in piece {
                if all || is_new(&entry.id, batch).await? {
                    inserted.insert(entry.id.as_str());
                }
            }
        }
    }
    Ok(inserted)
}

/// Returns whether this transaction inserted the job. The request of a new job is inserted later,
/// whereas every earlier job already has one.
async fn is_new(id: &str, batch: &mut Batch<'_>) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "SELECT id FROM jobs WHERE id = $1 \
         AND NOT EXISTS (SELECT 1 FROM requests WHERE job_id = $1)",
    );
    let row = query.bind(id).fetch_optional(&mut *batch.connection).await;
    row.map(|row| row.is_some()).map_err(batch.failed("accept a job"))
}

async fn insert_requests(entries: &[&Entry], batch: &mut Batch<'_>) -> Result<(), StoreError> {
    static INSERT: LazyLock<Statements> = LazyLock::new(|| {
        let head = "INSERT INTO requests (job_id, codec, body, object) VALUES ";
        Statements::filling(head, "(?, ?, ?, ?)", " ON CONFLICT DO NOTHING")
    });
    for (sql, piece, rows) in INSERT.filled(batch.context.database.backend, entries) {
        let mut query = sqlx::query(sql);
        for entry in rows {
            query = query
                .bind(entry.id.as_str())
                .bind(entry.body.codec)
                .bind(entry.body.inline.as_deref())
                .bind(entry.body.object.as_deref());
        }
        let inserted = query.execute(&mut *batch.connection).await;
        let rows = inserted.map_err(batch.failed("accept a request"))?.rows_affected();
        if rows != piece.len() as u64 {
            let place = batch.context.database.place.clone();
            let what = format!("{} new jobs, of which {rows} had no request yet", piece.len());
            return Err(StoreError::Odd { place, what });
        }
    }
    Ok(())
}

/// Adds accepted jobs to the counts of their owners, and records their leases.
fn enter(
    accepted: &[&Entry],
    standings: &BTreeMap<String, Standing>,
    virtual_time: i64,
    batch: &mut Batch<'_>,
) {
    for entry in accepted {
        let owner = entry.job.owner.as_str();
        let standing = standings.get(owner);
        let to = Place { state: entry.state(), held: entry.leased };
        batch.tally.moved(owner, None, Some(to));
        batch.tally.weighs(owner, entry.bytes);
        if standing.is_some_and(|standing| standing.returns) {
            batch.tally.returns(virtual_time);
        }
        if entry.leased {
            batch.tally.served(owner, ADVANCE_CHARGE);
            batch.tally.advance_to(standing.map_or(0, |standing| standing.served));
            batch.leases.push((entry.id.clone(), Some(1)));
        }
    }
}
