//! Capabilities of the tools of a machine. The main type is [`Tooling`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Capability of this installation, or the reason why it is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    /// Whether the capability is available.
    pub available: bool,
    /// Tool that provides the capability, or the reason why it is not available.
    pub reason: String,
    /// Stable code of the reason, e.g. `no_permission`. Absent if the capability is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Remedy. Absent if the capability is available or no remedy is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Capability {
    /// Creates an available capability; `reason` names what provides it.
    pub fn has(reason: impl Into<String>) -> Self {
        Self { available: true, reason: reason.into(), code: None, remedy: None }
    }

    /// Creates a capability that is available or not, with a reason only.
    pub fn new(available: bool, reason: impl Into<String>) -> Self {
        Self { available, ..Self::has(reason) }
    }

    /// Creates an unavailable capability with a remedy.
    pub fn lacks(code: &str, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            available: false,
            reason: reason.into(),
            code: Some(code.to_owned()),
            remedy: Some(remedy.into()),
        }
    }
}

/// Tool or library of NVIDIA, Triton or PyTorch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Name of the tool. Programs: `ncu`, `nsys`, `QdstrmImporter`, `compute-sanitizer`, `cuobjdump`, `nvdisasm`.
    /// Python packages: `triton`, `torch`. Libraries whose functions kernels are compared with: `cusparse`, `cublas`.
    pub name: String,
    /// Whether the tool is installed and can be started.
    pub available: bool,
    /// Path of the tool. Absent if it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Version of the tool. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Reason why the tool cannot be used. Absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Remedy. Absent if the tool can be used or no remedy is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Capabilities of the tools of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tooling {
    /// NVIDIA's tools and libraries, Triton and PyTorch.
    pub tools: Vec<ToolReport>,
    /// Running programs that may use the hardware counters, with their process ids.
    pub counter_users: Vec<String>,
    /// Warnings about security weaknesses of this installation.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Capabilities of each device, in the order of their ordinals.
    pub devices: Vec<DeviceTooling>,
}

/// Security weakness of an installation, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code of the warning: `runs_as_root` or `paths_are_visible`.
    pub code: String,
    /// Description of the weakness.
    pub message: String,
    /// Remedy.
    pub remedy: String,
}

impl Warning {
    /// Creates the warning that the server runs as root.
    pub fn runs_as_root() -> Self {
        Self {
            code: "runs_as_root".to_owned(),
            message:
                "the server runs as root: its child processes have no capabilities, but through a \
                 vulnerability of the driver or of Linux they could reach files that root owns"
                    .to_owned(),
            remedy: "run the server as a dedicated user that owns its data directory (systemd: \
                     `User=warpgauge`; containers: `USER` or `--user`)"
                .to_owned(),
        }
    }

    /// Creates the warning that child processes cannot get a separate root directory. `reason` is
    /// the operation that the system refuses.
    pub fn paths_are_visible(reason: &str) -> Self {
        Self {
            code: "paths_are_visible".to_owned(),
            message: format!(
                "kernels can find out which paths exist on this machine, and sizes and times of \
                 files, but cannot read contents: their processes have no separate root directory \
                 ({reason})"
            ),
            remedy: "allow user namespaces for the server (`sysctl user.max_user_namespaces`; on Ubuntu \
                     `kernel.apparmor_restrict_unprivileged_userns=0` or a profile with `userns`; in \
                     containers a seccomp profile that allows `unshare` and `mount`)"
                .to_owned(),
        }
    }
}

/// Capabilities of the tools on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTooling {
    /// CUDA ordinal.
    pub id: u32,
    /// Whether hardware counters can be read. This is determined without reading them.
    pub counters: Capability,
    /// Sources of device metrics, from best to worst.
    pub sources: Vec<SourceCapability>,
    /// Memory and race checks.
    pub sanitize: Capability,
    /// Timelines of the GPU and the driver.
    pub timeline: Capability,
}

/// Source of device metrics on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCapability {
    /// Name of the source in `profile.tools` of a contract: `emulator`, `cupti`, `ncu`, `gpm` or `static`.
    pub name: String,
    /// Whether the source reports any metric on this device.
    pub available: bool,
    /// Metrics that the source reports, or the reason why it reports none.
    pub reason: String,
    /// Stable code of the reason. Absent if the source is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Remedy. Absent if the source is available or no remedy is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl SourceCapability {
    /// Creates a source from its name and capability.
    pub fn new(name: &str, capability: Capability) -> Self {
        let Capability { available, reason, code, remedy } = capability;
        Self { name: name.to_owned(), available, reason, code, remedy }
    }
}
