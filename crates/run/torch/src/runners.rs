//! All runners of a server: the zygote that they are forked from, and the limits on their number.

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

/// Configuration of the runners.
#[derive(Debug, Clone)]
pub struct RunnersConfig {
    /// Path of this program, which the zygote starts as.
    pub program: PathBuf,
    /// Path of the Python interpreter.
    pub python: PathBuf,
    /// Directory that holds PyTorch.
    pub site_packages: PathBuf,
    /// Directories of the interpreter's own files, which it reads and executes.
    pub roots: Vec<PathBuf>,
    /// Most evaluations that may wait in the queue; the same limit holds for function calls.
    pub queue_capacity: usize,
    /// Whether there may be several owners: each may then have at most half of the waiting
    /// evaluations.
    pub shared: bool,
    /// The device that runners use, as in `CUDA_VISIBLE_DEVICES`; `None`: the CPU.
    pub device: Option<String>,
    /// Evaluations that may run in parallel; 0: one per four cores, at most 8. As many further
    /// permits exist for owners that hold none while all are taken.
    pub places: usize,
    /// Number of spare runners that wait with a context on the device.
    pub spares: usize,
}

/// Why no runner is available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerUnavailable {
    #[error("{waiting} evaluations wait for PyTorch already")]
    QueueFull {
        /// Evaluations that wait: of all owners, or of this owner.
        waiting: usize,
    },
    /// The system refused.
    #[error("PyTorch in {} cannot be used: {what}", site_packages.display())]
    Failed { site_packages: PathBuf, what: String },
}

/// The runners of a server.
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
    /// Makes the runners and starts none: the first request waits until PyTorch has been imported.
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
            // An owner whose job sleeps does not block other owners.
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

    /// Returns the number of threads that a submission computes with.
    pub fn threads(&self) -> usize {
        self.setup.threads
    }

    /// Returns the number of evaluations that may run in parallel; as many function calls may.
    pub fn places(&self) -> usize {
        self.evaluations.bounds().places
    }

    /// Waits for a permit for an evaluation.
    ///
    /// # Errors
    /// The queue is full.
    pub async fn place(&self, owner: Owner) -> Result<RunnerPermit, RunnerUnavailable> {
        place_in(&self.evaluations, owner).await
    }

    /// Waits for a permit for a function call.
    ///
    /// # Errors
    /// The queue is full.
    pub async fn function_place(&self, owner: Owner) -> Result<RunnerPermit, RunnerUnavailable> {
        place_in(&self.functions, owner).await
    }

    /// Returns whether a function call waits for a permit.
    pub fn is_wanted(&self) -> bool {
        self.functions.waiting() > 0
    }

    /// Waits until a function call waits for a permit.
    pub async fn wanted(&self) {
        self.functions.wanted().await;
    }

    /// Starts the zygote, which imports PyTorch, if none is running; returns the versions. The
    /// first call takes seconds.
    ///
    /// # Errors
    /// PyTorch cannot be imported.
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

    /// Returns a fresh runner, a spare one if available and if few queues suffice. Its process has
    /// run no submission.
    ///
    /// # Errors
    /// The system does not let this process fork.
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

    /// Returns the program for a fresh runner under a tool, its standard input, and the connection
    /// to the runner once it runs. The tool's files are in `directory`.
    ///
    /// # Errors
    /// The system refused a socket.
    pub fn alone(&self, directory: &Path) -> io::Result<(ChildProgram, OwnedFd, Alone)> {
        Alone::new(&self.config.program, &self.setup, directory)
    }

    /// Starts spare runners up to the configured number, if they use a device. Returns when they
    /// are ready and no longer use the device to make their contexts.
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
                // The next caller that needs a runner forks again, and reports the error.
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
            // The system may have killed the zygote when memory ran out: retry once with a new one.
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
    // Replace a zygote that has ended here, not when forking fails: a deadline runs while the fork
    // is made.
    if zygote.as_mut().is_some_and(|zygote| !zygote.is_running()) {
        tracing::warn!("the process that has imported PyTorch has ended, and is replaced");
        *zygote = None;
    }
    match zygote {
        Some(running) => Ok(running),
        None => Ok(zygote.insert(Zygote::start(program, setup)?)),
    }
}
