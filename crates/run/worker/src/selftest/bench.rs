//! Functions that checks use to build and run jobs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::fleet::Fleet;
use crate::protocol::{
    Argument, BufferContent, BufferSpec, EvaluatePlan, EvaluatedRun, KernelLaunch, KernelProgram,
    RunOutcome, TrialPlan, WorkerJob,
};
use crate::queue::LeaseNeeds;
use warpgauge_contract::Role;
use warpgauge_model::{CacheState, DeviceInfo, DeviceKind, Image, Regime};
use warpgauge_statistics::StopRule;
use warpgauge_tensor::{Dtype, InitKind, TensorInit};

/// A fleet with one device, and the self-test's kernels.
pub(super) struct Bench {
    pub fleet: Arc<Fleet>,
    pub device: DeviceInfo,
    image: Image,
    support: Image,
    folder: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new(fleet: Arc<Fleet>, image: Image, support: Image) -> Result<Self, String> {
        let device = fleet.devices().first().map(|device| device.info.clone());
        let device = device.ok_or("the fleet has no device")?;
        let folder =
            tempfile::tempdir().map_err(|error| format!("cannot create a folder: {error}"))?;
        Ok(Self { fleet, device, image, support, folder })
    }

    pub(super) fn emulated(&self) -> bool {
        self.device.kind == DeviceKind::Emulator
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a launch of a self-test kernel.
    pub(super) fn launch(
        &self,
        symbol: &str,
        arguments: Vec<Argument>,
        blocks: u32,
    ) -> KernelLaunch {
        KernelLaunch {
            image: self.image.clone(),
            symbol: symbol.to_owned(),
            arguments,
            grid: [blocks, 1, 1],
            block: [256, 1, 1],
            shared_bytes: 0,
            cluster: None,
            cooperative: false,
        }
    }

    /// Returns a launch of one of the worker's built-in kernels.
    pub(super) fn support(
        &self,
        symbol: &str,
        arguments: Vec<Argument>,
        blocks: u32,
    ) -> KernelLaunch {
        let image = self.support.clone();
        KernelLaunch { image, ..self.launch(symbol, arguments, blocks) }
    }

    /// Returns a job that launches once, checks nothing and stores every output.
    pub(super) fn job(
        &self,
        launch: KernelLaunch,
        buffers: Vec<BufferSpec>,
    ) -> WorkerJob<EvaluatePlan> {
        let written = (0..buffers.len()).filter(|&index| buffers[index].role != Role::Input);
        WorkerJob {
            id: launch.symbol.clone(),
            directory: self.folder().to_owned(),
            task: EvaluatePlan { keep_outputs: written.collect(), ..EvaluatePlan::default() },
            program: KernelProgram { buffers, launches: launch.into() },
        }
    }

    /// Runs a job on a separate lease.
    pub(super) async fn run(
        &self,
        job: WorkerJob<EvaluatePlan>,
    ) -> Result<RunOutcome<EvaluatedRun>, String> {
        self.run_within(job, Duration::from_secs(60)).await
    }

    /// Runs a job on a separate lease with a time limit.
    pub(super) async fn run_within(
        &self,
        job: WorkerJob<EvaluatePlan>,
        limit: Duration,
    ) -> Result<RunOutcome<EvaluatedRun>, String> {
        let lease = self.fleet.lease(&LeaseNeeds::default()).await;
        let mut lease = lease.map_err(|error| error.to_string())?;
        Ok(lease.run(job, limit, false, &|_| ()).await)
    }

    /// Runs a job that must succeed.
    pub(super) async fn succeed(
        &self,
        job: WorkerJob<EvaluatePlan>,
    ) -> Result<RunOutcome<EvaluatedRun>, String> {
        let outcome = self.run(job).await?;
        match &outcome.failure {
            None => Ok(outcome),
            Some(failure) => Err(format!("{}: {}", failure.code, failure.message)),
        }
    }

    /// Returns the 32-bit words of a stored output.
    pub(super) fn words(
        &self,
        outcome: &RunOutcome<EvaluatedRun>,
        buffer: usize,
    ) -> Result<Vec<u32>, String> {
        let kept = outcome.told.outputs.iter().find(|output| output.buffer == buffer);
        let path = kept.and_then(|output| output.file.as_ref()).ok_or("the output was not kept")?;
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        Ok(bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect())
    }
}

/// Returns an `init` with only a kind and a seed.
pub(super) fn init(kind: InitKind) -> TensorInit {
    TensorInit { seed: Some(7), ..TensorInit::of_kind(kind) }
}

/// Returns a one-dimensional buffer.
pub(super) fn buffer(
    name: &str,
    dtype: Dtype,
    elements: u64,
    role: Role,
    content: BufferContent,
) -> BufferSpec {
    let (element, (dtype, shape)) = (dtype, warpgauge_tensor::real_view(dtype, &[elements]));
    BufferSpec { name: name.to_owned(), element, dtype, shape, role, content }
}

/// Returns an output buffer of 32-bit words, all of which are 0 at first.
pub(super) fn counters(elements: u64) -> BufferSpec {
    let content = BufferContent::Init(Box::new(init(InitKind::Zeros)));
    buffer("out", Dtype::Uint32, elements, Role::Inout, content)
}

/// Returns a 32-bit scalar argument.
pub(super) fn word(value: u32) -> Argument {
    Argument::Scalar(value.to_ne_bytes().to_vec())
}

/// Returns a plan with a short warm-up.
pub(super) fn plan(trials: u32) -> TrialPlan {
    TrialPlan {
        stop: StopRule::fixed(trials),
        min_warmup_s: 0.02,
        cache: CacheState::Cold,
        regime: Regime::Isolated,
        fresh_inputs: true,
        sealed: 0,
        audits: 8,
        lasting: 0,
        time_limit_s: 0.0,
    }
}
