//! State that all compilations share: toolchain, directories, headers, and the program that runs as
//! the child.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use super::cache::KeyCompiler;
use super::error::{CompileError, REMEDY};
use super::limits::{LEAST_TIMEOUT, cpu_limit};
use super::protocol::{
    ChildReply, ChildRequest, Outcome, PROTOCOL_VERSION, TritonTask, TritonWork, Work,
};
use super::spares::Spares;
use super::supervisor;
use super::supervisor::Waiting;
use super::toolchain::{NvrtcInstall, Toolchain};
use warpgauge_model::Target;

/// Minimum number of CPU cores for a child to import Triton while another child compiles. With
/// fewer cores, the import would slow down the running compilation.
const CORES_FOR_BOTH: usize = 4;

/// Maximum time for unpacking a library's headers.
const UNPACK_TIMEOUT: Duration = Duration::from_secs(60);

/// State that all compilations share.
pub(crate) struct Environment {
    program: PathBuf,
    run_dir: PathBuf,
    headers_dir: PathBuf,
    timeout: Duration,
    toolchain: Toolchain,
    /// Architectures that a library does not support. The library is not tried for them again.
    unsupported: Mutex<HashSet<(PathBuf, u32)>>,
    unpacked: Mutex<HashMap<PathBuf, Arc<OnceCell<()>>>>,
    spares: Arc<Spares>,
}

/// Header directories that a compilation searches.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    pub directories: Vec<PathBuf>,
    /// Identity of the directories, for the cache key.
    pub identity: Vec<String>,
    /// Directory into which the library's bundled headers must be unpacked first.
    pub to_unpack: Option<PathBuf>,
}

impl Headers {
    /// Returns the headers in the directories of a toolkit.
    pub(crate) fn of_directories(directories: &[PathBuf]) -> Self {
        let stamp = |dir: &PathBuf| {
            let marker = ["cuda_fp16.h", "cuda/std/version"].map(|name| dir.join(name));
            let marker = marker.iter().find(|path| path.is_file()).unwrap_or(dir);
            format!("{:?}", KeyCompiler::of(String::new(), marker).stamp)
        };
        Self {
            identity: directories.iter().map(stamp).collect(),
            directories: directories.to_vec(),
            to_unpack: None,
        }
    }
}

impl Environment {
    pub(crate) fn new(
        program: PathBuf,
        run_dir: PathBuf,
        cache_dir: &Path,
        timeout: Duration,
        toolchain: Toolchain,
    ) -> Self {
        Self {
            program,
            run_dir,
            headers_dir: cache_dir.join("headers"),
            timeout,
            toolchain,
            unsupported: Mutex::default(),
            unpacked: Mutex::default(),
            spares: Arc::default(),
        }
    }

    pub(crate) fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// Returns the libraries that may compile for a device, best first. Returns an error if there
    /// are none.
    pub(crate) fn nvrtc_for(
        &self,
        target: &Target,
        arch: u32,
    ) -> Result<Vec<&NvrtcInstall>, CompileError> {
        let fitting = self.toolchain.nvrtc_for(target.driver_version, !target.emulated);
        let unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |i: &&NvrtcInstall| !unsupported.contains(&(i.path.clone(), arch));
        let usable: Vec<&NvrtcInstall> = fitting.iter().copied().filter(known).collect();
        if !usable.is_empty() {
            return Ok(usable);
        }
        let driver =
            format!("{}.{}", target.driver_version / 1000, target.driver_version % 1000 / 10);
        let list = |installs: &mut dyn Iterator<Item = &NvrtcInstall>| {
            installs.map(NvrtcInstall::version_text).collect::<Vec<_>>().join(", ")
        };
        let what = if self.toolchain.nvrtc.is_empty() {
            "no NVRTC (the CUDA run-time compiler) was found".to_owned()
        } else if fitting.is_empty() {
            format!(
                "NVRTC {} generates machine code for newer drivers only; this one supports CUDA {driver}",
                list(&mut self.toolchain.nvrtc.iter())
            )
        } else {
            format!("NVRTC {} does not compile for sm_{arch}", list(&mut fitting.iter().copied()))
        };
        Err(CompileError::Environment { what, remedy: REMEDY.into() })
    }

    /// Records that a library does not compile for an architecture.
    pub(crate) fn note_unsupported(&self, library: &Path, arch: u32) {
        let mut unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
        unsupported.insert((library.to_owned(), arch));
    }

    /// Returns toolkit headers for a library: the headers that were installed with it, or its
    /// bundled headers.
    pub(crate) fn headers_of(&self, install: &NvrtcInstall) -> Headers {
        if !install.include_dirs.is_empty() {
            return Headers::of_directories(&install.include_dirs);
        }
        if !install.has_bundled_headers() {
            return Headers::default();
        }
        let root = self.headers_dir.join(format!("nvrtc-{}", install.version_text()));
        Headers {
            directories: vec![root.clone(), root.join("cccl")],
            identity: vec![format!("bundled with {}", install.version_text())],
            to_unpack: Some(root),
        }
    }

    /// Makes a library unpack its bundled headers to `directory`, unless they are already there.
    pub(crate) async fn unpack_headers(
        &self,
        install: &NvrtcInstall,
        directory: &Path,
    ) -> Result<(), CompileError> {
        let cell = {
            let mut unpacked = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(unpacked.entry(directory.to_owned()).or_default())
        };
        cell.get_or_try_init(|| self.unpack(install, directory)).await.copied()
    }

    async fn unpack(&self, install: &NvrtcInstall, directory: &Path) -> Result<(), CompileError> {
        if directory.is_dir() {
            return Ok(());
        }
        let failed = |what: &str, e: &std::io::Error| {
            CompileError::internal(format!("cannot {what} {}: {e}", directory.display()))
        };
        std::fs::create_dir_all(&self.headers_dir)
            .map_err(|e| failed("create the parent of", &e))?;
        // The staging directory is beside the destination, so that one rename moves the complete
        // tree.
        let staging = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.headers_dir)
            .map_err(|e| failed("prepare", &e))?;
        let work = Work::UnpackHeaders { library: install.path.clone(), version: install.version };
        match self.run_child_in(work, staging.path(), UNPACK_TIMEOUT).await?.result {
            Outcome::HeadersUnpacked => {}
            Outcome::Toolchain { what } | Outcome::Failed { what } => {
                return Err(CompileError::Environment { what, remedy: REMEDY.into() });
            }
            _ => return Err(CompileError::internal("the compile child sent an unexpected answer")),
        }
        match std::fs::rename(staging.path().join("include"), directory) {
            // Another process was faster, and its tree is equivalent.
            Err(_) if directory.is_dir() => Ok(()),
            Err(e) => Err(failed("move headers to", &e)),
            Ok(()) => Ok(()),
        }
    }

    /// Returns the time limit of a compilation. It is the request's limit, within the configured
    /// bounds.
    pub(crate) fn limit(&self, wanted: Option<Duration>) -> Duration {
        wanted.map_or(self.timeout, |wanted| wanted.max(LEAST_TIMEOUT).min(self.timeout))
    }

    /// Sets the number of children that have imported Triton and wait for the next kernel. They are
    /// started after the first Triton kernel.
    pub(crate) fn keep_spares(&self, count: usize) {
        self.spares.want(count);
    }

    /// Compiles with Triton in a waiting child, or in a new child if none waits.
    pub(crate) async fn ask_triton(
        &self,
        work: &TritonWork,
        task: &TritonTask,
        timeout: Duration,
    ) -> Result<ChildReply, CompileError> {
        let waiting = self.spares.take(work);
        let compile = async {
            let waited = match waiting {
                Some(waiting) => Some(waiting.ask(task, timeout).await),
                None => None,
            };
            match waited {
                // The interpreter of a child that has waited for long may have ended in the
                // meantime. The request did not cause that.
                None | Some(Ok(ChildReply { result: Outcome::Toolchain { .. }, .. })) => {
                    self.triton_child(work).await?.ask(task, timeout).await
                }
                Some(reply) => reply,
            }
        };
        // With enough cores, the next child imports Triton while this one compiles.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores >= CORES_FOR_BOTH {
            tokio::join!(compile, self.replace_spare(work)).0
        } else {
            let reply = compile.await;
            self.replace_spare(work).await;
            reply
        }
    }

    /// Starts a child that waits for a kernel if there are too few.
    async fn replace_spare(&self, work: &TritonWork) {
        if !self.spares.is_short(work) {
            return;
        }
        match self.triton_child(work).await {
            Ok(spare) => self.spares.keep(work.clone(), spare),
            // The next caller that needs a child gets the error.
            Err(error) => tracing::debug!(%error, "no spare child for Triton"),
        }
    }

    async fn triton_child(&self, work: &TritonWork) -> Result<Waiting, CompileError> {
        let job_dir = self.job_dir()?;
        let request = ChildRequest {
            protocol: PROTOCOL_VERSION,
            job_dir: job_dir.path().to_owned(),
            cpu_seconds: cpu_limit(self.timeout),
            work: Work::Triton(work.clone()),
        };
        Waiting::start(&self.program, &request, job_dir).await
    }

    fn job_dir(&self) -> Result<tempfile::TempDir, CompileError> {
        let made = tempfile::Builder::new().prefix("compile-").tempdir_in(&self.run_dir);
        made.map_err(|e| {
            let run_dir = self.run_dir.display();
            CompileError::internal(format!("cannot create a directory in {run_dir}: {e}"))
        })
    }

    /// Runs `work` in a new child with a private directory and a deadline.
    pub(crate) async fn run_child_for(
        &self,
        work: Work,
        timeout: Duration,
    ) -> Result<ChildReply, CompileError> {
        let job_dir = self.job_dir()?;
        self.run_child_in(work, job_dir.path(), timeout).await
    }

    async fn run_child_in(
        &self,
        work: Work,
        job_dir: &Path,
        timeout: Duration,
    ) -> Result<ChildReply, CompileError> {
        let request = ChildRequest {
            protocol: PROTOCOL_VERSION,
            job_dir: job_dir.to_owned(),
            // The parent enforces the wall-clock time limit.
            cpu_seconds: cpu_limit(timeout),
            work,
        };
        supervisor::run(&self.program, &request, timeout).await
    }
}
