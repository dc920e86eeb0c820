//! Opening the store, and what one calls on it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::Notify;

use super::database::{Backend, Database, Durability};
use super::deliveries::Bell;
use super::history::Append;
use super::instance::Presence;
use super::lease::{Finish, GiveBack, LeaseMaker, PackedReport};
use super::log::{LogKeeper, Written};
use super::objects::{Objects, cut};
use super::offer::Offered;
use super::read::Reader;
use super::sound::Opened;
use super::state::has_ended;
use super::submit::{Accepted, Entry, Group, check};
use super::types::MAX_BATCH;
use super::writer::{CHANNEL, Context, Held, Message, Writer};

use super::{
    Cancel, Claimed, Ending, Heartbeat, JobCounts, JobFilter, JobLease, JobPage, JobRow, JobState,
    NewJob, Page, RequestReader, Requeued, StoreError, StoredReport, Submitted, Visibility,
};

/// What the program puts into its data directory.
const OURS: [&str; 10] = [
    "warpgauge.db",
    "warpgauge.db-wal",
    "warpgauge.db-shm",
    "warpgauge.db-journal",
    "mailboxes",
    "objects",
    "instances",
    "cubins",
    "toolchain",
    "run",
];

/// How long to wait for work at most before looking: others may have brought some.
const POLL: Duration = Duration::from_millis(250);

/// Where the store is and how it behaves.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `""`: SQLite, the file `warpgauge.db` in `data_dir`; or `postgres://…`.
    pub url: String,
    /// Directory of the database, of large bodies and of the locks of processes.
    pub data_dir: PathBuf,
    /// What survives what.
    pub durability: Durability,
    /// How many jobs an owner may have.
    pub quotas: Quotas,
    /// Most bytes that artifacts of all jobs may take together.
    pub artifacts_max_bytes: u64,
}

impl StoreConfig {
    /// SQLite in a directory, without quotas.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            url: String::new(),
            data_dir: data_dir.into(),
            durability: Durability::Process,
            quotas: Quotas::default(),
            artifacts_max_bytes: 512 << 20,
        }
    }
}

/// How many jobs one owner may have; 0: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Waiting in the database.
    pub max_waiting: u64,
    /// Held by some process.
    pub max_running: u64,
}

/// Jobs and what came of them, in a database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) objects: Objects,
    pub(super) presence: Arc<Presence>,
    pub(super) work: Arc<Notify>,
    pub(super) bell: Arc<Bell>,
    pub(super) held: Held,
    pub(super) offered: Offered,
    pub(super) artifacts_max_bytes: u64,
    pub(super) opened: Arc<Opened>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (place, instance) = (&self.reader.place, self.instance());
        f.debug_struct("Store").field("place", place).field("instance", &instance).finish()
    }
}

impl Store {
    /// Opens the database, and migrates it if it is older than this program.
    ///
    /// # Errors
    ///
    /// A newer or a foreign database is left as it is. Everything else that keeps the store from
    /// working is an error here, not at the first job: the directory and the database are written to.
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let data_dir = &config.data_dir;
        warpgauge_private_files::named_directory(data_dir, &OURS)?;
        let mut database = Database::new(&config.url, data_dir, config.durability)?;
        super::migrate::refuse_others(&database).await?;
        database.settle()?;
        let mut connection = database.connect().await?;
        super::migrate::run(&mut connection, &database).await?;
        let objects = Objects::open(&data_dir.join("objects"), config.durability)?;
        let presence = Arc::new(Presence::enter(data_dir)?);
        let directories = vec![data_dir.clone(), data_dir.join("objects")];
        let opened = Arc::new(Opened { database: database.clone(), directories });
        let (held, work) = (Held::default(), Arc::new(Notify::new()));
        let offered = Offered::default();
        let bell = Arc::<Bell>::default();
        let (place, file) = (database.place.clone(), database.file.clone());
        let reader = Reader { pool: database.readers()?, place, file };
        let (backend, url) = (database.backend, database.url().to_owned());
        let written = Arc::<Written>::default();
        let log = (backend == Backend::Sqlite)
            .then(|| LogKeeper::start(database.clone(), Arc::clone(&written)));
        let context = Context {
            database,
            written,
            instance: presence.instance().to_owned(),
            quotas: config.quotas,
            held: Arc::clone(&held),
            offered: offered.clone(),
            work: Arc::clone(&work),
            bell: Arc::clone(&bell),
        };
        let writer = Writer::start(connection, Arc::new(context), log);
        let artifacts_max_bytes = config.artifacts_max_bytes;
        let store = Self {
            reader,
            writer,
            objects,
            presence,
            work,
            bell,
            held,
            offered,
            artifacts_max_bytes,
            opened,
        };
        store.heartbeat().await?;
        if backend == Backend::Postgres {
            tokio::spawn(listen(url, Arc::downgrade(&store.work)));
        }
        Ok(store)
    }

    /// Names this process as the holder of leases.
    pub fn instance(&self) -> &str {
        self.presence.instance()
    }

    /// Accepts a job, or finds the one with the same idempotency key.
    pub async fn submit(&self, job: NewJob) -> Result<Submitted, StoreError> {
        self.accept(vec![job], false).await?.jobs.pop().ok_or(StoreError::Closed)
    }

    /// Accepts all jobs or none.
    pub async fn submit_all(&self, jobs: Vec<NewJob>) -> Result<Vec<Submitted>, StoreError> {
        if jobs.len() > MAX_BATCH {
            let problem = format!("are {}; {MAX_BATCH} at a time are allowed", jobs.len());
            return Err(StoreError::Invalid { field: "jobs", problem });
        }
        Ok(self.accept(jobs, false).await?.jobs)
    }

    /// Accepts a job that this process runs at once, because somebody waits for it. There is no lease
    /// if the job exists already.
    pub async fn submit_leased(
        &self,
        job: NewJob,
    ) -> Result<(Submitted, Option<JobLease>), StoreError> {
        let mut accepted = self.accept(vec![job], true).await?;
        let submitted = accepted.jobs.pop().ok_or(StoreError::Closed)?;
        Ok((submitted, accepted.lease))
    }

    async fn accept(&self, jobs: Vec<NewJob>, leased: bool) -> Result<Accepted, StoreError> {
        jobs.iter().try_for_each(check)?;
        let mut entries = Vec::with_capacity(jobs.len());
        let mut files: Vec<(String, String)> = Vec::new();
        for mut job in jobs {
            let id = job.id.clone();
            let request = std::mem::take(&mut job.request);
            let bulk = std::mem::take(&mut job.bulk);
            let bytes = request.len() as u64 + bulk.iter().map(|part| part.bytes()).sum::<u64>();
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let file = format!("{}/request", folder(&id));
            let kept = match bulk.is_empty() {
                true => self.objects.keep(&file, request).await,
                false => self.objects.keep_bulk(&file, request, bulk).await,
            };
            let body = match kept {
                Ok(body) => body,
                Err(error) => {
                    self.objects.remove(files.into_iter().map(|(_, file)| file)).await;
                    return Err(error);
                }
            };
            files.extend(body.object.clone().map(|file| (id.clone(), file)));
            entries.push(Entry { id, job, body, bytes, leased });
        }
        let lease = leased.then(|| LeaseMaker(self.writer.clone()));
        let group = |reply| Message::Submit(Group { entries, reply, lease });
        let outcome = self.writer.ask(group).await;
        // What became of an earlier job, or of none, needs no file.
        let named = |id: &str| {
            outcome.as_ref().is_ok_and(|a| a.jobs.iter().any(|s| s.id == id && !s.existing))
        };
        let refused = outcome.as_ref().err().is_none_or(StoreError::is_refusal);
        let unnamed =
            files.into_iter().filter(|(id, _)| refused && !named(id)).map(|(_, file)| file);
        self.objects.remove(unnamed).await;
        outcome
    }

    /// The next job: of the least served owner the one of highest priority, of these the oldest.
    pub async fn claim(&self) -> Result<Option<Claimed>, StoreError> {
        self.claim_of_others(Vec::new()).await
    }

    /// The next job that is of none of these owners.
    pub async fn claim_of_others(
        &self,
        not_of: Vec<String>,
    ) -> Result<Option<Claimed>, StoreError> {
        let lease = LeaseMaker(self.writer.clone());
        let claiming = |reply| Message::Claim(super::claim::Claiming { reply, lease, not_of });
        let Some(taken) = self.writer.ask(claiming).await? else { return Ok(None) };
        let lease = taken.lease.ok_or(StoreError::Closed)?;
        // Dropped on failure, the lease gives the job back.
        let request = self.objects.open_body(taken.body).await?;
        Ok(Some(Claimed { job: taken.job, request, lease }))
    }

    /// Returns when a job may have begun to wait, after 250 ms at the latest.
    pub async fn wait_for_work(&self) {
        let _ = tokio::time::timeout(POLL, self.work.notified()).await;
    }

    /// Renews the leases of this process; what it must stop working on. Due every [`super::HEARTBEAT`].
    pub async fn heartbeat(&self) -> Result<Heartbeat, StoreError> {
        let presence = Arc::clone(&self.presence);
        let told = self.writer.write(super::recover::Beat { presence }).await?;
        super::lease::give_back_again(&self.writer, &self.held);
        Ok(told)
    }

    /// Brings a job to its next state, and waits until that is written.
    pub async fn advance(&self, lease: &JobLease, to: JobState) -> Result<(), StoreError> {
        let step = lease.step(to)?;
        self.writer.write(step).await
    }

    /// Brings a job to its next state; written soon, and before anything asked for later.
    pub fn advance_behind(&self, lease: &JobLease, to: JobState) -> Result<(), StoreError> {
        let step = lease.step(to)?;
        self.writer.write_behind(step);
        Ok(())
    }

    /// Ends a job, with its report and its points of the history, in one transaction. Only the holder of the lease can.
    ///
    /// # Errors
    ///
    /// `LeaseLost` if somebody else has the job: then the work was in vain. If the database fails, the
    /// job is given back, and is run again.
    pub async fn finish(&self, mut lease: JobLease, ending: Ending) -> Result<(), StoreError> {
        self.try_finish(&mut lease, ending).await
    }

    /// As [`Store::finish`], but what fails leaves the lease, so that it can be tried again.
    pub async fn try_finish(&self, lease: &mut JobLease, ending: Ending) -> Result<(), StoreError> {
        if !has_ended(ending.state) {
            let (job, from) = (lease.job().to_owned(), lease.state());
            return Err(StoreError::IllegalTransition { job, from, to: ending.state });
        }
        let job = lease.job().to_owned();
        let report = match ending.report {
            None => None,
            Some(report) => {
                let bytes = report.body.len() as i64;
                let key = format!("{}/report-{}", folder(&job), uuid::Uuid::new_v4());
                let body = self.objects.keep(&key, report.body).await?;
                let kind = cut(&report.kind, 64).into_owned();
                Some(PackedReport { version: report.version, kind, body, bytes })
            }
        };
        let file = report.as_ref().and_then(|report| report.body.object.clone());
        let (state, error) = (ending.state, ending.error);
        let (points, epoch) = (Append::what_fits(ending.points), lease.epoch());
        let from = lease.state();
        let finish = Finish { job, epoch, from, state, error, report, points };
        let outcome = self.writer.write(finish).await;
        match &outcome {
            Ok(()) => lease.disarm(),
            Err(error) if error.is_refusal() => self.objects.remove(file).await,
            // Whether it was committed may not be known: the file stays until the clean-up.
            Err(_) => {}
        }
        outcome
    }

    /// Gives a job back that was not really started: the attempt does not count.
    pub async fn release(&self, lease: JobLease) -> Result<(), StoreError> {
        self.give_back(lease, false, None).await
    }

    /// Gives a job back that was started and could not be carried out here, and says why: it is there
    /// for who looks at the job while it waits. The attempt counts.
    pub async fn return_to_queue(&self, lease: JobLease, why: String) -> Result<(), StoreError> {
        self.give_back(lease, true, Some(why)).await
    }

    async fn give_back(
        &self,
        mut lease: JobLease,
        counts: bool,
        why: Option<String>,
    ) -> Result<(), StoreError> {
        let (job, epoch) = (lease.job().to_owned(), lease.epoch());
        lease.disarm();
        let back = GiveBack { job: job.clone(), epoch, counts, why };
        let outcome = self.writer.write(back).await;
        if outcome.as_ref().is_err_and(|error| !error.is_refusal()) {
            // Tried again with the next heartbeat.
            super::writer::locked(&self.writer.dropped).insert(job, epoch);
        }
        outcome
    }

    /// Queues the jobs of processes that are gone again.
    pub async fn requeue_expired(&self) -> Result<Requeued, StoreError> {
        let presence = Arc::clone(&self.presence);
        self.writer.write(super::recover::Recover { presence }).await
    }

    /// Cancels a job that waits, or asks whoever runs it to stop.
    pub async fn cancel(&self, id: &str, owner: Visibility<'_>) -> Result<Cancel, StoreError> {
        let owner = owner.owner().map(str::to_owned);
        self.writer.write(super::cancel::CancelJob { job: id.to_owned(), owner }).await
    }

    /// A job, if the caller may see it.
    pub async fn job(&self, id: &str, who: Visibility<'_>) -> Result<Option<JobRow>, StoreError> {
        self.reader.job(id, who).await
    }

    /// The request of a job.
    pub async fn request(&self, id: &str) -> Result<Option<RequestReader>, StoreError> {
        const SQL: &str = "SELECT codec, body, object FROM requests WHERE job_id = $1";
        let Some(row) = self.reader.body_row(SQL, id).await? else { return Ok(None) };
        let body = super::read::body_of(&row).map_err(self.reader.failed("read a request"))?;
        self.objects.open_body(body).await.map(Some)
    }

    /// The report of a job that ended with one.
    pub async fn report(&self, id: &str) -> Result<Option<StoredReport>, StoreError> {
        use sqlx::Row;
        const SQL: &str =
            "SELECT version, kind, codec, body, object FROM reports WHERE job_id = $1";
        let Some(row) = self.reader.body_row(SQL, id).await? else { return Ok(None) };
        let failed = self.reader.failed("read a report");
        let version: i64 = row.try_get("version").map_err(&failed)?;
        let kind = row.try_get("kind").map_err(&failed)?;
        let body = self.objects.fetch(super::read::body_of(&row).map_err(&failed)?).await?;
        Ok(Some(StoredReport { version: u32::try_from(version).unwrap_or(0), kind, body }))
    }

    /// A page of jobs, newest first.
    pub async fn list(&self, filter: &JobFilter<'_>, page: &Page) -> Result<JobPage, StoreError> {
        self.reader.list(filter, page).await
    }

    /// How many jobs there are, by state.
    pub async fn counts(&self, owner: Visibility<'_>) -> Result<JobCounts, StoreError> {
        self.reader.counts(owner).await
    }

    /// Leases that this process holds now.
    pub fn held(&self) -> usize {
        super::writer::locked(&self.held).len()
    }

    /// Writes what waits to be written, and closes the database. Calls after that fail with `Closed`.
    pub async fn close(&self) {
        self.reader.pool.close().await;
        self.writer.close().await;
    }
}

/// Folder of a job's files. The last digits are random: no folder gets too many entries.
pub(super) fn folder(id: &str) -> String {
    format!("jobs/{}/{id}", id.get(id.len().saturating_sub(2)..).unwrap_or("00"))
}

/// Rings when another process says that there is work, until the store is gone.
async fn listen(url: String, work: std::sync::Weak<Notify>) {
    let mut pause = Duration::from_millis(200);
    while work.strong_count() > 0 {
        // Polling goes on meanwhile: see `wait_for_work`.
        if let Ok(mut listener) = PgListener::connect(&url).await
            && listener.listen(CHANNEL).await.is_ok()
        {
            pause = Duration::from_millis(200);
            loop {
                let received = tokio::time::timeout(Duration::from_secs(5), listener.recv()).await;
                let Some(work) = work.upgrade() else { return };
                match received {
                    Ok(Ok(_)) => work.notify_one(),
                    Ok(Err(_)) => break,
                    Err(_) => {}
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(10));
    }
}
