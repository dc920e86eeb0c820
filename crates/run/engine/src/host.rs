//! Resources that all backends share: compilers, devices, tools and disk space for files. The main
//! type is [`Host`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::RwLock;

use crate::error::{self, ExecError};
use crate::progress::ActiveOrder;
use crate::room::Room;
use crate::scratch::Scratch;
use warpgauge_compile::Compiler;
use warpgauge_config::Config;
use warpgauge_contract::{ContractLimits, EvaluateRequest};
use warpgauge_executor::{Offer, OfferedDevice};
use warpgauge_model::{DeviceInfo, Requirements};
use warpgauge_nsight::Tools;
use warpgauge_report::{DeviceReading, ReadingOccasion};
use warpgauge_statistics::throttle_reasons;
use warpgauge_worker::protocol::GpuReading;
use warpgauge_worker::queue::LeaseNeeds;
use warpgauge_worker::{Fleet, LastReading, Lease};

/// The compilers, devices and tools of this machine, and the configuration.
pub(crate) struct Host {
    pub(crate) config: Config,
    pub(crate) limits: ContractLimits,
    pub(crate) tools: Tools,
    pub(crate) compiler: Arc<Compiler>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) scratch: Scratch,
    pub(crate) room: Room,
    /// Locks by device ordinal. [`Self::noise_of`] describes them.
    noise: BTreeMap<u32, Arc<RwLock<()>>>,
}

/// The fields from which a [`Host`] is created.
pub(crate) struct HostParts {
    pub(crate) config: Config,
    pub(crate) limits: ContractLimits,
    pub(crate) tools: Tools,
    pub(crate) compiler: Arc<Compiler>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) scratch: Scratch,
}

impl Host {
    pub(crate) fn new(parts: HostParts) -> Self {
        let HostParts { config, limits, tools, compiler, fleet, scratch } = parts;
        let ordinals = fleet.devices().into_iter().map(|status| status.info.ordinal);
        let noise = ordinals.map(|ordinal| (ordinal, Arc::default())).collect();
        let room = Room::new(config.limits.max_decoded_bytes);
        Self { config, limits, tools, compiler, fleet, scratch, room, noise }
    }

    /// Returns the devices and compilers that orders can use.
    pub(crate) fn offer(&self) -> Offer {
        let devices = self.fleet.devices().into_iter().map(|status| OfferedDevice {
            info: status.info,
            state: status.state,
            busy: status.busy,
            jobs_done: status.jobs_done,
            restarts: status.restarts,
            worker_sandbox: status.confinement.map(|confinement| confinement.to_string()),
            reading: status.reading.map(|last| device_reading(&last)),
        });
        Offer {
            devices: devices.collect(),
            waiting: self.fleet.waiting(),
            compilers: crate::found::compilers(self.compiler.toolchain()),
            compile_sandbox: self.compiler.sandbox().to_string(),
        }
    }

    /// Returns the device for evaluations whose contract does not select one.
    pub(crate) fn default_device(&self) -> Result<DeviceInfo, ExecError> {
        self.offer().default_device().cloned()
    }

    /// Returns the device that a request runs on. It is the device whose memory contains content of
    /// the request, or otherwise any that meets its requirements.
    pub(crate) fn device_of(&self, request: &EvaluateRequest) -> Result<DeviceInfo, ExecError> {
        let Some(ordinal) = request.device_of_content() else {
            return self.device_for(&request.requires);
        };
        let offer = self.offer();
        let device = offer.devices.iter().find(|device| device.info.ordinal == ordinal);
        device.map(|device| device.info.clone()).ok_or_else(|| {
            ExecError::NotOffered(format!(
                "content of the request is in the memory of device {ordinal}, which this machine does not have"
            ))
        })
    }

    /// Returns a device that meets the requirements of an order.
    pub(crate) fn device_for(&self, order: &Requirements) -> Result<DeviceInfo, ExecError> {
        self.offer().device_for(order).cloned()
    }

    /// Leases a device for an order with timed runs. Waits until no other process starts or ends on
    /// the device.
    pub(crate) async fn quiet_lease(&self, need: &LeaseNeeds) -> Result<Lease, ExecError> {
        let lease = self.fleet.lease(need).await.map_err(error::from_lease)?;
        if let Some(noise) = self.noise.get(&lease.device().ordinal) {
            let _ = noise.write().await;
        }
        Ok(lease)
    }

    /// Returns the lock that tasks hold for reading while they start or end processes on a device
    /// between orders. [`Self::quiet_lease`] waits for it.
    pub(crate) fn noise_of(&self, ordinal: u32) -> Arc<RwLock<()>> {
        self.noise.get(&ordinal).cloned().unwrap_or_default()
    }

    /// Returns the time limit for one run of a tool.
    pub(crate) fn tool_limit(&self) -> Duration {
        Duration::from_secs_f64(self.config.tools.timeout_s)
    }
}

/// Returns the lease request for code that was compiled for a device. Any device of its kind that
/// meets the requirements fits.
pub(crate) fn need(job: &ActiveOrder<'_>, device: &DeviceInfo, order: &Requirements) -> LeaseNeeds {
    let (target, owner) = (Some(device.target), job.owner());
    LeaseNeeds { target, order: order.clone(), owner, ..LeaseNeeds::default() }
}

/// Returns the lease request for a request that was compiled for a device. If content of the
/// request is on a device, only that device fits.
pub(crate) fn need_of(
    job: &ActiveOrder<'_>,
    device: &DeviceInfo,
    request: &EvaluateRequest,
) -> LeaseNeeds {
    LeaseNeeds { device: request.device_of_content(), ..need(job, device, &request.requires) }
}

/// Returns the state of a GPU in the form of the API.
fn device_reading(last: &LastReading) -> DeviceReading {
    let GpuReading { health, settings } = &last.reading;
    let since = last.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    DeviceReading {
        at: since.as_secs_f64(),
        occasion: match last.after_launches {
            true => ReadingOccasion::Evaluation,
            false => ReadingOccasion::Start,
        },
        sm_clock_mhz: health.sm_clock_mhz,
        max_sm_clock_mhz: settings.max_sm_clock_mhz,
        memory_clock_mhz: health.memory_clock_mhz,
        max_memory_clock_mhz: settings.max_memory_clock_mhz,
        power_w: health.power_w,
        power_limit_w: settings.power_limit_w,
        temperature_c: health.temperature_c,
        throttle_reasons: health.throttle_reasons.map(throttle_reasons),
    }
}
