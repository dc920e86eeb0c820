//! The entry point of the compile stage. [`Compiler`] has a cache, runs identical concurrent
//! compilations once, and limits the number of children.

mod builds;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use self::builds::Builds;
use super::artifact::{CompileTimings, CompiledModule};
use super::cache::{Cache, Key};
use super::disassemble::{self, Listings};
use super::environment::Environment;
use super::error::REMEDY;
use super::error::{CompileError, CompileSetupError};
use super::job::{Attempt, CompileOptions, SourceJob};
use super::passthrough::Passthrough;
use super::refused::Refused;
use super::toolchain::Toolchain;
use super::triton::{Choices, TritonJob, Untold};
use super::tunable::Tunable;
use warpgauge_contract::{Backend, KernelCode, KernelType};
use warpgauge_model::{Diagnostic, ImageFormat, Target};
use warpgauge_sandbox::enforcement::{self, Enforcement};
use warpgauge_telemetry::{CacheResult, telemetry};
use warpgauge_turns::{Owner, Pool, PoolBounds, PoolFull, PoolPermit};

/// Configuration of the compile stage.
#[derive(Debug, Clone)]
pub struct CompilerConfig {
    /// The program to start for a compilation: this executable.
    pub program: PathBuf,
    /// Directory in which artifacts and unpacked headers are kept across restarts.
    pub cache_dir: PathBuf,
    /// Maximum size of the artifact cache, bytes. If it is 0, nothing stays on disk.
    pub cache_max_bytes: u64,
    /// Directory for the private directories of compilations.
    pub run_dir: PathBuf,
    /// Maximum number of concurrent compilations, at least 1. Owners without a running compilation
    /// can use the same number in addition.
    pub parallelism: usize,
    /// Whether there may be several owners. If so, one owner may have at most half of the waiting
    /// compilations.
    pub shared: bool,
    /// Time limit of a compilation, from its start.
    pub timeout: Duration,
    pub toolchain: Toolchain,
}

/// Maximum number of waiting compilations. A request may need several of them. The number of
/// requests is limited, too.
const MOST_WAITING: usize = 16_384;

/// Statistics of the compile stage since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompileStats {
    pub requests: u64,
    /// Number of requests that were answered from memory.
    pub memory_hits: u64,
    /// Number of requests that were answered from disk.
    pub disk_hits: u64,
    /// Number of requests that were answered by an identical compilation, which was already
    /// running.
    pub shared: u64,
    /// Number of requests that were compiled.
    pub compiled: u64,
    /// Number of images from callers that were checked and used without compilation.
    pub passed: u64,
    /// Number of requests that failed, for any reason.
    pub failed: u64,
    /// Number of compilations that are running now.
    pub running: u64,
}

pub struct Compiler {
    environment: Environment,
    cache: Arc<Cache>,
    turns: Pool,
    flights: Mutex<HashMap<FlightKey, Arc<Flight>>>,
    refused: Refused,
    /// Errors of Triton kernels. For each kernel, the compiler is first queried for its
    /// configurations and then compiles it; the second step reuses the error of the first.
    faulty: Refused,
    choices: Choices,
    untold: Untold,
    counters: Counters,
    listings: Listings,
    builds: Builds,
    sandbox: OnceLock<Enforcement>,
}

/// A compilation that several callers wait for. The caller that holds the lock compiles. If that
/// caller is cancelled, the next one compiles.
type Flight = AsyncMutex<Option<Result<Arc<CompiledModule>, CompileError>>>;

/// Content, time limit and owner of a compilation. A caller with a longer limit does not wait for a
/// compilation with a shorter one, and no caller waits for another owner's.
type FlightKey = (Key, Duration, Owner);

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    shared: AtomicU64,
    compiled: AtomicU64,
    passed: AtomicU64,
    failed: AtomicU64,
    running: AtomicU64,
}

/// The work that a request needs.
#[derive(Clone, Copy)]
enum Work<'a> {
    Source(&'a Attempt<'a>),
    Triton(&'a TritonJob),
}

/// Where an artifact came from.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Memory,
    Disk,
    Shared,
    Compiled,
    /// The caller sent an image, which was not compiled.
    Passed,
}

impl Origin {
    fn counted(self) -> CacheResult {
        match self {
            Origin::Memory => CacheResult::Memory,
            Origin::Disk => CacheResult::Disk,
            Origin::Shared => CacheResult::Shared,
            Origin::Compiled => CacheResult::Miss,
            Origin::Passed => CacheResult::Brought,
        }
    }
}

impl Compiler {
    /// Opens the cache and creates the directories.
    pub fn new(config: CompilerConfig) -> Result<Self, CompileSetupError> {
        if config.parallelism == 0 {
            return Err(CompileSetupError::Setting {
                name: "parallelism",
                value: "0".into(),
                expected: "at least 1",
            });
        }
        if config.timeout.is_zero() {
            return Err(CompileSetupError::Setting {
                name: "timeout",
                value: "0 s".into(),
                expected: "longer than 0",
            });
        }
        let made = |path: &PathBuf| {
            let made = warpgauge_private_files::directory(path)
                .map_err(warpgauge_private_files::PrivateError::into_io);
            made.and_then(|()| path.canonicalize()).map_err(|source| {
                let path = path.clone();
                CompileSetupError::Directory { operation: "create directory", path, source }
            })
        };
        // The paths must be absolute: children run in other directories.
        let run_dir = made(&config.run_dir)?;
        let cache_dir = made(&config.cache_dir)?;
        let cache = Cache::open(cache_dir.join("artifacts"), config.cache_max_bytes)?;
        Ok(Self {
            cache: Arc::new(cache),
            turns: Pool::new(PoolBounds {
                places: config.parallelism,
                extra: config.parallelism,
                waiting: MOST_WAITING,
                shared: config.shared,
                least: 1,
            }),
            flights: Mutex::default(),
            refused: Refused::default(),
            faulty: Refused::default(),
            choices: Choices::default(),
            untold: Untold::default(),
            counters: Counters::default(),
            listings: Listings::default(),
            builds: Builds::default(),
            sandbox: OnceLock::new(),
            environment: Environment::new(
                config.program,
                run_dir,
                &cache_dir,
                config.timeout,
                config.toolchain,
            ),
        })
    }

    /// Compiles `kernel` for `target`, or finds it in the cache.
    ///
    /// Dropping the future kills the compilation, unless another caller waits for it.
    pub async fn compile(
        &self,
        kernel: &KernelCode,
        target: &Target,
        options: CompileOptions,
    ) -> Result<CompiledModule, CompileError> {
        let started = Instant::now();
        add(&self.counters.requests);
        let result = self.compile_or_find(kernel, target, options).await;
        let result = result.map(|(artifact, origin)| {
            let untold = origin == Origin::Memory && self.untold.take(&artifact.key);
            (artifact, if untold { Origin::Compiled } else { origin })
        });
        let (artifact, origin) = result.inspect_err(|_| {
            add(&self.counters.failed);
            telemetry().compiled(CacheResult::Failed, started.elapsed());
        })?;
        telemetry().compiled(origin.counted(), started.elapsed());
        add(match origin {
            Origin::Memory => &self.counters.memory_hits,
            Origin::Disk => &self.counters.disk_hits,
            Origin::Shared => &self.counters.shared,
            Origin::Compiled => &self.counters.compiled,
            Origin::Passed => &self.counters.passed,
        });
        let mut artifact = CompiledModule::clone(&artifact);
        artifact.cache_hit = matches!(origin, Origin::Memory | Origin::Disk | Origin::Shared);
        artifact.timings = CompileTimings {
            total_ms: started.elapsed().as_secs_f64() * 1e3,
            compiler_ms: if artifact.cache_hit { 0.0 } else { artifact.timings.compiler_ms },
        };
        Ok(artifact)
    }

    async fn compile_or_find(
        &self,
        kernel: &KernelCode,
        target: &Target,
        options: CompileOptions,
    ) -> Result<(Arc<CompiledModule>, Origin), CompileError> {
        let limit = self.environment.limit(options.timeout);
        if kernel.kernel_type == KernelType::Triton {
            let job = TritonJob::new(kernel, target, &self.environment)?;
            let flight = (job.key().of_owner(options.owner), limit, options.owner);
            return self.find_or_fly(&flight, Work::Triton(&job)).await;
        }
        if let Some(passthrough) = Passthrough::new(kernel, target, options.any_kernel)? {
            let check = tokio::task::spawn_blocking(move || passthrough.check());
            let checked = check.await.map_err(|e| CompileError::internal(e.to_string()))?;
            return checked.map(|artifact| (Arc::new(artifact), Origin::Passed));
        }
        match self.compile_source(kernel, target, options, None).await {
            Err((error, true)) => self.with_nvcc(kernel, target, options, error).await,
            Err((error, false)) => Err(error),
            Ok(found) => Ok(found),
        }
    }

    /// Compiles a source with nvcc after NVRTC rejected it with `error`. If nvcc rejects it, too,
    /// its error is returned.
    async fn with_nvcc(
        &self,
        kernel: &KernelCode,
        target: &Target,
        options: CompileOptions,
        error: CompileError,
    ) -> Result<(Arc<CompiledModule>, Origin), CompileError> {
        let compiled = self.compile_source(kernel, target, options, Some(Backend::Nvcc)).await;
        let Ok((artifact, origin)) = compiled else { return Err(error) };
        let mut artifact = CompiledModule::clone(&artifact);
        artifact
            .diagnostics
            .insert(0, Diagnostic::note("NVRTC does not accept this source: nvcc compiled it"));
        Ok((Arc::new(artifact), origin))
    }

    /// Compiles a source with the first suitable compiler. An error also reports whether nvcc may
    /// accept the source.
    async fn compile_source(
        &self,
        kernel: &KernelCode,
        target: &Target,
        options: CompileOptions,
        backend: Option<Backend>,
    ) -> Result<(Arc<CompiledModule>, Origin), (CompileError, bool)> {
        let of_job = |error| (error, false);
        let limit = self.environment.limit(options.timeout);
        let job = SourceJob::new(kernel, target, options, backend).map_err(of_job)?;
        let mut reasons = Vec::new();
        // Several compilers may be suitable. If one does not know the architecture, the next is
        // tried.
        for attempt in job.attempts(&self.environment).map_err(of_job)? {
            let key = attempt.key(&self.environment).of_owner(options.owner);
            let flight = (key, limit, options.owner);
            match self.find_or_fly(&flight, Work::Source(&attempt)).await {
                Err(CompileError::Environment { what, .. }) => reasons.push(what),
                Err(CompileError::Rejected(failure)) => {
                    let suits = self.environment.toolchain().nvcc.is_some()
                        && kernel
                            .metadata
                            .as_ref()
                            .is_none_or(|metadata| metadata.backend.is_none())
                        && attempt.may_suit_nvcc(&failure);
                    return Err((CompileError::Rejected(failure), suits));
                }
                Ok((artifact, origin)) if artifact.options.is_empty() => {
                    // An earlier version stored the artifact, without its options.
                    let artifact = CompiledModule::clone(&artifact);
                    let artifact = CompiledModule { options: attempt.options(), ..artifact };
                    return Ok((Arc::new(artifact), origin));
                }
                result => return result.map_err(of_job),
            }
        }
        let what = reasons.join("; ");
        Err((CompileError::Environment { what, remedy: REMEDY.into() }, false))
    }

    /// Returns a cached artifact or a remembered error. Otherwise compiles.
    async fn find_or_fly(
        &self,
        flight: &FlightKey,
        work: Work<'_>,
    ) -> Result<(Arc<CompiledModule>, Origin), CompileError> {
        let (key, limit, _) = flight;
        if let Some(artifact) = self.cache.get_hot(key) {
            return Ok((artifact, Origin::Memory));
        }
        for known in [&self.refused, &self.faulty] {
            if let Some(error) = known.find(key, *limit, Instant::now()) {
                return Err(error);
            }
        }
        if let Some(tunable) = self.choices.find(key) {
            return Err(CompileError::Tunable(tunable));
        }
        self.fly(flight, work).await
    }

    /// Runs a compilation that all callers with the same content, limit and owner share.
    async fn fly(
        &self,
        key: &FlightKey,
        work: Work<'_>,
    ) -> Result<(Arc<CompiledModule>, Origin), CompileError> {
        let flight = self.board(key);
        let _leave = Leave { compiler: self, key, flight: &flight };
        let mut slot = flight.lock().await;
        if let Some(result) = slot.as_ref() {
            return result.clone().map(|artifact| (artifact, Origin::Shared));
        }
        let (cache, cold_key) = (Arc::clone(&self.cache), key.0.clone());
        let cold = tokio::task::spawn_blocking(move || cache.get_cold(&cold_key)).await;
        if let Ok(Some(artifact)) = cold {
            *slot = Some(Ok(Arc::clone(&artifact)));
            return Ok((artifact, Origin::Disk));
        }
        let turn = self.turn(key.2).await?;
        // Another owner's compilation may have stored the artifact in the meantime.
        if let Some(artifact) = self.cache.get_hot(&key.0) {
            *slot = Some(Ok(Arc::clone(&artifact)));
            return Ok((artifact, Origin::Shared));
        }
        let result = self.build(key, work).await;
        drop(turn);
        *slot = Some(result.clone());
        result.map(|artifact| (artifact, Origin::Compiled))
    }

    /// Waits for the owner's turn to start a child.
    async fn turn(&self, owner: Owner) -> Result<PoolPermit, CompileError> {
        self.turns.take(owner).await.map_err(|full| match full {
            PoolFull::All(waiting) | PoolFull::Share(waiting) => {
                CompileError::QueueFull { waiting }
            }
        })
    }

    async fn build(
        &self,
        (key, limit, _): &FlightKey,
        work: Work<'_>,
    ) -> Result<Arc<CompiledModule>, CompileError> {
        let _running = Running::new(&self.counters.running);
        let ran = match work {
            Work::Source(attempt) => attempt.run(&self.environment, *limit).await,
            Work::Triton(job) => job.run(&self.environment, *limit).await,
        };
        let (mut artifact, enforced) = ran.inspect_err(|error| {
            self.refused.note(key, *limit, error, Instant::now());
            if matches!(work, Work::Triton(_)) {
                self.faulty.keep(key, *limit, error, Instant::now());
            }
            self.choices.note(key, error);
        })?;
        if let Some(enforced) = enforced {
            // Only the first result is stored: the operating system's kernel does not change while
            // the process runs.
            let _ = self.sandbox.set(enforced);
        }
        artifact.key = key.to_string();
        let artifact = Arc::new(artifact);
        // The next request finds the artifact in memory, even before the file is written.
        self.cache.put_hot(key, &artifact);
        let (cache, key, stored) = (Arc::clone(&self.cache), key.clone(), Arc::clone(&artifact));
        tokio::task::spawn_blocking(move || cache.put_cold(&key, &*stored));
        Ok(artifact)
    }

    fn board(&self, key: &FlightKey) -> Arc<Flight> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(flights.entry(key.clone()).or_default())
    }

    /// Returns the configurations of a kernel that has several.
    ///
    /// A kernel with one configuration is compiled or found in the cache. The next caller that
    /// requests it gets the duration of this work in its timings, because the work was done for
    /// that caller. That caller also gets any error.
    pub async fn choices(
        &self,
        kernel: &KernelCode,
        target: &Target,
        options: CompileOptions,
    ) -> Option<Box<Tunable>> {
        match self.compile_or_find(kernel, target, options).await {
            Err(CompileError::Tunable(tunable)) => Some(tunable),
            Ok((artifact, Origin::Compiled)) => {
                self.untold.put(&artifact.key);
                None
            }
            _ => None,
        }
    }

    /// Keeps `count` waiting children that have imported Triton. They are started after the first
    /// Triton kernel.
    pub fn keep_triton_spares(&self, count: usize) {
        self.environment.keep_spares(count);
    }

    /// Returns the machine code of an image as text. A confined child creates it, unless the
    /// owner's cached listings contain it.
    pub async fn disassemble(
        &self,
        image: &[u8],
        format: ImageFormat,
        owner: Owner,
    ) -> Result<Arc<str>, CompileError> {
        let _turn = self.turn(owner).await?;
        self.listings.of(&self.environment, image, format, owner).await
    }

    /// Returns the reason why images of a format cannot be listed here, or `None` if they can.
    pub fn cannot_disassemble(&self, format: ImageFormat) -> Option<CompileError> {
        disassemble::missing(self.environment.toolchain(), format)
    }

    pub fn toolchain(&self) -> &Toolchain {
        self.environment.toolchain()
    }

    /// Returns which sandbox rules for compile children the operating system's kernel enforces.
    pub fn sandbox(&self) -> &Enforcement {
        self.sandbox.get_or_init(enforcement::probe)
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> CompileStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CompileStats {
            requests: get(&self.counters.requests),
            memory_hits: get(&self.counters.memory_hits),
            disk_hits: get(&self.counters.disk_hits),
            shared: get(&self.counters.shared),
            compiled: get(&self.counters.compiled),
            passed: get(&self.counters.passed),
            failed: get(&self.counters.failed),
            running: get(&self.counters.running),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Counts a running compilation until it is dropped.
struct Running<'a>(&'a AtomicU64);

impl<'a> Running<'a> {
    fn new(counter: &'a AtomicU64) -> Self {
        add(counter);
        Self(counter)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Removes a shared compilation when its last caller leaves.
struct Leave<'a> {
    compiler: &'a Compiler,
    key: &'a FlightKey,
    flight: &'a Arc<Flight>,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut flights = self.compiler.flights.lock().unwrap_or_else(PoisonError::into_inner);
        // The map holds one reference, and this caller another.
        if Arc::strong_count(self.flight) <= 2 {
            flights.remove(self.key);
        }
    }
}
