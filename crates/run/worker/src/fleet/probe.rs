//! Lists the devices in a child process, because the server itself never opens the driver.

use std::path::PathBuf;

use super::asked::{Silence, ask};
use super::kind::WorkerProgram;
use super::{DeviceChoice, FleetConfig, FleetError};
use crate::protocol::ProbeReport;
use warpgauge_device::loader::find_emulator;
use warpgauge_model::DeviceInfo;
use warpgauge_sandbox::contained::ProcessLaunch;

/// The devices of a fleet.
pub(super) struct Found {
    pub devices: Vec<DeviceInfo>,
    /// The emulator's library, if the fleet uses it.
    pub emulator: Option<PathBuf>,
}

/// Finds the devices that the configuration requires.
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
            tracing::info!(%reason, %library, "no GPU: kernels run on the emulated device");
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
    let program = WorkerProgram {
        path: config.program.clone(),
        emulator: emulator.cloned(),
        run_dir: config.run_dir.clone(),
        libraries: Vec::new(),
    };
    let launch = ProcessLaunch::new(program.probe());
    ask(&launch, config.start_timeout).await.map_err(|silence| {
        fail(match silence {
            Silence::TimedOut => format!("there was no answer within {:?}", config.start_timeout),
            Silence::Ended(reason) => reason,
        })
    })
}
