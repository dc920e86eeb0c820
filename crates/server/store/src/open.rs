//! Opens the store, and returns its parts. The main type is [`Store`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::Notify;

use super::access::Access;
use super::database::{Backend, Database, Durability};
use super::deliveries::Bell;
use super::instance::Presence;
use super::log::{LogKeeper, Written};
use super::objects::Objects;
use super::offer::Offered;
use super::read::Reader;
use super::writer::{CHANNEL, Context, Held, Writer};

use super::{
    ArtifactStore, BaselineStore, Cleaner, DeliveryQueue, JobQueue, JobReader, MatrixStore,
    Membership, StoreError, StoreHealth, StoreView,
};

/// Files and directories that the program creates in its data directory.
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

/// Location and settings of the store.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `""` means SQLite, with the file `warpgauge.db` in `data_dir`; otherwise a URL
    /// `postgres://…`.
    pub url: String,
    /// Directory of the database, of large bodies and of the processes' lock files.
    pub data_dir: PathBuf,
    pub durability: Durability,
    /// Limits on the jobs of one owner.
    pub quotas: Quotas,
    /// Maximum size of the artifacts of all jobs together, bytes.
    pub artifacts_max_bytes: u64,
}

impl StoreConfig {
    /// Returns settings for SQLite in a directory, without quotas.
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

/// Limits on the jobs of one owner; 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Maximum number of jobs that wait in the database.
    pub max_waiting: u64,
    /// Maximum number of jobs that processes hold.
    pub max_running: u64,
}

/// Jobs and their results in a database. There is a part for each kind of data. Clones are cheap.
#[derive(Clone)]
pub struct Store {
    pub(super) parts: Arc<Parts>,
}

/// The parts of a store.
pub(super) struct Parts {
    pub(super) access: Access,
    queue: JobQueue,
    jobs: JobReader,
    artifacts: ArtifactStore,
    baselines: BaselineStore,
    matrices: MatrixStore,
    deliveries: DeliveryQueue,
    membership: Membership,
    health: StoreHealth,
    cleaner: Cleaner,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (place, instance) = (&self.parts.access.reader.place, self.membership().instance());
        f.debug_struct("Store").field("place", place).field("instance", &instance).finish()
    }
}

impl Store {
    /// Opens the database, and migrates it if it is older than this program.
    ///
    /// # Errors
    ///
    /// A newer database, or one of another program, is rejected and left unchanged. The call writes
    /// to the directory and to the database, so that any other problem is reported here and not
    /// with the first job.
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
        let (held, work) = (Held::default(), Arc::new(Notify::new()));
        let offered = Offered::default();
        let bell = Arc::<Bell>::default();
        let (place, file) = (database.place.clone(), database.file.clone());
        let reader = Reader { pool: database.readers()?, place, file };
        let (backend, url) = (database.backend, database.url().to_owned());
        let health = StoreHealth {
            reader: reader.clone(),
            database: database.clone(),
            directories: vec![data_dir.clone(), data_dir.join("objects")],
        };
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
        let access = Access { reader: reader.clone(), writer: writer.clone(), objects };
        let membership = Membership {
            reader: reader.clone(),
            writer: writer.clone(),
            presence,
            work: Arc::clone(&work),
            held: Arc::clone(&held),
            offered,
        };
        membership.heartbeat().await?;
        if backend == Backend::Postgres {
            tokio::spawn(listen(url, Arc::downgrade(&work)));
        }
        let parts = Parts {
            queue: JobQueue { access: access.clone(), work, held },
            jobs: JobReader { reader: reader.clone(), objects: access.objects.clone() },
            artifacts: ArtifactStore {
                access: access.clone(),
                max_bytes: config.artifacts_max_bytes,
            },
            baselines: BaselineStore { access: access.clone() },
            matrices: MatrixStore { access: access.clone() },
            deliveries: DeliveryQueue { reader, writer, bell },
            membership,
            health,
            cleaner: Cleaner { access: access.clone() },
            access,
        };
        Ok(Self { parts: Arc::new(parts) })
    }

    /// Returns the queue of jobs that wait or run.
    pub fn queue(&self) -> &JobQueue {
        &self.parts.queue
    }

    /// Returns the reader of jobs in any state.
    pub fn jobs(&self) -> &JobReader {
        &self.parts.jobs
    }

    pub fn artifacts(&self) -> &ArtifactStore {
        &self.parts.artifacts
    }

    pub fn baselines(&self) -> &BaselineStore {
        &self.parts.baselines
    }

    pub fn matrices(&self) -> &MatrixStore {
        &self.parts.matrices
    }

    pub fn deliveries(&self) -> &DeliveryQueue {
        &self.parts.deliveries
    }

    /// Returns this process's membership among the processes that use the database.
    pub fn membership(&self) -> &Membership {
        &self.parts.membership
    }

    /// Returns the health checks of the store.
    pub fn health(&self) -> &StoreHealth {
        &self.parts.health
    }

    pub fn cleaner(&self) -> &Cleaner {
        &self.parts.cleaner
    }

    /// Returns a reader of measured values.
    pub fn view(&self) -> StoreView {
        StoreView { reader: self.parts.access.reader.clone() }
    }

    /// Performs all queued writes, and closes the database. Later calls fail with `Closed`.
    pub async fn close(&self) {
        self.parts.access.reader.pool.close().await;
        self.parts.access.writer.close().await;
    }
}

/// Wakes waiting claims when another process announces a job. Ends when the store is dropped.
async fn listen(url: String, work: std::sync::Weak<Notify>) {
    let mut pause = Duration::from_millis(200);
    while work.strong_count() > 0 {
        // Polling continues in the meantime: see `wait_for_work`.
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
