//! The trait through which the service has orders carried out.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use warpgauge_contract::functions::{FunctionCall, FunctionOutcome, FunctionPlaces};
use warpgauge_contract::{CompileRequest, EvaluateRequest, KernelCode};
use warpgauge_job_views::Unready;
use warpgauge_model::{
    DeviceInfo, DeviceState, ExecutorCapabilities, ImageFormat, Requirements, Target,
};
use warpgauge_report::{CompileResponse, ProfilePlan, Tooling};
use warpgauge_turns::Owner;

use super::error::ExecError;
use super::order::{JobOutcome, WorkOrder};
use super::progress::Progress;

/// What an executor answers with.
pub type ExecutorFuture<'a, T> = BoxFuture<'a, Result<T, ExecError>>;

/// Carries out orders on devices. The service, which gives them, sees no lease, no fleet of workers and no
/// compiler. An executor sees no store, and knows an owner by an opaque number.
pub trait Executor: Send + Sync + 'static {
    /// What it has, at this moment.
    fn offer(&self) -> Offer;

    /// What orders can require of it. Tools are looked for once.
    fn capabilities(&self) -> BoxFuture<'_, ExecutorCapabilities>;

    /// Takes an order to its outcome. One whose requirements are not met here is refused with
    /// [`ExecError::NotOffered`]. Dropping the future stops what runs.
    fn run<'a>(
        &'a self,
        order: WorkOrder,
        progress: &'a dyn Progress,
    ) -> ExecutorFuture<'a, JobOutcome>;

    /// Where functions can run.
    fn function_places(&self) -> FunctionPlaces;

    /// Runs a function in a process of its own. Dropping the future ends it.
    fn call_function(&self, call: FunctionCall) -> ExecutorFuture<'_, FunctionOutcome>;

    /// Compiles only, in the owner's turn.
    fn compile(&self, request: CompileRequest, owner: Owner)
    -> ExecutorFuture<'_, CompileResponse>;

    /// What the profile that a request asks for would take; nothing is run.
    fn profile_plan(&self, request: EvaluateRequest) -> ExecutorFuture<'_, ProfilePlan>;

    /// The code of a kernel, compiled for a target: what was built once is built again.
    fn image(&self, kernel: CodeOrder) -> ExecutorFuture<'_, Result<BuiltCode, String>>;

    /// An image's machine code as text; the inner error is why there is none.
    fn listing(
        &self,
        image: Arc<[u8]>,
        format: ImageFormat,
        owner: Owner,
    ) -> ExecutorFuture<'_, Result<Arc<str>, String>>;

    /// Why images of a format cannot be listed here; `None` if they can.
    fn cannot_list(&self, format: ImageFormat) -> Option<String>;

    /// What the tools of the machine can do. They are looked for once, and again if `refresh`.
    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling>;

    /// Whether orders can have files now.
    fn has_place(&self) -> ExecutorFuture<'_, ()>;

    /// Why nothing can be carried out now, as far as compilers and files tell; empty if something
    /// can. May block.
    fn unready(&self) -> Vec<Unready>;

    /// Takes no more orders, gives what runs `grace` to end, then stops it.
    fn shutdown(&self, grace: Duration) -> BoxFuture<'_, ()>;
}

/// What an executor has.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Devices that orders can run on.
    pub devices: Vec<OfferedDevice>,
    /// Runs that wait for a device.
    pub waiting: usize,
    /// Compilers found, one line each, e.g. `nvrtc 13.0.88 (/usr/local/cuda/lib64)`.
    pub compilers: Vec<String>,
    /// How compile children are confined: `landlock enforced`, or why not.
    pub compile_sandbox: String,
}

impl Offer {
    /// The device that orders run on when they do not choose: one that works, and is free if any is.
    ///
    /// # Errors
    /// None works.
    pub fn default_device(&self) -> Result<&DeviceInfo, ExecError> {
        self.device_for(&Requirements::default())
    }

    /// A device for an order: one that is what is required, works, and is free if any is.
    ///
    /// # Errors
    /// None is, or none of these works.
    pub fn device_for(&self, order: &Requirements) -> Result<&DeviceInfo, ExecError> {
        let fits = |device: &&OfferedDevice| order.is_met_by(&device.info.offer());
        if !order.is_empty() && !self.devices.iter().any(|device| fits(&device)) {
            let offers = self.devices.iter().map(|device| device.info.offer()).collect();
            let capabilities =
                ExecutorCapabilities { devices: offers, ..ExecutorCapabilities::default() };
            // The device is the first thing that the reason names.
            let reason = capabilities.meet(order).err();
            return Err(ExecError::NotOffered(reason.unwrap_or_default()));
        }
        let usable = |device: &&OfferedDevice| {
            fits(device) && !matches!(device.state, DeviceState::Failed { .. })
        };
        let free = self.devices.iter().filter(usable).find(|device| !device.busy);
        let chosen = free.or_else(|| self.devices.iter().find(usable));
        chosen.map(|device| &device.info).ok_or_else(|| {
            ExecError::Unavailable(
                "no device works here at the moment; GET /devices says why".to_owned(),
            )
        })
    }
}

/// A device, and how its worker is.
#[derive(Debug, Clone)]
pub struct OfferedDevice {
    /// The device.
    pub info: DeviceInfo,
    /// How its worker is.
    pub state: DeviceState,
    /// Whether something runs on it.
    pub busy: bool,
    /// Runs since start.
    pub jobs_done: u64,
    /// Workers replaced since start.
    pub restarts: u64,
    /// How its workers are confined, by landlock and seccomp, or why not; absent before the first.
    pub worker_sandbox: Option<String>,
}

/// Code to be compiled for those who look at it.
#[derive(Debug, Clone)]
pub struct CodeOrder {
    /// The kernel.
    pub code: KernelCode,
    /// What to compile it for.
    pub target: Target,
    /// Whether with line information.
    pub lineinfo: bool,
    /// In whose turn.
    pub owner: Owner,
}

/// What was compiled for those who look at it.
#[derive(Debug, Clone)]
pub struct BuiltCode {
    /// The image.
    pub image: Arc<[u8]>,
    /// Its format.
    pub format: ImageFormat,
    /// What the source became on its way there, by language.
    pub stages: Vec<(String, String)>,
}
