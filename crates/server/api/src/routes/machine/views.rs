//! Answers about the state of the machine. Only the HTTP API returns them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::middleware::auth::Sees;
use crate::request::parsed_body::MEDIA_TYPES;
use warpgauge_job_views::Unready;
use warpgauge_model::DeviceKind;
use warpgauge_report::DeviceReport;
use warpgauge_service::{DeviceView, ServiceStatus};

/// Name of the service in answers.
const SERVICE: &str = "warpgauge";

/// Liveness of the server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// Always `alive`.
    pub status: String,
}

/// Readiness of the server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Whether evaluations can run.
    pub status: HealthStatus,
    /// Reasons why no evaluation can run. Empty if evaluations can run.
    pub reasons: Vec<Unready>,
    /// Whether a GPU serves evaluations. The emulated device does not count.
    pub gpu_available: bool,
    /// Number of GPUs that serve evaluations. Absent if the server has keys and the request has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<usize>,
    /// Number of devices of any kind that serve evaluations. Absent if `gpu_count` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_count: Option<usize>,
    /// Always `warpgauge`.
    pub service: String,
    /// Version of the server.
    pub version: String,
    /// Time since the start of the service, seconds.
    pub uptime_s: f64,
    /// Number of evaluations that wait for a device. Only for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<usize>,
    /// Numbers of jobs of this process since its start. Only for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_stats: Option<JobStats>,
    /// Numbers of GPUs by state. Absent if `gpu_count` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_manager: Option<GpuManager>,
}

/// Readiness of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// Every device works.
    Healthy,
    /// A device has failed, and evaluations run on the others.
    Degraded,
    /// No evaluation can run, for the reasons in `reasons`.
    Unhealthy,
}

/// Number of jobs, in total and by state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JobStats {
    /// Number of all jobs.
    pub total_jobs: u64,
    /// Number of jobs by state.
    pub by_status: BTreeMap<String, u64>,
    /// Mean age of this process's jobs that have not ended, seconds.
    pub average_age: f64,
}

impl JobStats {
    pub(crate) fn new(status: &ServiceStatus) -> Self {
        Self {
            total_jobs: status.jobs_by_state.values().sum(),
            by_status: status.jobs_by_state.clone(),
            average_age: status.average_job_age_s,
        }
    }
}

/// Numbers of GPUs by state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GpuManager {
    /// Number of GPUs that are idle.
    pub available_gpus: usize,
}

impl Health {
    pub(crate) fn new(status: &ServiceStatus, reasons: Vec<Unready>, sees: Sees) -> Self {
        let (devices, everything) = (sees >= Sees::Devices, sees == Sees::Everything);
        let serving = || status.devices.iter().filter(|device| serves(device));
        let gpus = || serving().filter(|view| view.device.kind == DeviceKind::Cuda);
        let all_serve = serving().count() == status.devices.len() && !status.devices.is_empty();
        Self {
            status: match (reasons.is_empty(), all_serve) {
                (false, _) => HealthStatus::Unhealthy,
                (true, false) => HealthStatus::Degraded,
                (true, true) => HealthStatus::Healthy,
            },
            reasons,
            gpu_available: gpus().next().is_some(),
            gpu_count: devices.then(|| gpus().count()),
            device_count: devices.then(|| serving().count()),
            service: SERVICE.to_owned(),
            version: status.version.clone(),
            uptime_s: status.uptime_s,
            queue_depth: everything.then_some(status.queue_depth),
            job_stats: everything.then(|| JobStats::new(status)),
            gpu_manager: devices.then(|| GpuManager {
                available_gpus: gpus().filter(|view| view.state == "ready").count(),
            }),
        }
    }
}

/// Returns whether a device serves evaluations: any state but a failure, including the time before
/// its start.
pub(crate) fn serves(view: &DeviceView) -> bool {
    !view.state.starts_with("failed")
}

/// Server, compilers and devices.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Info {
    /// Whether a device serves evaluations. If so, `info` describes it.
    pub success: bool,
    /// Default device of evaluations, with the fields of the Remote GPU Execution Service. `devices` describes all
    /// devices in more detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<DeviceInfoView>,
    /// Always `warpgauge`.
    pub name: String,
    /// Version of the server.
    pub version: String,
    /// Time since the start of the service, seconds.
    pub uptime_s: f64,
    /// Devices and their workers.
    pub devices: Vec<DeviceView>,
    /// Number of evaluations that wait for a device.
    pub queue_depth: usize,
    /// Maximum number of evaluations that wait. The server rejects a further one with 429.
    pub queue_capacity: usize,
    /// Maximum size of a request body, bytes. The server rejects a larger one with 413.
    pub body_limit_bytes: u64,
    /// Names and versions of the compilers that were found.
    pub compilers: Vec<String>,
    /// Media types that the server accepts for request bodies.
    pub request_formats: Vec<String>,
}

/// Device, with the fields of the Remote GPU Execution Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceInfoView {
    /// Product name of the device.
    pub device_name: String,
    /// Compute capability, as its two numbers.
    pub compute_capability: [u32; 2],
    /// Size of the device memory, MiB.
    pub total_memory_mb: u64,
    /// Number of streaming multiprocessors.
    pub multiprocessor_count: u32,
}

impl DeviceInfoView {
    fn new(device: &DeviceReport) -> Self {
        let CudaDevice { major, minor, .. } = CudaDevice::new(device);
        Self {
            device_name: device.name.clone(),
            compute_capability: [major, minor],
            total_memory_mb: device.memory_bytes >> 20,
            multiprocessor_count: device.multiprocessors,
        }
    }
}

impl Info {
    pub(crate) fn new(status: ServiceStatus, body_limit_bytes: u64) -> Self {
        let first = status.devices.iter().find(|view| serves(view));
        let info = first.map(|view| DeviceInfoView::new(&view.device));
        Self {
            success: info.is_some(),
            info,
            name: SERVICE.to_owned(),
            version: status.version,
            uptime_s: status.uptime_s,
            devices: status.devices,
            queue_depth: status.queue_depth,
            queue_capacity: status.queue_capacity,
            body_limit_bytes,
            compilers: status.compilers,
            request_formats: MEDIA_TYPES.map(|(name, _)| name.to_owned()).into(),
        }
    }
}

/// Devices and their workers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// Devices and their workers.
    pub devices: Vec<DeviceView>,
}

/// CUDA GPUs of the machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CudaInfo {
    /// Whether there is a CUDA GPU. The emulated device does not count.
    pub available: bool,
    /// Copy of `available`, under the field name of the GPU Tensor Server.
    #[serde(default)]
    pub cuda_available: bool,
    /// Number of CUDA GPUs.
    pub device_count: usize,
    /// CUDA GPUs of the machine.
    pub devices: Vec<CudaDevice>,
}

/// A CUDA GPU of the machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CudaDevice {
    /// CUDA ordinal of the device.
    pub device_id: u32,
    /// Product name of the device.
    pub name: String,
    /// Size of the device memory, bytes.
    pub total_memory: u64,
    /// Major number of the compute capability.
    pub major: u32,
    /// Minor number of the compute capability.
    pub minor: u32,
    /// UUID of the GPU.
    pub uuid: String,
    /// CUDA version of the driver, e.g. `13.0`.
    pub cuda_version: String,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Size of the L2 cache, bytes.
    pub l2_bytes: u64,
}

impl CudaInfo {
    pub(crate) fn new(status: &ServiceStatus) -> Self {
        let devices: Vec<CudaDevice> = status
            .devices
            .iter()
            .filter(|view| view.device.kind == DeviceKind::Cuda)
            .map(|view| CudaDevice::new(&view.device))
            .collect();
        let available = !devices.is_empty();
        Self { available, cuda_available: available, device_count: devices.len(), devices }
    }
}

impl CudaDevice {
    fn new(device: &DeviceReport) -> Self {
        let (major, minor) =
            device.compute_capability.split_once('.').unwrap_or((&device.compute_capability, "0"));
        Self {
            device_id: device.id,
            name: device.name.clone(),
            total_memory: device.memory_bytes,
            major: major.parse().unwrap_or(0),
            minor: minor.parse().unwrap_or(0),
            uuid: device.uuid.clone(),
            cuda_version: device.cuda_version.clone(),
            multiprocessors: device.multiprocessors,
            l2_bytes: device.l2_bytes,
        }
    }
}
