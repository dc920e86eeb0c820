//! The executor of this machine, [`LocalExecutor`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::backend::{Evaluator, Purpose};
use crate::backends::torch::{Functions, TorchBackend};
use crate::engine::Engine;
use crate::error::{self, ExecError};
use crate::host::{Host, HostParts};
use crate::progress::{ActiveOrder, Progress};
use crate::scratch::Scratch;
use crate::{capabilities, comparison, compile_only, gate, profiling, start, sweep};
use warpgauge_compile::{CompileError, CompileOptions};
use warpgauge_config::Config;
use warpgauge_contract::functions::{FunctionCall, FunctionOutcome, FunctionPlaces};
use warpgauge_contract::{Checked, CompileRequest, ContractLimits, EvaluateRequest};
use warpgauge_executor::{
    BuiltCode, CodeOrder, Executor, ExecutorFuture, JobOutcome, JobWork, Offer, WorkOrder,
};
use warpgauge_job_views::Unready;
use warpgauge_model::{ExecutorCapabilities, ImageFormat};
use warpgauge_report::{CompileResponse, ProfilePlan, Tooling};
use warpgauge_turns::Owner;

/// Runs orders on the devices of this machine.
pub struct LocalExecutor {
    engine: Engine,
    functions: Functions,
}

impl LocalExecutor {
    /// Finds the toolchain and starts a worker for each device. `run_dir` is a directory that only
    /// this process uses. It must exist until the executor is dropped.
    ///
    /// # Errors
    /// Fails if this machine lacks something that the executor needs. The error names it and a
    /// remedy.
    pub async fn start(
        config: &Config,
        limits: ContractLimits,
        run_dir: &Path,
    ) -> Result<Arc<Self>, ExecError> {
        let program = start::program()?;
        let compiler = start::start_compiler(config, config.data_dir(), run_dir, &program)?;
        let fleet = start::start_fleet(config, run_dir, &program, &compiler).await?;
        let host = Arc::new(Host::new(HostParts {
            tools: start::start_tools(config, run_dir, compiler.toolchain())?,
            config: config.clone(),
            limits,
            compiler,
            fleet,
            scratch: Scratch::new(run_dir),
        }));
        let torch = Arc::new(TorchBackend::new(&host, &program, run_dir));
        Ok(Arc::new(Self {
            functions: Functions::new(&host, &torch),
            engine: Engine::new(host, torch),
        }))
    }

    /// Starts the configured number of spare processes. Spare processes for Triton start after the
    /// first Triton kernel.
    pub fn keep_warm(&self) {
        let host = &self.engine.host;
        host.compiler.keep_triton_spares(host.config.compile.triton_spares);
        if host.config.devices.torch_at_start {
            self.engine.torch.begin();
        }
    }

    async fn carry_out(
        &self,
        order: WorkOrder,
        progress: &dyn Progress,
    ) -> Result<JobOutcome, ExecError> {
        let job = &ActiveOrder::new(&order.id, order.owner, progress);
        if !order.requires.is_empty() {
            let met = capabilities::offered(&self.engine).await.meet(&order.requires);
            met.map_err(ExecError::NotOffered)?;
        }
        let engine = &self.engine;
        Ok(match order.work {
            JobWork::Evaluate(request) => {
                let report = engine.evaluate(job, *request, Purpose::Evaluate).await?;
                JobOutcome::Evaluated(Box::new(report))
            }
            JobWork::Execute(request) => {
                let report = engine.evaluate(job, *request, Purpose::Execute).await?;
                JobOutcome::Evaluated(Box::new(report))
            }
            JobWork::Compare(request) => {
                let report = comparison::compare_or_report(engine, job, *request).await?;
                JobOutcome::Compared(Box::new(report))
            }
            JobWork::Sweep(request) => {
                JobOutcome::Swept(Box::new(sweep::run(engine, job, *request, order.lanes).await?))
            }
            JobWork::Gate(plan) => {
                JobOutcome::Gated(Box::new(gate::run_gate(*plan, engine, job).await?))
            }
        })
    }
}

impl Executor for LocalExecutor {
    fn offer(&self) -> Offer {
        self.engine.host.offer()
    }

    fn capabilities(&self) -> BoxFuture<'_, ExecutorCapabilities> {
        capabilities::offered(&self.engine).boxed()
    }

    fn run<'a>(
        &'a self,
        order: WorkOrder,
        progress: &'a dyn Progress,
    ) -> ExecutorFuture<'a, JobOutcome> {
        self.carry_out(order, progress).boxed()
    }

    fn function_places(&self) -> FunctionPlaces {
        self.functions.places()
    }

    fn call_function(&self, call: FunctionCall) -> ExecutorFuture<'_, FunctionOutcome> {
        self.functions.run(call).boxed()
    }

    fn compile(
        &self,
        request: CompileRequest,
        owner: Owner,
    ) -> ExecutorFuture<'_, CompileResponse> {
        compile_only::run(&self.engine.host, request, owner).boxed()
    }

    fn profile_plan(&self, request: EvaluateRequest) -> ExecutorFuture<'_, ProfilePlan> {
        async move {
            let host = &self.engine.host;
            let request = Checked::new(request, &host.limits).map_err(error::invalid)?;
            profiling::plan::of(host, &request).await
        }
        .boxed()
    }

    fn image(&self, kernel: CodeOrder) -> ExecutorFuture<'_, Result<BuiltCode, String>> {
        async move {
            let (lineinfo, owner) = (kernel.lineinfo, kernel.owner);
            let options = CompileOptions { lineinfo, owner, ..CompileOptions::default() };
            let compiler = &self.engine.host.compiler;
            let compiled = compiler.compile(&kernel.code, &kernel.target, options).await;
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
    ) -> ExecutorFuture<'_, Result<Arc<str>, String>> {
        let compiler = &self.engine.host.compiler;
        async move { explained(compiler.disassemble(&image, format, owner).await) }.boxed()
    }

    fn cannot_list(&self, format: ImageFormat) -> Option<String> {
        self.engine.host.compiler.cannot_disassemble(format).map(|why| error::chain(&why))
    }

    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling> {
        capabilities::tooling(&self.engine, refresh).boxed()
    }

    fn has_place(&self) -> ExecutorFuture<'_, ()> {
        self.engine.host.scratch.probe().boxed()
    }

    fn unready(&self) -> Vec<Unready> {
        let host = &self.engine.host;
        let emulated = host.fleet.devices().iter().all(|device| device.info.target.emulated);
        let compiler = start::no_compiler(host.compiler.toolchain(), emulated);
        compiler.into_iter().chain(host.scratch.unready()).collect()
    }

    fn shutdown(&self, grace: Duration) -> BoxFuture<'_, ()> {
        self.functions.end();
        self.engine.host.fleet.shutdown(grace).boxed()
    }
}

/// Separates compiler errors from internal faults. A compiler error is a valid answer for a caller
/// who views code.
fn explained<T>(made: Result<T, CompileError>) -> Result<Result<T, String>, ExecError> {
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(error @ CompileError::Internal { .. }) => Err(error::from_compile(error)),
        Err(other) => Ok(Err(error::chain(&other))),
    }
}
