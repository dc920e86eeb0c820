//! Capabilities of this machine's tools on each of its devices.

use std::path::PathBuf;

use crate::engine::Engine;
use warpgauge_contract::KernelFamily;
use warpgauge_model::{DeviceInfo, DeviceKind, ExecutorCapabilities};
use warpgauge_nsight::counters::{self, CounterAccess};
use warpgauge_nsight::{FoundTools, ToolName};
use warpgauge_report::{Capability, DeviceTooling, SourceCapability, ToolReport, Tooling, Warning};
use warpgauge_sandbox::{own_root, privileges};

/// Returns the capabilities of the tools. With `refresh`, searches for the tools again.
pub(crate) async fn tooling(engine: &Engine, refresh: bool) -> Tooling {
    let host = &engine.host;
    let found = host.tools.found(refresh).await;
    let access = counters::access();
    let devices = host.fleet.devices();
    let cupti = &host.compiler.toolchain().cupti;
    let programs = ToolName::ALL.into_iter().map(|name| tool_report(&found, name));
    let visible = tokio::task::spawn_blocking(own_root::visible_because).await.ok().flatten();
    let visible = visible.map(Warning::paths_are_visible);
    let root = privileges::is_root().then(Warning::runs_as_root).into_iter();
    Tooling {
        tools: programs.chain(of_backends(engine)).collect(),
        counter_users: access.readers.clone(),
        warnings: root.chain(visible).collect(),
        devices: devices
            .iter()
            .map(|status| device(&status.info, &found, &access, cupti))
            .collect(),
    }
}

/// Returns the resources that orders can require: tools and devices. The list includes devices that
/// currently do not work.
pub(crate) async fn offered(engine: &Engine) -> ExecutorCapabilities {
    let host = &engine.host;
    let found = host.tools.found(false).await;
    let usable = |name: &ToolName| found.get(*name).is_some_and(|tool| tool.problem.is_none());
    let tools = ToolName::ALL.into_iter().filter(usable);
    let packages: Vec<ToolReport> = of_backends(engine).collect();
    let missing = |package: &ToolReport| {
        let why = (package.reason.as_deref()?, package.remedy.as_deref()?);
        Some((package.name.clone(), format!("{}; {}", why.0, why.1)))
    };
    let there = packages.iter().filter(|package| package.available);
    ExecutorCapabilities {
        devices: host.fleet.devices().iter().map(|status| status.info.offer()).collect(),
        tools: tools.map(|name| name.program().to_owned()).collect(),
        languages: there.map(|package| package.name.clone()).collect(),
        no_languages: packages.iter().filter_map(missing).collect(),
    }
}

/// Returns the tools that kernels need in addition to a device, each named after the kernel type
/// that needs it.
fn of_backends(engine: &Engine) -> impl Iterator<Item = ToolReport> {
    let backends = KernelFamily::ALL.iter().map(|family| engine.backend(*family));
    backends.flat_map(|backend| backend.tools(&engine.host))
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

fn device(
    info: &DeviceInfo,
    found: &FoundTools,
    access: &CounterAccess,
    cupti: &[PathBuf],
) -> DeviceTooling {
    match info.kind {
        DeviceKind::Cuda => gpu(info, found, access, cupti),
        DeviceKind::Emulator => emulated(info),
    }
}

fn gpu(
    info: &DeviceInfo,
    found: &FoundTools,
    access: &CounterAccess,
    cupti: &[PathBuf],
) -> DeviceTooling {
    let counters = match &access.refused {
        Some(why) => Capability::lacks(&why.code, &*why.reason, &*why.remedy),
        None => Capability::has(&*access.because),
    };
    let ncu = with_tool(found, ToolName::Ncu, "hardware counters and metrics derived from them");
    let with_counters = |tool: Capability| {
        if tool.available && !counters.available { counters.clone() } else { tool }
    };
    let nsys = with_tool(found, ToolName::Nsys, "timeline of the activities of GPU and driver");
    let importer = with_tool(found, ToolName::QdstrmImporter, "");
    DeviceTooling {
        id: info.ordinal,
        sources: vec![
            SourceCapability::new("cupti", with_counters(in_process(info, cupti))),
            SourceCapability::new("ncu", with_counters(ncu)),
            SourceCapability::new("gpm", monitoring(info)),
            SourceCapability::new(
                "static",
                Capability::has(
                    "metrics derived from the launch, the kernel's resources and the device",
                ),
            ),
        ],
        counters,
        sanitize: with_tool(found, ToolName::ComputeSanitizer, "memory, race and barrier checks"),
        timeline: if nsys.available && !importer.available { importer } else { nsys },
    }
}

/// Returns whether CUPTI can be used, based on whether its library exists. Only the profiling
/// worker opens the library.
fn in_process(info: &DeviceInfo, cupti: &[PathBuf]) -> Capability {
    let fitting = warpgauge_device::cupti::for_driver(cupti, info.target.driver_version);
    match fitting.first() {
        Some(library) => {
            let library = library.display();
            Capability::has(format!("{library}: hardware counters, read in process"))
        }
        None => Capability::lacks(
            "no_tool",
            "there is no CUPTI of CUDA 12 or later that fits the driver",
            "install the CUDA toolkit, or `pip install nvidia-cuda-cupti`, and name it in \
             compile.toolchain",
        ),
    }
}

/// Returns whether the driver can monitor the whole GPU. Monitoring needs neither a permission nor
/// counters.
fn monitoring(info: &DeviceInfo) -> Capability {
    match &info.unmonitored {
        Some(why) => Capability::lacks(&why.code, &*why.reason, &*why.remedy),
        None => Capability::has(
            "NVML's monitoring of the whole GPU: activity, occupancy, use of memory and pipelines",
        ),
    }
}

fn emulated(info: &DeviceInfo) -> DeviceTooling {
    let no_gpu = |what: &str| {
        let remedy = "run the contract on a GPU";
        Capability::lacks(
            "emulated",
            format!("the emulated device does not support {what}"),
            remedy,
        )
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
