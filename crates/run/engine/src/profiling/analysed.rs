//! Additional facts about a launch, for the analyses of its metrics.

use crate::prepare::Prepared;
use warpgauge_contract::{ArgKind, EvaluateRequest};
use warpgauge_metrics::{DeviceMetrics, Facts, Timed};
use warpgauge_model::{CacheState, DeviceInfo, DeviceKind};
use warpgauge_report::MeasurementReport;
use warpgauge_statistics::Summary;
use warpgauge_tensor::Dtype;

/// Adds roofline, advice and cross-check to a report's metrics.
pub(crate) fn complete(
    metrics: &mut DeviceMetrics,
    request: &EvaluateRequest,
    device: &DeviceInfo,
    prepared: &Prepared,
    measurement: Option<&MeasurementReport>,
) {
    let inputs = inputs(request);
    let facts = Facts {
        device,
        resources: prepared.artifact.entry_kernel().resources.as_ref(),
        inputs: &inputs,
        timed: timed(device, measurement),
    };
    warpgauge_metrics::analyse(metrics, &facts);
}

/// Adds the analyses for kernels that another program launches. Only the counts of these launches
/// are known.
pub(crate) fn of_several(metrics: &mut DeviceMetrics, device: &DeviceInfo) {
    let facts = Facts { device, resources: None, inputs: &[], timed: Timed::default() };
    warpgauge_metrics::analyse(metrics, &facts);
}

/// Returns the launches' times for the analyses. There are none for the emulated device, whose
/// times are not those of a GPU.
fn timed(device: &DeviceInfo, measurement: Option<&MeasurementReport>) -> Timed {
    let Some(report) = measurement.filter(|_| device.kind == DeviceKind::Cuda) else {
        return Timed::default();
    };
    let median = |summary: &Summary| summary.median * 1e-3;
    Timed {
        median_s: report.summary.as_ref().map(median),
        clock_hz: report.sm_clock.map(|clock| clock.mean_hz),
        empty_launch_s: report.empty_launch_ms.map(|ms| ms * 1e-3),
        cold: report.cache == CacheState::Cold,
    }
}

fn inputs(request: &EvaluateRequest) -> Vec<Dtype> {
    let args = request.kernel.io.as_ref().map_or(&[][..], |io| &io.args);
    let read = args.iter().filter(|arg| arg.kind == ArgKind::Tensor && arg.is_read());
    read.filter_map(|arg| Some(arg.tensor_spec.as_ref()?.dtype)).collect()
}
