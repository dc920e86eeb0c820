//! What the tools of this machine can do on each of its devices.

use super::run::Shared;
use crate::report::{Capability, DeviceTooling, SourceCapability, ToolReport, Tooling};
use crate::tools::counters::{self, CounterAccess};
use crate::tools::{FoundTools, ToolName};
use crate::worker::protocol::{DeviceInfo, DeviceKind};

impl Shared {
    /// What the tools can do; `refresh`: look for them again.
    pub(super) async fn tooling(&self, refresh: bool) -> Tooling {
        let found = self.tools.found(refresh).await;
        let access = counters::access();
        let devices = self.fleet.devices();
        Tooling {
            tools: ToolName::ALL.into_iter().map(|name| tool_report(&found, name)).collect(),
            counter_users: access.readers.clone(),
            devices: devices.iter().map(|status| device(&status.info, &found, &access)).collect(),
        }
    }
}

fn tool_report(found: &FoundTools, name: ToolName) -> ToolReport {
    let there = found.get(name);
    let problem = match there {
        None => Some("not found".to_owned()),
        Some(tool) => tool.problem.clone(),
    };
    ToolReport {
        name: name.program().to_owned(),
        available: problem.is_none(),
        path: there.map(|tool| tool.path.display().to_string()),
        version: there.and_then(|tool| tool.version.clone()),
        remedy: problem.is_some().then(|| name.remedy().to_owned()),
        reason: problem,
    }
}

fn device(info: &DeviceInfo, found: &FoundTools, access: &CounterAccess) -> DeviceTooling {
    match info.kind {
        DeviceKind::Cuda => gpu(info, found, access),
        DeviceKind::Emulator => emulated(info),
    }
}

fn gpu(info: &DeviceInfo, found: &FoundTools, access: &CounterAccess) -> DeviceTooling {
    let counters = match &access.refused {
        Some(why) => Capability::lacks(&why.code, &*why.reason, &*why.remedy),
        None => Capability::has(&*access.because),
    };
    let ncu = with_tool(found, ToolName::Ncu, "hardware counters and what follows from them");
    let ncu = if ncu.available && !counters.available { counters.clone() } else { ncu };
    let nsys = with_tool(found, ToolName::Nsys, "what the GPU and the driver did, and when");
    let importer = with_tool(found, ToolName::QdstrmImporter, "");
    DeviceTooling {
        id: info.ordinal,
        sources: vec![
            SourceCapability::new("ncu", ncu),
            SourceCapability::new(
                "static",
                Capability::has(
                    "what follows from the launch, the kernel's resources and the device",
                ),
            ),
        ],
        counters,
        sanitize: with_tool(found, ToolName::ComputeSanitizer, "memory, race and barrier checks"),
        timeline: if nsys.available && !importer.available { importer } else { nsys },
    }
}

fn emulated(info: &DeviceInfo) -> DeviceTooling {
    let no_gpu = |what: &str| {
        let remedy = "run the contract on a GPU";
        Capability::lacks("emulated", format!("the emulated device has no {what}"), remedy)
    };
    let counts = "exact counts of instructions and memory accesses of the PTX";
    DeviceTooling {
        id: info.ordinal,
        counters: no_gpu("hardware counters"),
        sources: vec![SourceCapability::new("emulator", Capability::has(counts))],
        sanitize: Capability::has("the emulator checks every access"),
        timeline: no_gpu("timeline"),
    }
}

fn with_tool(found: &FoundTools, name: ToolName, what: &str) -> Capability {
    match found.get(name) {
        None => Capability::lacks(
            "no_tool",
            format!("there is no {name} on this machine"),
            name.remedy(),
        ),
        Some(tool) => match &tool.problem {
            Some(problem) => Capability::lacks("no_tool", problem, name.remedy()),
            None => {
                let version = tool.version.as_deref().unwrap_or("of unknown version");
                Capability::has(format!("{name} {version}: {what}"))
            }
        },
    }
}
