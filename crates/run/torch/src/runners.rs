//! All runners of a server: the zygote that creates them, and the limits on their number.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::alone::Alone;
use super::child::Setup;
use super::fork::Runner;
use super::queues::Queues;
use super::spares::Spares;
use super::wire::Versions;
use super::zygote::Zygote;
use warpgauge_sandbox::program::ChildProgram;
use warpgauge_turns::{Owner, Pool, PoolBounds, PoolFull, PoolPermit};

/// Configuration of the runners of PyTorch code.
#[derive(Debug, Clone)]
pub struct RunnersConfig {
    /// Path of this program, which is started as the zygote.
    pub program: PathBuf,
    /// Path of the Python interpreter.
    pub python: PathBuf,
    /// Directory that contains PyTorch.
    pub site_packages: PathBuf,
    /// Directories of the interpreter's files, which it may read and execute.
    pub roots: Vec<PathBuf>,
    /// Maximum number of evaluations that wait in the queue; the same limit applies to function
    /// calls.
    pub queue_capacity: usize,
    /// Whether there may be several owners. Each owner may then have at most half of the waiting
    /// evaluations.
    pub shared: bool,
    /// The device that runners use, as in `CUDA_VISIBLE_DEVICES`; `None` means the CPU.
    pub device: Option<String>,
    /// Maximum number of evaluations that run in parallel; 0 means one per four cores, at most 8.
    /// As many additional permits are reserved for owners that hold none while all others are
    /// taken.
    pub places: usize,
    /// Number of spare runners that wait with a context on the device.
    pub spares: usize,
}

/// Reason why no runner is available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerUnavailable {
    #[error("{waiting} evaluations are already waiting for PyTorch")]
    QueueFull {
        /// Number of waiting evaluations: of all owners, or of this owner.
        waiting: usize,
    },
    /// The process with PyTorch cannot be started or cannot fork.
    #[error("PyTorch in {} cannot be used: {what}", site_packages.display())]
    Failed { site_packages: PathBuf, what: String },
}

/// The runners of a server, which run PyTorch code.
#[derive(Debug)]
pub struct Runners {
    config: RunnersConfig,
    setup: Setup,
    zygote: Arc<Mutex<Option<Zygote>>>,
    spares: Arc<Spares>,
    /// Permits of evaluations and of function calls are separate, so that neither delays the other.
    evaluations: Pool,
    functions: Pool,
}

/// A permit to run submissions, sequentially or in parallel, for one evaluation.
#[derive(Debug)]
pub struct RunnerPermit {
    _turn: PoolPermit,
}

impl Runners {
    /// Prepares the runners without starting a process. The first request waits until PyTorch is
    /// imported.
    pub fn new(config: RunnersConfig) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Parallel evaluations share the cores evenly.
        let places = match config.places {
            0 => (cores / 4).clamp(1, 8),
            given => given,
        };
        let setup = Setup {
            python: config.python.clone(),
            site_packages: config.site_packages.clone(),
            roots: config.roots.clone(),
            threads: (cores / places).max(1),
            device: config.device.clone(),
            tool: None,
        };
        let pool = Pool::new(PoolBounds {
            places,
            // If an owner's job sleeps, other owners are not blocked.
            extra: places,
            waiting: config.queue_capacity,
            shared: config.shared,
            least: 1,
        });
        Self {
            functions: Pool::new(pool.bounds()),
            evaluations: pool,
            config,
            setup,
            zygote: Arc::default(),
            spares: Arc::default(),
        }
    }

    /// Returns the number of threads that a submission uses for computation.
    pub fn threads(&self) -> usize {
        self.setup.threads
    }

    /// Returns the number of evaluations that may run in parallel. The same number of function
    /// calls may run.
    pub fn places(&self) -> usize {
        self.evaluations.bounds().places
    }

    /// Waits for a permit for an evaluation.
    ///
    /// # Errors
    /// Fails if the queue is full.
    pub async fn place(&self, owner: Owner) -> Result<RunnerPermit, RunnerUnavailable> {
        place_in(&self.evaluations, owner).await
    }

    /// Waits for a permit for a function call.
    ///
    /// # Errors
    /// Fails if the queue is full.
    pub async fn function_place(&self, owner: Owner) -> Result<RunnerPermit, RunnerUnavailable> {
        place_in(&self.functions, owner).await
    }

    /// Returns whether a function call waits for a permit.
    pub fn is_wanted(&self) -> bool {
        self.functions.waiting() > 0
    }

    /// Returns as soon as a function call waits for a permit.
    pub async fn wanted(&self) {
        self.functions.wanted().await;
    }

    /// Starts the zygote, which imports PyTorch, if none is running. Returns the versions. The
    /// first call takes seconds.
    ///
    /// # Errors
    /// Fails if PyTorch cannot be imported.
    pub async fn warm(&self) -> Result<Versions, RunnerUnavailable> {
        let (program, setup) = (self.config.program.clone(), self.setup.clone());
        let zygote = Arc::clone(&self.zygote);
        let warm = move || {
            let mut zygote = zygote.lock().unwrap_or_else(PoisonError::into_inner);
            started(&mut zygote, &program, &setup).map(|zygote| zygote.versions.clone())
        };
        let warmed = tokio::task::spawn_blocking(warm).await;
        warmed.unwrap_or_else(|error| Err(error.to_string())).map_err(|what| self.failed(what))
    }

    /// Returns a fresh runner, whose process has not run a submission. It is a spare runner if one
    /// is idle and [`Queues::Few`] suffices.
    ///
    /// # Errors
    /// Fails if the zygote cannot be started or cannot fork.
    pub async fn runner(&self, queues: Queues) -> Result<Runner, RunnerUnavailable> {
        if queues == Queues::Few
            && let Some(spare) = self.spares.take()
        {
            return Ok(spare);
        }
        let (program, setup) = (self.config.program.clone(), self.setup.clone());
        let zygote = Arc::clone(&self.zygote);
        let make = move || {
            let mut zygote = zygote.lock().unwrap_or_else(PoisonError::into_inner);
            forked(&mut zygote, (&program, &setup), queues)
        };
        let made = tokio::task::spawn_blocking(make).await;
        made.unwrap_or_else(|error| Err(error.to_string())).map_err(|what| self.failed(what))
    }

    /// Returns the program for a fresh runner under a tool, the program's standard input, and the
    /// connection to the runner. The tool's files are in `directory`.
    ///
    /// # Errors
    /// Fails if the system does not create the sockets.
    pub fn alone(&self, directory: &Path) -> io::Result<(ChildProgram, OwnedFd, Alone)> {
        Alone::new(&self.config.program, &self.setup, directory)
    }

    /// If runners use a device, starts spare runners up to the configured number. Returns when they
    /// are ready and no longer use the device to create their contexts.
    pub async fn replenish(&self) {
        if self.config.device.is_none() {
            return;
        }
        let (program, setup) = (self.config.program.clone(), self.setup.clone());
        let (zygote, spares) = (Arc::clone(&self.zygote), Arc::clone(&self.spares));
        let wanted = self.config.spares;
        let make = move || {
            spares.fill(wanted, || {
                let mut zygote = zygote.lock().unwrap_or_else(PoisonError::into_inner);
                // The next caller that needs a runner forks again and reports the error.
                forked(&mut zygote, (&program, &setup), Queues::Few).ok()
            });
        };
        let _ = tokio::task::spawn_blocking(make).await;
    }

    fn failed(&self, what: String) -> RunnerUnavailable {
        RunnerUnavailable::Failed { site_packages: self.config.site_packages.clone(), what }
    }
}

async fn place_in(pool: &Pool, owner: Owner) -> Result<RunnerPermit, RunnerUnavailable> {
    let turn = pool.take(owner).await.map_err(|full| match full {
        PoolFull::All(waiting) | PoolFull::Share(waiting) => {
            RunnerUnavailable::QueueFull { waiting }
        }
    })?;
    Ok(RunnerPermit { _turn: turn })
}

fn forked(
    zygote: &mut Option<Zygote>,
    (program, setup): (&std::path::Path, &Setup),
    queues: Queues,
) -> Result<Runner, String> {
    match started(zygote, program, setup)?.fork(queues) {
        Ok(runner) => Ok(runner),
        Err(error) => {
            // The system may have killed the zygote for lack of memory: retry once with a new
            // zygote.
            tracing::warn!(%error, "the process that has imported PyTorch is replaced");
            *zygote = None;
            let again = started(zygote, program, setup)?.fork(queues);
            again.map_err(|error| format!("it cannot fork: {error}"))
        }
    }
}

fn started<'a>(
    zygote: &'a mut Option<Zygote>,
    program: &std::path::Path,
    setup: &Setup,
) -> Result<&'a mut Zygote, String> {
    // An ended zygote is replaced here, not after forking fails, because a deadline runs while the
    // fork is created.
    if zygote.as_mut().is_some_and(|zygote| !zygote.is_running()) {
        tracing::warn!("the process that has imported PyTorch has ended, and is replaced");
        *zygote = None;
    }
    match zygote {
        Some(running) => Ok(running),
        None => Ok(zygote.insert(Zygote::start(program, setup)?)),
    }
}
