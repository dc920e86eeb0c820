//! The executor of this machine: its compilers, its devices, and what comes between.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use warpgauge_compile::toolchain::{self, Toolchain, ToolchainSearch};
use warpgauge_compile::{CompileError, CompileOptions, Compiler, CompilerConfig};
use warpgauge_config::{Config, DeviceSelection};
use warpgauge_contract::{CompileRequest, EvaluateRequest, Limits};
use warpgauge_executor::{
    Answer, BuiltCode, CodeOrder, Executor, Offer, OfferedDevice, Outcome, Work, WorkOrder,
};
use warpgauge_functions::{FunctionCall, FunctionOutcome, FunctionPlaces};
use warpgauge_jobs::Unready;
use warpgauge_model::{Capabilities, DeviceInfo, DeviceKind, ImageFormat};
use warpgauge_report::{CompileResponse, ProfilePlan, Tooling};
use warpgauge_tools::{ToolSearch, Tools};
use warpgauge_torch::{Judges, Runners, RunnersConfig};
use warpgauge_turns::Owner;
use warpgauge_worker::{DeviceChoice, Fleet, FleetConfig};

use super::compile_only;
use super::error::{self, ExecError};
use super::gate::run_gate;
use super::linted::LintedContracts;
use super::progress::{ActiveOrder, Progress};
use super::room::Room;
use super::run::Purpose;
use super::sweep;
use super::torch::{Side, Torch, WaitingFunctions};
use super::tune::Winners;

/// Carries out orders on the devices of this machine.
pub struct LocalExecutor {
    pub(super) config: Config,
    pub(super) limits: Limits,
    pub(super) tools: Tools,
    pub(super) compiler: Arc<Compiler>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) linted: LintedContracts,
    /// Configurations that were chosen.
    pub(super) winners: Winners,
    /// For files that live as long as an order at most.
    pub(super) run_dir: PathBuf,
    pub(super) room: Room,
    /// Runs what is submitted in Python, or why nothing does.
    pub(super) torch: Result<Torch, String>,
    pub(super) waiting_functions: Arc<WaitingFunctions>,
}

impl LocalExecutor {
    /// Finds the toolchain and starts a worker per device. `run_dir` is a directory of this process
    /// alone; it must be there as long as the executor.
    ///
    /// # Errors
    /// What is missing on this machine, and what to do about it.
    pub async fn start(
        config: &Config,
        limits: Limits,
        run_dir: &Path,
    ) -> Result<Arc<Self>, ExecError> {
        let program = program()?;
        let compiler = start_compiler(config, config.data_dir(), run_dir, &program)?;
        let fleet = start_fleet(config, run_dir, &program, &compiler).await?;
        Ok(Arc::new(Self {
            torch: torch(config, &program, run_dir, compiler.toolchain(), &fleet),
            tools: start_tools(config, run_dir, compiler.toolchain())?,
            config: config.clone(),
            limits,
            compiler,
            fleet,
            waiting_functions: Arc::default(),
            linted: LintedContracts::default(),
            winners: Winners::default(),
            run_dir: run_dir.to_owned(),
            room: Room::new(config.limits.max_decoded_bytes),
        }))
    }

    /// Has processes wait for what would otherwise start them first, as many as are configured. Those for
    /// Triton are started once there was a kernel in it.
    pub fn keep_warm(&self) {
        self.compiler.keep_triton_spares(self.config.compile.triton_spares);
        let torch = self.torch.as_ref().ok().filter(|_| self.config.devices.torch_at_start);
        for side in torch.into_iter().flat_map(|torch| torch.gpus.values()) {
            let side = Arc::clone(side);
            tokio::spawn(async move { side.begin().await });
        }
    }

    async fn carry_out(
        &self,
        order: WorkOrder,
        progress: &dyn Progress,
    ) -> Result<Outcome, ExecError> {
        let job = &ActiveOrder::new(&order.id, order.owner, progress);
        if !order.requires.is_empty() {
            let met = self.what_there_is().await.meet(&order.requires);
            met.map_err(ExecError::NotOffered)?;
        }
        Ok(match order.work {
            Work::Evaluate(request) => {
                Outcome::Evaluated(Box::new(self.evaluate(job, *request, Purpose::Evaluate).await?))
            }
            Work::Execute(request) => {
                Outcome::Evaluated(Box::new(self.evaluate(job, *request, Purpose::Execute).await?))
            }
            Work::Compare(request) => {
                Outcome::Compared(Box::new(self.compare(job, *request).await?))
            }
            Work::Sweep(request) => {
                Outcome::Swept(Box::new(sweep::run(self, job, *request, order.lanes).await?))
            }
            Work::Gate(plan) => Outcome::Gated(Box::new(run_gate(*plan, self, job).await?)),
        })
    }
}

impl Executor for LocalExecutor {
    fn offer(&self) -> Offer {
        let devices = self.fleet.devices().into_iter().map(|status| OfferedDevice {
            info: status.info,
            state: status.state,
            busy: status.busy,
            jobs_done: status.jobs_done,
            restarts: status.restarts,
            worker_sandbox: status.confinement.map(|confinement| confinement.to_string()),
        });
        Offer {
            devices: devices.collect(),
            waiting: self.fleet.waiting(),
            compilers: compilers(self.compiler.toolchain()),
            compile_sandbox: self.compiler.sandbox().to_string(),
        }
    }

    fn capabilities(&self) -> BoxFuture<'_, Capabilities> {
        self.what_there_is().boxed()
    }

    fn run<'a>(&'a self, order: WorkOrder, progress: &'a dyn Progress) -> Answer<'a, Outcome> {
        self.carry_out(order, progress).boxed()
    }

    fn function_places(&self) -> FunctionPlaces {
        self.places_of_functions()
    }

    fn call_function(&self, call: FunctionCall) -> Answer<'_, FunctionOutcome> {
        self.run_function(call).boxed()
    }

    fn compile(&self, request: CompileRequest, owner: Owner) -> Answer<'_, CompileResponse> {
        compile_only::run(self, request, owner).boxed()
    }

    fn profile_plan(&self, request: EvaluateRequest) -> Answer<'_, ProfilePlan> {
        async move { self.plan_profile(&request).await }.boxed()
    }

    fn image(&self, kernel: CodeOrder) -> Answer<'_, Result<BuiltCode, String>> {
        async move {
            let (lineinfo, owner) = (kernel.lineinfo, kernel.owner);
            let options = CompileOptions { lineinfo, owner, ..CompileOptions::default() };
            let compiled = self.compiler.compile(&kernel.code, &kernel.target, options).await;
            let built = compiled.map(|artifact| BuiltCode {
                image: artifact.image,
                format: artifact.format,
                stages: artifact.stages,
            });
            explained(built)
        }
        .boxed()
    }

    fn listing(
        &self,
        image: Arc<[u8]>,
        format: ImageFormat,
        owner: Owner,
    ) -> Answer<'_, Result<Arc<str>, String>> {
        async move { explained(self.compiler.disassemble(&image, format, owner).await) }.boxed()
    }

    fn cannot_list(&self, format: ImageFormat) -> Option<String> {
        self.compiler.cannot_disassemble(format).map(|why| error::chain(&why))
    }

    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling> {
        self.look_for_tools(refresh).boxed()
    }

    fn has_place(&self) -> Answer<'_, ()> {
        self.try_place().boxed()
    }

    fn unready(&self) -> Vec<Unready> {
        let compiler = no_compiler(self.compiler.toolchain());
        compiler.into_iter().chain(self.no_place_for_jobs()).collect()
    }

    fn shutdown(&self, grace: Duration) -> BoxFuture<'_, ()> {
        self.waiting_functions.end();
        self.fleet.shutdown(grace).boxed()
    }
}

/// What compilers could not do is told to whoever looks at code; what is our fault is an error.
fn explained<T>(made: Result<T, CompileError>) -> Result<Result<T, String>, ExecError> {
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(error @ CompileError::Internal { .. }) => Err(error::from_compile(error)),
        Err(other) => Ok(Err(error::chain(&other))),
    }
}

/// This program: children are started from it.
pub fn program() -> Result<PathBuf, ExecError> {
    std::env::current_exe().map_err(|error| {
        ExecError::Unavailable(format!("cannot find the path of this program: {error}"))
    })
}

/// Where compilers are looked for.
pub fn toolchain_search(config: &Config) -> ToolchainSearch {
    let given = |text: &str| Some(text).filter(|text| !text.is_empty()).map(PathBuf::from);
    ToolchainSearch {
        explicit: given(&config.compile.toolchain),
        cache_dir: config.data_dir().to_owned(),
        python: given(&config.compile.python),
    }
}

/// What runs torch kernels, and judges them.
fn torch(
    config: &Config,
    program: &Path,
    run_dir: &Path,
    toolchain: &Toolchain,
    fleet: &Fleet,
) -> Result<Torch, String> {
    let found = toolchain.torch().map_err(|why| why.to_string())?;
    let runners = |device: Option<String>| {
        Runners::new(RunnersConfig {
            program: program.to_owned(),
            python: found.python.clone(),
            site_packages: found.site_packages.clone(),
            roots: found.roots.clone(),
            queue_capacity: config.devices.queue_capacity,
            shared: config.server.has_several_keys(),
            places: config.devices.torch_places,
            spares: config.devices.torch_spares,
            device,
        })
    };
    let of_device = |info: DeviceInfo| {
        let judges = Judges::new(program.to_owned(), Some((info.ordinal, run_dir)));
        (info.ordinal, Arc::new(Side::new(runners(Some(info.uuid)), judges)))
    };
    let devices = fleet.devices().into_iter().map(|status| status.info);
    let gpus = devices.filter(|info| info.kind == DeviceKind::Cuda).map(of_device).collect();
    let cpu = Arc::new(Side::new(runners(None), Judges::new(program.to_owned(), None)));
    Ok(Torch { cpu, gpus })
}

/// The compilers found, a line each.
fn compilers(toolchain: &Toolchain) -> Vec<String> {
    let nvrtc = toolchain.nvrtc.iter().map(|found| {
        format!("nvrtc {} ({}, {})", found.version_text(), found.source, found.path.display())
    });
    let nvcc = toolchain.nvcc.iter().map(|found| {
        format!("nvcc {} ({}, {})", found.version, found.source, found.path.display())
    });
    let triton = toolchain.triton.iter().map(|found| {
        format!("triton {} ({}, {})", found.version, found.source, found.site_packages.display())
    });
    nvrtc.chain(nvcc).chain(triton).collect()
}

/// What finds and runs NVIDIA's tools. Those that the compilers brought come last.
fn start_tools(config: &Config, run_dir: &Path, toolchain: &Toolchain) -> Result<Tools, ExecError> {
    let directory = run_dir.join("tools");
    std::fs::create_dir(&directory).map_err(|error| {
        ExecError::Unavailable(format!("cannot create {}: {error}", directory.display()))
    })?;
    let disassemblers = toolchain.cuobjdump.iter().chain(&toolchain.nvdisasm);
    let brought = disassemblers.filter_map(|tool| tool.path.parent()).map(PathBuf::from);
    Ok(Tools::new(ToolSearch::new(&config.tools.path, directory).and_last(brought)))
}

fn start_compiler(
    config: &Config,
    data_dir: &Path,
    run_dir: &Path,
    program: &Path,
) -> Result<Arc<Compiler>, ExecError> {
    let search = toolchain_search(config);
    let toolchain = toolchain::discover(&search);
    if search.python.is_some()
        && let Err(why) = toolchain.triton()
    {
        tracing::warn!(reason = why.reason, remedy = why.remedy, "there is no Triton");
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parallelism = match config.compile.parallelism {
        0 => cores,
        given => given,
    };
    Compiler::new(CompilerConfig {
        program: program.to_owned(),
        cache_dir: data_dir.join("cubins"),
        cache_max_bytes: config.compile.cache_max_bytes,
        run_dir: run_dir.to_owned(),
        parallelism,
        shared: config.server.has_several_keys(),
        timeout: Duration::from_secs_f64(config.compile.timeout_s),
        toolchain,
    })
    .map(Arc::new)
    .map_err(|error| ExecError::Unavailable(error::chain(&error)))
}

async fn start_fleet(
    config: &Config,
    run_dir: &Path,
    program: &Path,
    compiler: &Arc<Compiler>,
) -> Result<Arc<Fleet>, ExecError> {
    let devices = match config.device_selection() {
        DeviceSelection::Auto => DeviceChoice::Auto,
        DeviceSelection::Emulator => DeviceChoice::Emulator,
        DeviceSelection::Ordinals(ordinals) => DeviceChoice::Ordinals(ordinals),
    };
    let emulator = Some(&config.devices.emulator).filter(|path| !path.is_empty());
    let fleet = FleetConfig {
        program: program.to_owned(),
        devices,
        emulator: emulator.map(PathBuf::from),
        cupti: compiler.toolchain().cupti.clone(),
        libraries: compiler.toolchain().libraries.clone(),
        run_dir: run_dir.to_owned(),
        hot_spare: config.devices.hot_spare,
        queue_capacity: config.devices.queue_capacity,
        start_timeout: Duration::from_secs(60),
    };
    Fleet::start(fleet, compile_only::support_source(compiler))
        .await
        .map_err(|error| ExecError::Unavailable(error::chain(&error)))
}

/// Why nothing can be evaluated for want of a CUDA compiler, if so. Triton does not do instead: workers
/// have kernels of their own, in CUDA C++, that write inputs and look at outputs.
fn no_compiler(toolchain: &Toolchain) -> Option<Unready> {
    let there = |path: &Path| path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0);
    let nvrtc = toolchain.nvrtc.iter().map(|found| found.path.as_path());
    let all: Vec<&Path> =
        nvrtc.chain(toolchain.nvcc.iter().map(|found| found.path.as_path())).collect();
    if all.iter().any(|path| there(path)) {
        return None;
    }
    let remedy = "`warpgauge toolchain install` gets NVRTC, or name a CUDA toolkit in \
                  compile.toolchain (WARPGAUGE_TOOLCHAIN); then restart the server";
    let message = match all.first() {
        None => {
            let beside = toolchain.triton.as_ref().map_or("", |_| {
                " (Triton was, and the kernels of the workers themselves, which write inputs and look \
                 at outputs, need one whatever a request is written in)"
            });
            format!("no CUDA compiler was found{beside}; {remedy}")
        }
        Some(path) => {
            format!("the CUDA compiler {} is gone; put it back, or {remedy}", path.display())
        }
    };
    Some(Unready::new("no_compiler", message))
}

impl LocalExecutor {
    /// Why jobs can have no files, if so. Blocking.
    fn no_place_for_jobs(&self) -> Option<Unready> {
        let error = self.write_probe().err()?;
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "disk_full",
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                "read_only"
            }
            _ => "files_unusable",
        };
        Some(Unready::new(code, self.no_place("write", &error).to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_compile::toolchain::{NvrtcInstall, Source, TritonInstall};

    #[test]
    fn a_compiler_must_still_be_where_it_was_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libnvrtc.so");
        let install = NvrtcInstall {
            path: path.clone(),
            version: (13, 0),
            full_version: None,
            source: Source::Explicit,
            include_dirs: Vec::new(),
        };
        let toolchain = Toolchain { nvrtc: vec![install], ..Toolchain::default() };
        let told = |toolchain: &Toolchain| no_compiler(toolchain).map(|unready| unready.message);
        assert!(told(&Toolchain::default()).unwrap().contains("toolchain install"));
        assert!(told(&toolchain).unwrap().contains(path.to_str().unwrap()));
        // Cut off while it was copied.
        std::fs::write(&path, "").unwrap();
        assert!(told(&toolchain).is_some());
        std::fs::write(&path, "library").unwrap();
        assert_eq!(told(&toolchain), None);
    }

    /// Workers cannot be started without a CUDA compiler.
    #[test]
    fn triton_alone_is_no_compiler_and_it_is_said_why() {
        let install = TritonInstall {
            python: "/python".into(),
            python_version: "3.12.0".into(),
            site_packages: "/packages".into(),
            roots: Vec::new(),
            version: "3.6.0".into(),
            ptxas: "/packages/ptxas".into(),
            ptxas_blackwell: None,
            torch: false,
            source: Source::Explicit,
        };
        let toolchain = Toolchain { triton: Some(install), ..Toolchain::default() };
        let told = no_compiler(&toolchain).unwrap().message;
        assert!(told.contains("Triton was") && told.contains("toolchain install"), "{told}");
    }
}
