//! Capabilities of the tools of a machine. The main type is [`Tooling`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that can be done, or the reason why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    /// Whether it can.
    pub available: bool,
    /// What does it, or why it cannot be done.
    pub reason: String,
    /// Stable code of the reason why it cannot be done, e.g. `no_permission`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What would help.
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

/// A program or a library of NVIDIA's, Triton or PyTorch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Name of the program: `ncu`, `nsys`, `QdstrmImporter`, `compute-sanitizer`, `cuobjdump`,
    /// `nvdisasm`; `triton`, `torch`: packages of Python; `cusparse`, `cublas`: libraries whose functions
    /// kernels are compared with.
    pub name: String,
    /// Whether it is there and can be started.
    pub available: bool,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Capabilities of the tools of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tooling {
    /// NVIDIA's programs, Triton and PyTorch.
    pub tools: Vec<ToolReport>,
    /// Programs that may hold the hardware counters, with their process ids.
    pub counter_users: Vec<String>,
    /// Warnings about weak points of this installation.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Capabilities of each device, by ordinal.
    pub devices: Vec<DeviceTooling>,
}

/// What weakens an installation, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name: `runs_as_root`, `paths_are_visible`.
    pub code: String,
    /// What is weak.
    pub message: String,
    /// How to mend it.
    pub remedy: String,
}

impl Warning {
    /// Creates the warning that the server runs as root.
    pub fn runs_as_root() -> Self {
        Self {
            code: "runs_as_root".to_owned(),
            message:
                "the server runs as root: its children have no capabilities, but a fault of the \
                      driver or of the kernel in one of them reaches files that root owns"
                    .to_owned(),
            remedy: "run the server as a user of its own (systemd: `User=warpgauge`; containers: \
                     `USER` or `--user`), which owns its data directory"
                .to_owned(),
        }
    }

    /// Creates the warning that child processes cannot get a separate root directory. `reason` is
    /// the operation that the system refuses.
    pub fn paths_are_visible(reason: &str) -> Self {
        Self {
            code: "paths_are_visible".to_owned(),
            message: format!(
                "kernels can find out which paths exist on this machine, and sizes and times of files, \
                 but no contents: their processes get no root directory of their own ({reason})"
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
    /// Whether hardware counters can be read, as far as is known without reading them.
    pub counters: Capability,
    /// Sources of device metrics, best first.
    pub sources: Vec<SourceCapability>,
    /// Memory and race checks.
    pub sanitize: Capability,
    /// Traces of the activity of GPU and driver.
    pub timeline: Capability,
}

/// A source of device metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCapability {
    /// As `profile.tools` of a contract has it: `emulator`, `cupti`, `ncu`, `gpm`,
    /// `static`.
    pub name: String,
    /// Whether it has data on this device.
    pub available: bool,
    /// What it reports, or why it reports nothing.
    pub reason: String,
    /// Stable code of the reason why it reports nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What would help.
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
