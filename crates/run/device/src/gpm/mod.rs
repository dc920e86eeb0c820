//! GPU Performance Monitoring (GPM): how busy the parts of a whole GPU were between two readings.
//!
//! Hopper and later GPUs support it. The driver's management library (NVML) reads it for any user,
//! even while another process holds the counters that profilers read. A partition of a GPU (MIG) is
//! read by the number of its instance on the whole GPU.

use nvml_wrapper::enums::gpm::GpmMetricId as Id;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::{Device, GpmSample};

use super::nvml::GpuMonitor;
use warpgauge_model::{Cause, Unavailable};

/// Share of time in which the GPU had any work.
pub const ACTIVITY: &str = "gpm__graphics_util";

/// The metrics that are read, with their names in the catalogue.
const METRICS: [(Id, &str); 12] = [
    (Id::GraphicsUtil, ACTIVITY),
    (Id::SmUtil, "gpm__sm_util"),
    (Id::SmOccupancy, "gpm__sm_occupancy"),
    (Id::IntegerUtil, "gpm__integer_util"),
    (Id::AnyTensorUtil, "gpm__any_tensor_util"),
    (Id::DfmaTensorUtil, "gpm__dfma_tensor_util"),
    (Id::HmmaTensorUtil, "gpm__hmma_tensor_util"),
    (Id::ImmaTensorUtil, "gpm__imma_tensor_util"),
    (Id::DramBwUtil, "gpm__dram_bw_util"),
    (Id::Fp64Util, "gpm__fp64_util"),
    (Id::Fp32Util, "gpm__fp32_util"),
    (Id::Fp16Util, "gpm__fp16_util"),
];

/// Reason why monitoring data could not be read.
#[derive(Debug, thiserror::Error)]
pub enum GpmError {
    /// The GPU does not support GPM.
    #[error("the GPU is older than Hopper or does not support GPM")]
    NoSupport,
    /// The driver's library is older than GPM.
    #[error("NVML has no function to {0}")]
    NoFunction(&'static str),
    /// A call of NVML failed.
    #[error("{operation}: {source}")]
    Call {
        /// The operation that failed, in words.
        operation: &'static str,
        source: NvmlError,
    },
    /// A function of NVML that is called directly failed.
    #[error("{operation}: NVML error {code}")]
    Code {
        /// The operation that failed, in words.
        operation: &'static str,
        code: u32,
    },
}

impl GpmError {
    /// Converts the error to the form of reports.
    pub fn unavailable(&self) -> Unavailable {
        let cause = match self {
            GpmError::NoSupport => Cause::NoMonitoring,
            GpmError::NoFunction(_) => Cause::DriverMismatch,
            GpmError::Call { source, .. } => match source {
                NvmlError::NotSupported => Cause::NoMonitoring,
                NvmlError::NoPermission => Cause::NoPermission,
                NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
                    Cause::DriverMismatch
                }
                _ => Cause::Unknown,
            },
            GpmError::Code { .. } => Cause::Unknown,
        };
        cause.because(format!("NVML: {self}"))
    }
}

fn call(operation: &'static str) -> impl FnOnce(NvmlError) -> GpmError {
    move |source| GpmError::Call { operation, source }
}

/// The device that is monitored: a GPU, or one of its partitions.
struct Monitored<'m> {
    gpu: Device<'m>,
    /// Number of the partition's instance on the whole GPU. `None` for a whole GPU.
    instance: Option<u32>,
}

/// A reading of a GPU's monitoring counters at one moment.
pub struct GpmReading<'m>(GpmSample<'m>);

/// Name of a metric, and its value between two readings in percent, or the reason why the value is
/// unknown.
pub type GpmValue = (&'static str, Result<f64, String>);

impl GpuMonitor {
    /// Checks that the GPU supports monitoring and that this process can read it.
    ///
    /// # Errors
    /// Returns the reason if it cannot.
    pub fn gpm_support(&self) -> Result<(), GpmError> {
        let Monitored { gpu, .. } = self.monitored()?;
        match gpu.gpm_support() {
            Ok(true) => Ok(()),
            Ok(false) => Err(GpmError::NoSupport),
            Err(source) => Err(call("check whether the GPU supports GPM")(source)),
        }
    }

    /// Takes a reading.
    ///
    /// # Errors
    /// Returns NVML's error.
    pub fn gpm_reading(&self) -> Result<GpmReading<'_>, GpmError> {
        let Monitored { gpu, instance } = self.monitored()?;
        let sample = match instance {
            None => gpu.gpm_sample(),
            Some(instance) => gpu.gpm_mig_sample(instance),
        };
        sample.map(GpmReading).map_err(call("read GPM"))
    }

    /// Returns the value of each metric between two readings. `first` must be the earlier reading.
    ///
    /// # Errors
    /// Returns NVML's error.
    pub fn gpm_between(
        &self,
        first: &GpmReading<'_>,
        second: &GpmReading<'_>,
    ) -> Result<Vec<GpmValue>, GpmError> {
        let ids = METRICS.map(|(id, _)| id);
        let found = gpm_metrics_get(self.nvml(), &first.0, &second.0, &ids)
            .map_err(call("evaluate two readings of GPM"))?;
        let value = |((_, name), found): ((Id, &'static str), Result<_, NvmlError>)| {
            let value = match found {
                Ok(nvml_wrapper::struct_wrappers::gpm::GpmMetricResult { value, .. }) => {
                    sane(value)
                }
                Err(error) => Err(format!("NVML: {error}")),
            };
            (name, value)
        };
        Ok(METRICS.into_iter().zip(found).map(value).collect())
    }

    fn monitored(&self) -> Result<Monitored<'_>, GpmError> {
        let gpu = self.gpu().map_err(call("find the GPU"))?;
        // Libraries without support for partitions report none.
        if !gpu.mig_is_mig_device_handle().unwrap_or(false) {
            return Ok(Monitored { gpu, instance: None });
        }
        let instance = Some(instance_of(&gpu)?);
        let whole = gpu.mig_parent_device();
        let gpu = whole.map_err(call("find the GPU of the partition"))?;
        Ok(Monitored { gpu, instance })
    }
}

/// Checks that a value is a percentage. Counters that are not read at the same moment can yield
/// percentages slightly out of range, which are corrected.
fn sane(value: f64) -> Result<f64, String> {
    match value {
        value if !value.is_finite() => Err("it is not a number".to_owned()),
        value if (-1.0..=110.0).contains(&value) => Ok(value.clamp(0.0, 100.0)),
        value => Err(format!("NVML returns {value}, which is not a percentage")),
    }
}

/// Returns the number of a partition's instance on the whole GPU.
fn instance_of(gpu: &Device<'_>) -> Result<u32, GpmError> {
    const OPERATION: &str = "query the instance of a partition";
    let lib = gpu.nvml().lib();
    let function = lib.nvmlDeviceGetGpuInstanceId.as_ref();
    let function = function.map_err(|_| GpmError::NoFunction(OPERATION))?;
    let mut instance = 0;
    // SAFETY: the handle is NVML's own and valid as long as the library, which `gpu` borrows; the
    // function writes one integer.
    let code = unsafe { function(gpu.handle(), &mut instance) };
    if code == 0 { Ok(instance) } else { Err(GpmError::Code { operation: OPERATION, code }) }
}

#[cfg(test)]
mod tests;
