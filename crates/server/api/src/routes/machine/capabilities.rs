//! Capabilities of this machine, with a reason for each missing one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::serves;
use warpgauge_contract::{CodeForm, KernelType};
use warpgauge_model::{DeviceKind, Library};
use warpgauge_report::{Capability, SourceCapability, ToolReport, Tooling, Warning};
use warpgauge_service::{DeviceView, ServiceStatus};

/// Capabilities of this machine, with a reason for each missing one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// Kernel types that the server accepts.
    pub kernel_types: Vec<String>,
    /// Compilers that were found, and how compile processes are confined.
    pub compile: CompileCapability,
    /// NVIDIA's profilers, checkers, disassemblers and libraries, Triton and PyTorch.
    pub tools: Vec<ToolReport>,
    /// Running programs that may hold the hardware counters, with their process ids. Only one process at a time can
    /// read counters.
    pub counter_users: Vec<String>,
    /// Security weaknesses of this installation, with remedies.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Capabilities of each device.
    pub devices: Vec<DeviceCapabilities>,
}

/// Compilers that were found, and how compile processes are confined.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompileCapability {
    /// Whether CUDA C++ can be compiled.
    pub available: bool,
    /// Names and versions of the compilers that were found.
    pub compilers: Vec<String>,
    /// How compile processes are confined: `landlock enforced`, or the reason why they are not
    /// confined.
    pub sandbox: String,
}

/// Capabilities of one device.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCapabilities {
    /// CUDA ordinal of the device.
    pub id: u32,
    /// `cuda` or `emulator`.
    pub kind: DeviceKind,
    /// Product name of the device.
    pub name: String,
    /// Compute capability, e.g. `9.0`.
    pub compute_capability: String,
    /// Whether the device can evaluate kernels: compile, run, check and time them.
    pub evaluate: Capability,
    /// Whether the device can evaluate machine code (`cubin`, `fatbin`), which the emulator cannot
    /// execute.
    pub machine_code: Capability,
    /// How the workers that run submitted kernels on the device are confined: what landlock (files,
    /// TCP, signals) and seccomp (system calls) enforce, or the reason why they do not. Absent
    /// before the first worker starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_sandbox: Option<String>,
    /// Whether hardware counters can be read, as far as is known without reading them. Absent for a
    /// device that was added after the last probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Capability>,
    /// Sources of device metrics, from best to worst.
    #[serde(default)]
    pub profile: Vec<SourceCapability>,
    /// Whether memory and race checks (`sanitize`) can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sanitize: Option<Capability>,
    /// Whether timelines of the GPU and the driver (`nsys`) can be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Capability>,
}

impl Capabilities {
    /// Returns the capabilities that the service's status and its tools imply.
    pub fn new(status: &ServiceStatus, tooling: &Tooling) -> Self {
        let there = |language: &str| {
            tooling.tools.iter().any(|tool| tool.name == language && tool.available)
        };
        let has_library = Library::ALL.iter().any(|library| there(library.name()));
        let is_there = |kernel_type: &KernelType| match kernel_type.code_form() {
            CodeForm::Absent => has_library,
            CodeForm::Text | CodeForm::Binary => kernel_type.tool().is_none_or(there),
        };
        let kernel_types = KernelType::ALL.iter().filter(|one| is_there(one));
        Self {
            kernel_types: kernel_types.map(|one| one.name().to_owned()).collect(),
            compile: CompileCapability {
                available: !status.compilers.is_empty(),
                compilers: status.compilers.clone(),
                sandbox: status.compile_sandbox.clone(),
            },
            tools: tooling.tools.clone(),
            counter_users: tooling.counter_users.clone(),
            warnings: tooling.warnings.clone(),
            devices: status
                .devices
                .iter()
                .map(|view| DeviceCapabilities::new(view, tooling))
                .collect(),
        }
    }
}

impl DeviceCapabilities {
    fn new(view: &DeviceView, tooling: &Tooling) -> Self {
        let device = &view.device;
        let own = tooling.devices.iter().find(|tooling| tooling.id == device.id);
        Self {
            id: device.id,
            kind: device.kind,
            name: device.name.clone(),
            compute_capability: device.compute_capability.clone(),
            evaluate: Capability::new(serves(view), format!("worker is {}", view.state)),
            machine_code: match device.kind {
                DeviceKind::Cuda => Capability::new(serves(view), "run by the driver"),
                DeviceKind::Emulator => {
                    Capability::new(false, "the emulator executes PTX only; submit cuda or ptx")
                }
            },
            worker_sandbox: view.worker_sandbox.clone(),
            counters: own.map(|own| own.counters.clone()),
            profile: own.map(|own| own.sources.clone()).unwrap_or_default(),
            sanitize: own.map(|own| own.sanitize.clone()),
            timeline: own.map(|own| own.timeline.clone()),
        }
    }
}
