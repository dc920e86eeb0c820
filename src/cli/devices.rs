//! `warpgauge devices`: lists the devices of this machine or of a server.

use super::args::DevicesArgs;
use super::terminal::{Terminal, plain};
use super::{CliError, format, json, local};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_report::readable::word;
use warpgauge_report::{DeviceReading, ReadingOccasion};
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
            let clocks = view.reading.as_ref().map(clocks).unwrap_or_default();
            format!("{device}\n    {}, {}\n{clocks}", view.device.uuid, plain(&view.state))
        })
        .collect()
}

/// Returns a line with clocks, power, temperature and throttling as a worker read them last.
fn clocks(reading: &DeviceReading) -> String {
    let of = |value: Option<f64>, most: Option<f64>, unit: &str| {
        let most = most.map(|most| format!(" of at most {most:.0}")).unwrap_or_default();
        value.map(|value| format!("{value:.0}{most} {unit}"))
    };
    let mhz = |clock: Option<u32>, most: Option<u32>| {
        of(clock.map(f64::from), most.map(f64::from), "MHz")
    };
    let throttled = reading.throttle_reasons.as_ref().map(|reasons| {
        let words = reasons
            .iter()
            .map(|reason| word(reason).replace('_', " "))
            .collect::<Vec<_>>()
            .join(", ");
        if words.is_empty() { "not throttled".to_owned() } else { format!("throttled: {words}") }
    });
    let occasion = match reading.occasion {
        ReadingOccasion::Evaluation => "after the last evaluation",
        ReadingOccasion::Start => "at the start of a worker",
    };
    let facts = [
        mhz(reading.sm_clock_mhz, reading.max_sm_clock_mhz).map(|clock| format!("SM {clock}")),
        mhz(reading.memory_clock_mhz, reading.max_memory_clock_mhz)
            .map(|clock| format!("memory {clock}")),
        of(reading.power_w, reading.power_limit_w, "W"),
        of(reading.temperature_c.map(f64::from), None, "°C"),
        throttled,
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>();
    format!("    {occasion}: {}\n", facts.join(", "))
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
        let mut view = DeviceView {
            device,
            state: "ready".to_owned(),
            jobs_done: 0,
            restarts: 0,
            worker_sandbox: None,
            reading: None,
            no_reading: Some("an emulated device has no clocks".to_owned()),
        };
        let expected = "emulator (not a GPU: times are of the emulation): 0 warpgauge emulator, \
                        compute 9.0, 2 SMs, 8.0 GiB, CUDA 13.0\n    GPU-0, ready\n";
        assert_eq!(listing(std::slice::from_ref(&view)), expected);
        assert!(listing(&[]).contains("neither a GPU"));
        let reading = serde_json::json!({
            "at": 1.0, "occasion": "evaluation", "sm_clock_mhz": 1605, "max_sm_clock_mhz": 1980,
            "memory_clock_mhz": 3201, "power_w": 697.6, "power_limit_w": 700.0, "temperature_c": 61,
            "throttle_reasons": ["sw_power_cap", "hw_thermal_slowdown"],
        });
        view.reading = Some(serde_json::from_value(reading).unwrap());
        let clocks = "    after the last evaluation: SM 1605 of at most 1980 MHz, memory 3201 MHz, \
                      698 of at most 700 W, 61 °C, throttled: sw power cap, hw thermal slowdown\n";
        assert_eq!(listing(&[view]), format!("{expected}{clocks}"));
    }
}
