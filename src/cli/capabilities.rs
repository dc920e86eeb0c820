//! `warpgauge capabilities`: lists the capabilities of each device and tool.

use super::args::CapabilitiesArgs;
use super::terminal::{Terminal, plain};
use super::{CliError, local};
use crate::exit::Exit;
use warpgauge_api::Capabilities;
use warpgauge_config::Config;
use warpgauge_report::{Capability, SourceCapability, ToolReport};

pub(super) fn run(
    args: &CapabilitiesArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let capabilities = local::with_service(config, |service| async move {
        let tooling = service.machine.tooling(false).await;
        Ok(Capabilities::new(&service.machine.status(), &tooling))
    })?;
    let text = if args.json {
        let json = serde_json::to_string(&capabilities)
            .map_err(|error| CliError::Internal(format!("capabilities to JSON: {error}")))?;
        format!("{json}\n")
    } else {
        listing(&capabilities)
    };
    terminal.print(&text)?;
    Ok(if capabilities.devices.is_empty() { Exit::Environment } else { Exit::Success })
}

fn listing(capabilities: &Capabilities) -> String {
    let mut text = String::from("tools\n");
    for tool in &capabilities.tools {
        text += &tool_line(tool);
    }
    if !capabilities.counter_users.is_empty() {
        let users = plain(&capabilities.counter_users.join(", "));
        text += &format!("  programs that may use the counters: {users}\n");
    }
    for warning in &capabilities.warnings {
        text += &format!("warning: {}\n", plain(&warning.message));
        text += &hints(None, Some(&warning.remedy));
    }
    for device in &capabilities.devices {
        let name = plain(&device.name);
        text += &format!("device {}: {name}, compute {}\n", device.id, device.compute_capability);
        text += &line("evaluate", Some(&device.evaluate));
        text += &line("machine code", Some(&device.machine_code));
        text += &line("counters", device.counters.as_ref());
        for source in &device.profile {
            text += &source_line(source);
        }
        text += &line("sanitize", device.sanitize.as_ref());
        text += &line("timeline", device.timeline.as_ref());
    }
    text
}

fn tool_line(tool: &ToolReport) -> String {
    let version = tool.version.as_deref().unwrap_or("");
    let path = plain(tool.path.as_deref().unwrap_or(""));
    let mut text = format!("  {:<18} {:<3} {version:<14} {path}\n", tool.name, yes(tool.available));
    text += &hints(tool.reason.as_deref().filter(|_| !tool.available), tool.remedy.as_deref());
    text
}

fn line(what: &str, capability: Option<&Capability>) -> String {
    let Some(capability) = capability else { return String::new() };
    let reason = plain(&capability.reason);
    let mut text = format!("  {what:<18} {:<3} {reason}\n", yes(capability.available));
    text += &hints(None, capability.remedy.as_deref());
    text
}

fn source_line(source: &SourceCapability) -> String {
    let what = format!("metrics: {}", source.name);
    let reason = plain(&source.reason);
    let mut text = format!("  {what:<18} {:<3} {reason}\n", yes(source.available));
    text += &hints(None, source.remedy.as_deref());
    text
}

fn hints(reason: Option<&str>, remedy: Option<&str>) -> String {
    let reason = reason.map(|reason| format!("    {}\n", plain(reason)));
    let remedy = remedy.map(|remedy| format!("    -> {}\n", plain(remedy)));
    reason.into_iter().chain(remedy).collect()
}

fn yes(available: bool) -> &'static str {
    if available { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_report::Tooling;
    use warpgauge_service::ServiceStatus;

    #[test]
    fn what_is_missing_is_told_with_what_would_help() {
        let status: ServiceStatus =
            serde_json::from_str(include_str!("../../openapi/examples/status.json")).unwrap();
        let tooling: Tooling =
            serde_json::from_str(include_str!("../../openapi/examples/tooling.json")).unwrap();
        let text = listing(&Capabilities::new(&status, &tooling));
        for wanted in [
            "  ncu                yes 2025.3.1.0     /opt/nvidia/nsight-compute/2025.3.1/ncu\n",
            "  nsys               no ",
            "    not found\n    -> install Nsight Systems",
            "programs that may use the counters: nv-hostengine (812)",
            "device 0: NVIDIA H200, compute 9.0\n  evaluate           yes worker is ready\n",
            "  counters           no  the driver opens them to administrators only",
            "  metrics: gpm       yes NVML's monitoring",
            "  metrics: static    yes metrics derived",
            "    -> load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
        }
    }
}
