//! Which devices there are, asked of a child: the server itself never opens the driver.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;
use tokio::time::timeout;

use super::{DeviceChoice, FleetConfig, FleetError};
use crate::device::loader::find_emulator;
use crate::environment;
use crate::worker::child::ProbeReport;
use crate::worker::protocol::DeviceInfo;

/// What a fleet will run on.
pub(super) struct Found {
    pub devices: Vec<DeviceInfo>,
    /// The emulator's library, if it is used.
    pub emulator: Option<PathBuf>,
}

/// Finds the devices that the configuration asks for.
pub(super) async fn find(config: &FleetConfig) -> Result<Found, FleetError> {
    let emulator = find_emulator(config.emulator.as_deref());
    match &config.devices {
        DeviceChoice::Emulator => {
            let emulator = emulator.ok_or(FleetError::NoEmulator)?;
            emulated(config, emulator).await
        }
        DeviceChoice::Ordinals(ordinals) => {
            let report = probe(config, None).await?;
            if let Some(reason) = report.error {
                return Err(FleetError::NoDriver { reason });
            }
            let there = report.devices.len();
            let chosen = ordinals.iter().map(|&ordinal| {
                let device = report.devices.iter().find(|device| device.ordinal == ordinal);
                device.cloned().ok_or(FleetError::NoSuchDevice { ordinal, there })
            });
            Ok(Found { devices: chosen.collect::<Result<_, _>>()?, emulator: None })
        }
        DeviceChoice::Auto => {
            let report = probe(config, None).await?;
            let Some(reason) = report.error else {
                return Ok(Found { devices: report.devices, emulator: None });
            };
            let Some(emulator) = emulator else {
                return Err(FleetError::NoDevice { reason });
            };
            let library = emulator.display();
            tracing::warn!(%reason, %library, "no GPU: kernels run on the emulated device");
            emulated(config, emulator).await
        }
    }
}

async fn emulated(config: &FleetConfig, emulator: PathBuf) -> Result<Found, FleetError> {
    let report = probe(config, Some(&emulator)).await?;
    match report.error {
        Some(reason) => Err(FleetError::Emulator { reason }),
        None => Ok(Found { devices: report.devices, emulator: Some(emulator) }),
    }
}

async fn probe(
    config: &FleetConfig,
    emulator: Option<&PathBuf>,
) -> Result<ProbeReport, FleetError> {
    let fail = |reason: String| FleetError::Probe { program: config.program.clone(), reason };
    let mut command = Command::new(&config.program);
    command.env_clear().envs(environment::of_child());
    command.arg("__worker").arg("--probe").arg("--run-dir").arg(&config.run_dir);
    if let Some(path) = emulator {
        command.arg("--emulator").arg(path);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let output = timeout(config.start_timeout, command.output())
        .await
        .map_err(|_| fail(format!("no answer within {:?}", config.start_timeout)))?
        .map_err(|error| fail(error.to_string()))?;
    // A driver may print lines of its own; ours is the last.
    let printed = String::from_utf8_lossy(&output.stdout);
    let report = printed.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    report.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let end: String = said.trim().chars().take(2000).collect();
        fail(format!("{}; it said: {end}", output.status))
    })
}
