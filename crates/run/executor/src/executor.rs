//! The trait [`Executor`], through which the service executes orders.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use warpgauge_contract::functions::{FunctionCall, FunctionOutcome, FunctionPlaces};
use warpgauge_contract::{CompileRequest, EvaluateRequest, KernelCode};
use warpgauge_job_views::Unready;
use warpgauge_model::{
    DeviceInfo, DeviceState, ExecutorCapabilities, ImageFormat, Requirements, Target,
};
use warpgauge_report::{CompileResponse, DeviceReading, ProfilePlan, Tooling};
use warpgauge_turns::Owner;

use super::error::ExecError;
use super::order::{JobOutcome, WorkOrder};
use super::progress::Progress;

/// Future of an executor's result.
pub type ExecutorFuture<'a, T> = BoxFuture<'a, Result<T, ExecError>>;

/// Executes orders on devices. The service sends the orders and has no access to leases, workers
/// and compilers. An executor has no access to the store, and knows an owner only as an opaque
/// number.
pub trait Executor: Send + Sync + 'static {
    /// Returns the current devices and queue of the executor.
    fn offer(&self) -> Offer;

    /// Returns the capabilities that orders can require of the executor. Searches for tools only
    /// once.
    fn capabilities(&self) -> BoxFuture<'_, ExecutorCapabilities>;

    /// Executes an order. Rejects an order whose requirements it does not meet with
    /// [`ExecError::NotOffered`]. Dropping the future stops the run.
    fn run<'a>(
        &'a self,
        order: WorkOrder,
        progress: &'a dyn Progress,
    ) -> ExecutorFuture<'a, JobOutcome>;

    /// Returns the places where functions can run.
    fn function_places(&self) -> FunctionPlaces;

    /// Runs a function in a separate process. Dropping the future ends the process.
    fn call_function(&self, call: FunctionCall) -> ExecutorFuture<'_, FunctionOutcome>;

    /// Compiles a kernel without running it. If several owners wait, their compilations alternate.
    fn compile(&self, request: CompileRequest, owner: Owner)
    -> ExecutorFuture<'_, CompileResponse>;

    /// Returns the cost of the profile that a request asks for, without running anything.
    fn profile_plan(&self, request: EvaluateRequest) -> ExecutorFuture<'_, ProfilePlan>;

    /// Returns the code of a kernel, compiled for a target. The kernel compiled before; the inner
    /// error gives the reason if it does not compile again.
    fn image(&self, kernel: CodeOrder) -> ExecutorFuture<'_, Result<BuiltCode, String>>;

    /// Returns an image's machine code as text. The inner error gives the reason if there is none.
    fn listing(
        &self,
        image: Arc<[u8]>,
        format: ImageFormat,
        owner: Owner,
    ) -> ExecutorFuture<'_, Result<Arc<str>, String>>;

    /// Returns why images of a format cannot be listed here; `None` if they can.
    fn cannot_list(&self, format: ImageFormat) -> Option<String>;

    /// Returns what the machine's tools can do. Searches for them once, and again if `refresh` is
    /// true.
    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling>;

    /// Checks that there is disk space for the files of orders.
    fn has_place(&self) -> ExecutorFuture<'_, ()>;

    /// Returns the problems of compilers and files because of which nothing can run now; empty if
    /// orders can run. May block.
    fn unready(&self) -> Vec<Unready>;

    /// Rejects new orders, gives running orders the time `grace` to end, and then stops them.
    fn shutdown(&self, grace: Duration) -> BoxFuture<'_, ()>;
}

/// Devices, queue and compilers of an executor.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Devices that orders can run on.
    pub devices: Vec<OfferedDevice>,
    /// Number of runs that wait for a device.
    pub waiting: usize,
    /// Available compilers, one line each, e.g. `nvrtc 13.0.88 (/usr/local/cuda/lib64)`.
    pub compilers: Vec<String>,
    /// Confinement of compile children: `landlock enforced`, or why they are not confined.
    pub compile_sandbox: String,
}

impl Offer {
    /// Returns the device for orders that do not choose a device: a working one, and if possible a
    /// free one.
    ///
    /// # Errors
    /// Fails if no device works.
    pub fn default_device(&self) -> Result<&DeviceInfo, ExecError> {
        self.device_for(&Requirements::default())
    }

    /// Returns the device for an order: a working one that meets the requirements, and if possible
    /// a free one.
    ///
    /// # Errors
    /// Fails if no device meets the requirements, or if none of those that meet them works.
    pub fn device_for(&self, order: &Requirements) -> Result<&DeviceInfo, ExecError> {
        let fits = |device: &&OfferedDevice| order.is_met_by(&device.info.offer());
        if !order.is_empty() && !self.devices.iter().any(|device| fits(&device)) {
            let offers = self.devices.iter().map(|device| device.info.offer()).collect();
            let capabilities =
                ExecutorCapabilities { devices: offers, ..ExecutorCapabilities::default() };
            // The reason names the device first.
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
                "no device works here at the moment; GET /devices returns the reasons".to_owned(),
            )
        })
    }
}

/// A device and the state of its worker.
#[derive(Debug, Clone)]
pub struct OfferedDevice {
    pub info: DeviceInfo,
    /// State of the device's worker.
    pub state: DeviceState,
    /// Whether the device is in use.
    pub busy: bool,
    /// Number of runs since the executor started.
    pub jobs_done: u64,
    /// Number of workers replaced since the executor started.
    pub restarts: u64,
    /// Confinement of the device's workers by landlock and seccomp, or why they are not confined.
    /// Absent before the first worker has started.
    pub worker_sandbox: Option<String>,
    /// State of the GPU when a worker read it last, or why it is not known.
    pub reading: Result<DeviceReading, String>,
}

/// Request to compile code for inspection, without running it.
#[derive(Debug, Clone)]
pub struct CodeOrder {
    pub code: KernelCode,
    /// The compilation target.
    pub target: Target,
    /// Whether to add line information.
    pub lineinfo: bool,
    /// Owner that the compilation is charged to.
    pub owner: Owner,
}

/// Code that was compiled for inspection, not for a run.
#[derive(Debug, Clone)]
pub struct BuiltCode {
    pub image: Arc<[u8]>,
    pub format: ImageFormat,
    /// Intermediate forms of the source, by language.
    pub stages: Vec<(String, String)>,
}
