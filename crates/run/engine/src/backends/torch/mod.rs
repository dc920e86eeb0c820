//! Kernels in Python: run in a process that holds nothing but them, and judged from here.
//!
//! Each order is judged in a process of its own, to which [`process`] is the seam: the server starts it and
//! hands it the runners. The judge owns seeds, inputs, expected values and the clock. It writes the inputs
//! of a call into the memory of the runner once the call before has ended, reads what came of it from
//! there while the runner is stopped, and compares its own copy. References run in processes of their own.
//!
//! [`judge`] has one evaluation, whose stages share `players`, both sides: `host` and `gpu` have the order of the
//! calls, `expectations` what is expected of one, `verification` what is found, `timing` the times. `player` is one
//! submission in its runner, `inputs` what it gets, `values` what it gives, `backward` what its gradients begin from
//! and `gradients` their names, `report` the answer.
//!
//! `expected` computes what kernels for devices are expected to leave, and `foreign` has those compute what torch
//! kernels are expected to. `comparison` judges several torch kernels. `builder` compiles what runners ask for.
//! `counters` has Nsight Compute look at a call. `functions` runs what callers send to be run, and judges nothing;
//! `waiting` has those of its processes that wait for another call.

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

/// Most bytes of one tensor, and of all that one call returns.
const MOST_BYTES: u64 = 1 << 30;

/// A result of a call on a device that is larger stays there: it is compared in parts, and does not travel, bytes.
const MOST_FETCHED: u64 = 512 << 20;

/// Runs kernels in Python, and judges them.
pub(crate) struct TorchBackend {
    host: Arc<Host>,
    /// Where they run, or why nothing runs them.
    sides: Result<Sides, String>,
    references: ReferenceReports,
}

/// The processes of the CPU, and those of each GPU.
struct Sides {
    cpu: Arc<Side>,
    /// By the ordinals of the devices.
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
    /// Finds PyTorch. `program` is this program, from which children are started.
    pub(crate) fn new(host: &Arc<Host>, program: &Path, run_dir: &Path) -> Self {
        let (sides, references) = (sides(host, program, run_dir), ReferenceReports::default());
        Self { sides, references, host: Arc::clone(host) }
    }

    /// Imports PyTorch for all GPUs before an order needs it.
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

/// The processes of all places, none of which is started yet.
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
