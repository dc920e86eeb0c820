//! Kernels in Python. Runner processes contain only submissions; separate judge processes evaluate
//! them.
//!
//! A judge process handles one order at a time; [`process`] is its entry point. The server starts
//! it and passes the runners to it. The judge controls seeds, inputs, expected values and the
//! clock. On the CPU it writes the inputs of a call into the runner's memory after the previous
//! call has ended. It copies the results from there while the runner is stopped, and compares the
//! copy. References run in separate processes.
//!
//! [`judge`] runs one evaluation. Its stages share `players`, which contains both sides. `host` and
//! `gpu` contain the sequence of calls, `expectations` computes the expected results of each call,
//! `verification` collects findings, and `timing` contains the times. `player` is one submission in
//! its runner, `inputs` its arguments and `values` its results. `backward` generates upstream
//! gradients, `gradients` names them, and `report` builds the response.
//!
//! `expected` computes expected outputs of device kernels with torch kernels, and `foreign` does
//! the reverse. `comparison` judges several torch kernels. `builder` compiles extensions for
//! runners. `counters` profiles a call with Nsight Compute. `functions` runs functions that callers
//! send, without judging them; `waiting` keeps their idle processes for another call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::backend::{ComparisonSession, Contest, Evaluator, KernelBackend, Opened, Purpose};
use crate::error::ExecError;
use crate::found;
use crate::host::Host;
use crate::progress::ActiveOrder;
use comparison::TorchSession;
use reused::ReferenceReports;
use runs::Side;
use warpgauge_contract::{Checked, EvaluateRequest, KernelType};
use warpgauge_model::{DeviceInfo, DeviceKind};
use warpgauge_report::{EvaluateResponse, ToolReport};
use warpgauge_torch::{Judges, Runners, RunnersConfig};

mod account;
mod backward;
mod buffers;
mod builder;
mod comparison;
mod counters;
mod evaluate;
mod expectations;
pub(crate) mod expected;
mod fault;
mod foreign;
mod functions;
mod gpu;
mod gradients;
mod held;
mod host;
mod inputs;
mod judge;
mod lint;
mod noise;
mod oracles;
mod player;
mod players;
pub mod process;
mod report;
mod reused;
mod runs;
mod timeline;
mod timing;
mod values;
mod verification;
mod waiting;

pub(crate) use functions::Functions;

/// Maximum size of one tensor in host memory, and of all such tensors that one call returns, in
/// bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Maximum size of a device result that the judge copies to the host, in bytes. A larger result is
/// compared in parts and not returned.
const MOST_FETCHED: u64 = 512 << 20;

/// The same limit for floating-point results that the caller does not request. Copying and
/// comparing a larger result on the host takes longer than all calls of a kernel.
const MOST_FETCHED_UNASKED: u64 = 16 << 20;

/// Backend that runs and judges kernels in Python.
pub(crate) struct TorchBackend {
    host: Arc<Host>,
    /// Processes for the CPU and the GPUs, or the reason why PyTorch cannot be used.
    sides: Result<Sides, String>,
    references: ReferenceReports,
}

/// Processes for the CPU and for each GPU.
struct Sides {
    cpu: Arc<Side>,
    /// Processes for each GPU, by the device's ordinal.
    gpus: BTreeMap<u32, Arc<Side>>,
}

impl KernelBackend for TorchBackend {
    fn tools(&self, host: &Host) -> Vec<ToolReport> {
        let torch = host.compiler.toolchain().torch();
        let torch = torch.map(|found| (found.site_packages.as_path(), found.version.as_str()));
        let torch = torch.map_err(|why| (why.reason, why.remedy));
        vec![found::package(KernelType::Torch, torch)]
    }

    fn evaluate<'a>(
        &'a self,
        evaluator: &'a dyn Evaluator,
        job: &'a ActiveOrder<'_>,
        request: Checked<EvaluateRequest>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>> {
        self.evaluate_torch(evaluator, job, request.into_inner(), purpose).boxed()
    }

    fn compare<'a>(&'a self, job: &'a ActiveOrder<'a>, contest: Contest) -> Opened<'a> {
        let session: Box<dyn ComparisonSession + Send + 'a> =
            Box::new(TorchSession::new(self, job, contest));
        futures_util::future::ready(Ok(session)).boxed()
    }
}

impl TorchBackend {
    /// Finds PyTorch. `program` is this program's executable, which starts the child processes.
    pub(crate) fn new(host: &Arc<Host>, program: &Path, run_dir: &Path) -> Self {
        let (sides, references) = (sides(host, program, run_dir), ReferenceReports::default());
        Self { sides, references, host: Arc::clone(host) }
    }

    /// Starts to import PyTorch for all GPUs before an order needs it.
    pub(crate) fn begin(&self) {
        for side in self.sides.iter().flat_map(|sides| sides.gpus.values()) {
            let side = Arc::clone(side);
            tokio::spawn(async move { side.begin().await });
        }
    }

    fn sides(&self) -> Result<&Sides, ExecError> {
        self.sides.as_ref().map_err(|why| ExecError::NotOffered(why.clone()))
    }
}

/// Sets up the processes of the CPU and of each GPU without starting any.
fn sides(host: &Host, program: &Path, run_dir: &Path) -> Result<Sides, String> {
    let found = host.compiler.toolchain().torch().map_err(|why| why.to_string())?;
    let config = &host.config;
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
        let side = Side::new(runners(Some(info.uuid)), judges, host.noise_of(info.ordinal));
        (info.ordinal, Arc::new(side))
    };
    let devices = host.fleet.devices().into_iter().map(|status| status.info);
    let gpus = devices.filter(|info| info.kind == DeviceKind::Cuda).map(of_device).collect();
    let judges = Judges::new(program.to_owned(), None);
    let cpu = Arc::new(Side::new(runners(None), judges, Arc::default()));
    Ok(Sides { cpu, gpus })
}
