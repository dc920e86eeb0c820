//! Answers that only the HTTP API gives: the state of the machine.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::middleware::auth::Sees;
use crate::request::parsed_body::MEDIA_TYPES;
use warpgauge_job_views::Unready;
use warpgauge_model::DeviceKind;
use warpgauge_report::DeviceReport;
use warpgauge_service::{DeviceView, ServiceStatus};

/// What this program calls itself.
const SERVICE: &str = "warpgauge";

/// Answer of `GET /live`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// `alive`.
    pub status: String,
}

/// Answer of `GET /health`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Whether evaluations can run.
    pub status: HealthStatus,
    /// Why they cannot; empty if they can.
    pub reasons: Vec<Unready>,
    /// Whether a GPU serves evaluations; an emulated device is not one.
    pub gpu_available: bool,
    /// GPUs that serve evaluations; absent where the server has keys and the request has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<usize>,
    /// Devices of any kind that serve evaluations; absent where `gpu_count` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_count: Option<usize>,
    /// `warpgauge`.
    pub service: String,
    /// Version of this program.
    pub version: String,
    /// Seconds since the service started.
    pub uptime_s: f64,
    /// Evaluations waiting for a device; for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<usize>,
    /// Jobs kept; for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_stats: Option<JobStats>,
    /// GPUs by state; absent where `gpu_count` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_manager: Option<GpuManager>,
}

/// Whether evaluations can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// Every device works.
    Healthy,
    /// One of them has failed, and evaluations run on the others.
    Degraded,
    /// Nothing can be evaluated: `reasons` says why.
    Unhealthy,
}

/// Jobs kept in memory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JobStats {
    /// All of them.
    pub total_jobs: u64,
    /// By state.
    pub by_status: BTreeMap<String, u64>,
    /// Mean age, seconds.
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

/// GPUs by state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GpuManager {
    /// GPUs that wait for work.
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

/// A device serves unless it failed; one that is starting soon does.
pub(crate) fn serves(view: &DeviceView) -> bool {
    !view.state.starts_with("failed")
}

/// Answer of `GET /info`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Info {
    /// Whether there is a device, which `info` describes.
    pub success: bool,
    /// The device that evaluations run on where none is asked for, in the shape of the Remote GPU
    /// Execution Service; `devices` has more, and all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<DeviceInfoView>,
    /// `warpgauge`.
    pub name: String,
    /// Version of this program.
    pub version: String,
    /// Seconds since the service started.
    pub uptime_s: f64,
    /// Devices and their workers.
    pub devices: Vec<DeviceView>,
    /// Evaluations waiting for a device.
    pub queue_depth: usize,
    /// Evaluations that may wait; one more is refused with 429.
    pub queue_capacity: usize,
    /// Largest request body, bytes; a larger one is refused with 413.
    pub body_limit_bytes: u64,
    /// Compilers found.
    pub compilers: Vec<String>,
    /// Media types that request bodies may have.
    pub request_formats: Vec<String>,
}

/// A device, in the shape of the Remote GPU Execution Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceInfoView {
    /// Product name.
    pub device_name: String,
    /// Compute capability: its two numbers.
    pub compute_capability: [u32; 2],
    /// Device memory, MiB.
    pub total_memory_mb: u64,
    /// Streaming multiprocessors.
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

/// Answer of `GET /devices`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// Devices and their workers.
    pub devices: Vec<DeviceView>,
}

/// Answer of `GET /cuda/info`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CudaInfo {
    /// Whether there is a CUDA GPU; an emulated device is not one.
    pub available: bool,
    /// The same, by the name that it has at the GPU Tensor Server.
    #[serde(default)]
    pub cuda_available: bool,
    /// CUDA GPUs.
    pub device_count: usize,
    /// CUDA GPUs.
    pub devices: Vec<CudaDevice>,
}

/// A CUDA GPU.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CudaDevice {
    /// CUDA ordinal.
    pub device_id: u32,
    /// Product name.
    pub name: String,
    /// Device memory, bytes.
    pub total_memory: u64,
    /// Compute capability, first number.
    pub major: u32,
    /// Compute capability, second number.
    pub minor: u32,
    /// UUID.
    pub uuid: String,
    /// CUDA version of the driver, e.g. `13.0`.
    pub cuda_version: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// L2 cache, bytes.
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
