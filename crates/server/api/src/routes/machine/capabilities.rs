//! What this machine can do, and why not where it cannot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::serves;
use warpgauge_contract::{CodeForm, KernelType};
use warpgauge_model::{DeviceKind, Library};
use warpgauge_report::{Capability, SourceCapability, ToolReport, Tooling, Warning};
use warpgauge_service::{DeviceView, ServiceStatus};

/// Answer of `GET /capabilities`: what this machine can do, and why not where it cannot.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// Kernel types that are served.
    pub kernel_types: Vec<String>,
    /// Compilation.
    pub compile: CompileCapability,
    /// NVIDIA's profilers, checkers and disassemblers.
    pub tools: Vec<ToolReport>,
    /// Programs that may hold the hardware's counters, with their process numbers: one process at a
    /// time can read counters.
    pub counter_users: Vec<String>,
    /// What weakens this installation, and how to mend it.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Each device.
    pub devices: Vec<DeviceCapabilities>,
}

/// What can be compiled, with what, and how confined.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompileCapability {
    /// Whether CUDA C++ can be compiled.
    pub available: bool,
    /// Compilers found.
    pub compilers: Vec<String>,
    /// How compile children are confined: `landlock enforced`, or why not.
    pub sandbox: String,
}

/// What one device can do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCapabilities {
    /// CUDA ordinal.
    pub id: u32,
    /// `cuda` or `emulator`.
    pub kind: DeviceKind,
    /// Product name.
    pub name: String,
    /// `9.0`.
    pub compute_capability: String,
    /// Evaluation: compile, run, check, time.
    pub evaluate: Capability,
    /// Machine code (`cubin`, `fatbin`), which the emulator cannot execute.
    pub machine_code: Capability,
    /// How the workers are confined that run strangers' kernels on it: what landlock (files, TCP,
    /// signals) and seccomp (system calls) enforce, or why not. Absent before the first worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_sandbox: Option<String>,
    /// Reading hardware counters, as far as it is known without trying. Absent for a device that the
    /// service took up after it answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Capability>,
    /// Sources of device metrics, best first.
    #[serde(default)]
    pub profile: Vec<SourceCapability>,
    /// Memory and race checks (`sanitize`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sanitize: Option<Capability>,
    /// Timelines of what the GPU and the driver did (`nsys`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Capability>,
}

impl Capabilities {
    /// Returns facts about the service and its tools.
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
