//! `warpgauge devices`: lists the devices of this machine or of a server.

use super::args::DevicesArgs;
use super::terminal::{Terminal, plain};
use super::{CliError, format, json, local};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_service::DeviceView;

pub(super) fn run(
    args: &DevicesArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let status =
        local::with_service(config, |service| async move { Ok(service.machine.status()) })?;
    let text = if args.json {
        format!("{}\n", json::text("devices", &status.devices)?)
    } else {
        listing(&status.devices)
    };
    terminal.print(&text)?;
    Ok(if status.devices.is_empty() { Exit::Environment } else { Exit::Success })
}

fn listing(devices: &[DeviceView]) -> String {
    if devices.is_empty() {
        return "no device: neither a GPU with a driver nor the emulator was found; see \
                `devices.use` and `devices.emulator` in `warpgauge config`\n"
            .to_owned();
    }
    devices
        .iter()
        .map(|view| {
            let device = plain(&format::device(&view.device));
            format!("{device}\n    {}, {}\n", view.device.uuid, plain(&view.state))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_model::DeviceKind;
    use warpgauge_report::DeviceReport;

    #[test]
    fn an_emulated_device_says_what_it_is() {
        let device = DeviceReport {
            id: 0,
            kind: DeviceKind::Emulator,
            name: "warpgauge emulator".to_owned(),
            uuid: "GPU-0".to_owned(),
            compute_capability: "9.0".to_owned(),
            cuda_version: "13.0".to_owned(),
            multiprocessors: 2,
            memory_bytes: 8 << 30,
            l2_bytes: 0,
        };
        let view = DeviceView {
            device,
            state: "ready".to_owned(),
            jobs_done: 0,
            restarts: 0,
            worker_sandbox: None,
            reading: None,
            no_reading: Some("an emulated device has no clocks".to_owned()),
        };
        assert_eq!(
            listing(&[view]),
            "emulator (not a GPU: times are of the emulation): 0 warpgauge emulator, compute 9.0, \
             2 SMs, 8.0 GiB, CUDA 13.0\n    GPU-0, ready\n"
        );
        assert!(listing(&[]).contains("neither a GPU"));
    }
}
