//! Chooses a configuration for each kernel of a comparison that has several configurations.

use std::time::Instant;

use crate::backend::{Contest, REFERENCE_PATH, placed};
use crate::backends::device::DeviceBackend;
use crate::backends::device::tuning::choose;
use crate::clock::ms;
use crate::error::ExecError;
use crate::progress::ActiveOrder;
use warpgauge_model::DeviceInfo;
use warpgauge_report::TuningReport;

/// How the configuration of one kernel was chosen.
pub(super) struct Tuning {
    /// `None` if the kernel has only one configuration.
    pub(super) report: Option<TuningReport>,
    /// Time spent to find out that the kernel has only one configuration, in milliseconds. It
    /// counts as compile time. Zero if a choice was made.
    pub(super) compile_ms: f64,
}

impl Tuning {
    fn new(report: Option<TuningReport>, began: Instant) -> Self {
        let compile_ms = if report.is_none() { ms(began) } else { 0.0 };
        Self { report, compile_ms }
    }
}

/// Chooses a configuration of each kernel that has several. The reference comes first, because the
/// candidates must compute its outputs. Returns the contest with the choices, and the tunings with
/// the reference's first.
pub(super) async fn choose_all(
    backend: &DeviceBackend,
    job: &ActiveOrder<'_>,
    mut contest: Contest,
    device: &DeviceInfo,
) -> Result<(Contest, Vec<Tuning>), ExecError> {
    let request = &mut contest.request;
    let began = Instant::now();
    let mut evaluation = request.evaluation_of(&request.ref_kernel);
    let reference = backend.tuned(job, &mut evaluation, device).await;
    let reference = reference.map_err(|error| placed(error, REFERENCE_PATH))?;
    if let Some(tuning) = &reference {
        choose(&mut request.ref_kernel, tuning.chosen);
    }
    let mut tunings = vec![Tuning::new(reference, began)];
    for (index, candidate) in contest.candidates() {
        let began = Instant::now();
        let request = &mut contest.request;
        let mut evaluation = request.evaluation_of(&candidate.kernel);
        let tuning = backend.tuned(job, &mut evaluation, device).await;
        let tuning = tuning.map_err(|error| placed(error, &request.path_of(index)))?;
        let kernel = match &mut request.custom_kernel {
            Some(kernel) => Some(kernel),
            None => request.candidates.get_mut(index).map(|candidate| &mut candidate.kernel),
        };
        if let (Some(kernel), Some(tuning)) = (kernel, &tuning) {
            choose(kernel, tuning.chosen);
        }
        tunings.push(Tuning::new(tuning, began));
    }
    Ok((contest, tunings))
}
