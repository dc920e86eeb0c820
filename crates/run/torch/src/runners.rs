//! All runners of a server: the zygote that they come from, and how many there are at once.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::alone::Alone;
use super::child::Setup;
use super::fork::Runner;
use super::spares::Spares;
use super::wire::Versions;
use super::zygote::Zygote;
use warpgauge_sandbox::program::ChildProgram;
use warpgauge_turns::{Owner, Pool, PoolBounds, PoolFull, PoolPermit};

/// What runners are started with.
#[derive(Debug, Clone)]
pub struct RunnersConfig {
    /// This program: the zygote begins as it.
    pub program: PathBuf,
    /// The interpreter.
    pub python: PathBuf,
    /// Directory that holds PyTorch.
    pub site_packages: PathBuf,
    /// What the interpreter itself reads and executes.
    pub roots: Vec<PathBuf>,
    /// Evaluations that may wait for their turn; and function calls.
    pub queue_capacity: usize,
    /// Whether there may be several owners: then one has at most half of those that wait.
    pub shared: bool,
    /// The device that they use, as `CUDA_VISIBLE_DEVICES` names it; `None`: the CPU.
    pub device: Option<String>,
    /// Places beside each other; 0: one for every four cores, 8 at most. There are as many again for owners
    /// that have none while all are taken.
    pub places: usize,
    /// Runners that wait with a context of their own, where there is a device.
    pub spares: usize,
}

/// Why there is no runner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerUnavailable {
    /// Too many wait already.
    #[error("{waiting} evaluations wait for PyTorch already")]
    QueueFull {
        /// How many: of all, or of the owner that asked.
        waiting: usize,
    },
    /// The machine does not let us.
    #[error("PyTorch in {} cannot be used: {what}", site_packages.display())]
    Failed {
        /// Where it is.
        site_packages: PathBuf,
        /// In words.
        what: String,
    },
}

/// The runners of a server.
#[derive(Debug)]
pub struct Runners {
    config: RunnersConfig,
    setup: Setup,
    zygote: Arc<Mutex<Option<Zygote>>>,
    spares: Arc<Spares>,
    /// Places of evaluations, and those of function calls: neither keeps the other waiting.
    evaluations: Pool,
    functions: Pool,
}

/// The right to run submissions, one after the other or beside each other for one evaluation.
#[derive(Debug)]
pub struct RunnerPermit {
    _turn: PoolPermit,
}

impl Runners {
    /// Runners that nobody has asked for yet: the first one waits for PyTorch to be imported.
    pub fn new(config: RunnersConfig) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Evaluations beside each other have cores of their own.
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
            // One who sleeps in its place keeps others from nothing.
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

    /// Threads that a submission computes with.
    pub fn threads(&self) -> usize {
        self.setup.threads
    }

    /// How many places there are, of evaluations and as many of function calls.
    pub fn places(&self) -> usize {
        self.evaluations.bounds().places
    }

    /// Waits for a place of an evaluation.
    ///
    /// # Errors
    /// Too many wait already.
    pub async fn place(&self, owner: Owner) -> Result<RunnerPermit, RunnerUnavailable> {
        place_in(&self.evaluations, owner).await
    }

    /// Waits for a place of a function call.
    ///
    /// # Errors
    /// Too many wait already.
    pub async fn function_place(&self, owner: Owner) -> Result<RunnerPermit, RunnerUnavailable> {
        place_in(&self.functions, owner).await
    }

    /// Whether a function call waits for a place.
    pub fn is_wanted(&self) -> bool {
        self.functions.waiting() > 0
    }

    /// Comes back when a function call waits for a place.
    pub async fn wanted(&self) {
        self.functions.wanted().await;
    }

    /// Imports PyTorch, if no process has it; says which one it is. It takes seconds, once.
    ///
    /// # Errors
    /// It cannot be imported.
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

    /// A fresh runner, a spare one if there is any. Its process has seen no submission.
    ///
    /// # Errors
    /// The machine does not let us.
    pub async fn runner(&self) -> Result<Runner, RunnerUnavailable> {
        if let Some(spare) = self.spares.take() {
            return Ok(spare);
        }
        let (program, setup) = (self.config.program.clone(), self.setup.clone());
        let zygote = Arc::clone(&self.zygote);
        let make = move || {
            let mut zygote = zygote.lock().unwrap_or_else(PoisonError::into_inner);
            forked(&mut zygote, &program, &setup)
        };
        let made = tokio::task::spawn_blocking(make).await;
        made.unwrap_or_else(|error| Err(error.to_string())).map_err(|what| self.failed(what))
    }

    /// A fresh runner that a tool is to be put round, whose files are in `directory`: what is started, and what
    /// it reads from its standard input. Once it runs, [`Alone`] leads to it.
    ///
    /// # Errors
    /// The machine does not let us.
    pub fn alone(&self, directory: &Path) -> io::Result<(ChildProgram, OwnedFd, Alone)> {
        Alone::new(&self.config.program, &self.setup, directory)
    }

    /// Has as many wait as there are to be, if they have a device; comes back when they are ready, and nothing
    /// of that uses the device any more.
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
                // Whoever needs one tries again, and tells why it does not go.
                forked(&mut zygote, &program, &setup).ok()
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
    program: &std::path::Path,
    setup: &Setup,
) -> Result<Runner, String> {
    match started(zygote, program, setup)?.fork() {
        Ok(runner) => Ok(runner),
        Err(error) => {
            // It may have been ended where memory ran out: another one is tried once.
            tracing::warn!(%error, "the process that has imported PyTorch is replaced");
            *zygote = None;
            let again = started(zygote, program, setup)?.fork();
            again.map_err(|error| format!("it cannot fork: {error}"))
        }
    }
}

fn started<'a>(
    zygote: &'a mut Option<Zygote>,
    program: &std::path::Path,
    setup: &Setup,
) -> Result<&'a mut Zygote, String> {
    // One that has ended is replaced here, and not by the fork: that is asked for while a deadline runs.
    if zygote.as_mut().is_some_and(|zygote| !zygote.is_running()) {
        tracing::warn!("the process that has imported PyTorch has ended, and is replaced");
        *zygote = None;
    }
    match zygote {
        Some(running) => Ok(running),
        None => Ok(zygote.insert(Zygote::start(program, setup)?)),
    }
}
