//! Kernels of a comparison that have several configurations: one of each is compared.

use std::time::Instant;

use super::faults::{REFERENCE_PATH, placed};
use crate::error::ExecError;
use crate::local::LocalExecutor;
use crate::progress::ActiveOrder;
use crate::run::ms;
use crate::tune::choose;
use warpgauge_contract::CompareRequest;
use warpgauge_model::DeviceInfo;
use warpgauge_report::{CompareResponse, TuningReport};

/// How the configurations were chosen, of the kernels that have several.
pub(super) struct Tunings {
    reference: Option<TuningReport>,
    candidates: Vec<Option<TuningReport>>,
    /// Time that each kernel, the reference first, took to be compiled, as far as that was seen already;
    /// milliseconds.
    pub(super) compiled_ms: Vec<f64>,
}

impl Tunings {
    /// Adds them to the evaluations of their kernels.
    pub(super) fn put_into(self, response: &mut CompareResponse) {
        if let Some(tuning) = self.reference {
            tuning.put_into(&mut response.reference);
        }
        for (report, tuning) in response.candidates.iter_mut().zip(self.candidates) {
            if let Some(tuning) = tuning {
                tuning.put_into(&mut report.evaluation);
            }
        }
    }
}

impl LocalExecutor {
    /// Chooses a configuration of each kernel that has several: of the reference first, since it says
    /// what the others must compute.
    pub(super) async fn tune_all(
        &self,
        job: &ActiveOrder<'_>,
        request: &mut CompareRequest,
        device: &DeviceInfo,
    ) -> Result<Tunings, ExecError> {
        let mut began = Instant::now();
        let mut took = |tuning: &Option<TuningReport>| {
            let own = if tuning.is_none() { ms(began) } else { 0.0 };
            began = Instant::now();
            own
        };
        let mut evaluation = request.evaluation_of(&request.ref_kernel);
        let reference = self.tuned(job, &mut evaluation, device).await;
        let reference = reference.map_err(|error| placed(error, REFERENCE_PATH))?;
        if let Some(tuning) = &reference {
            choose(&mut request.ref_kernel, tuning.chosen);
        }
        let mut compiled_ms = vec![took(&reference)];
        let mut candidates = Vec::new();
        for (index, candidate) in request.named_candidates().iter().enumerate() {
            let mut evaluation = request.evaluation_of(&candidate.kernel);
            let tuning = self.tuned(job, &mut evaluation, device).await;
            let tuning = tuning.map_err(|error| placed(error, &request.path_of(index)))?;
            let kernel = match &mut request.custom_kernel {
                Some(kernel) => Some(kernel),
                None => request.candidates.get_mut(index).map(|candidate| &mut candidate.kernel),
            };
            if let (Some(kernel), Some(tuning)) = (kernel, &tuning) {
                choose(kernel, tuning.chosen);
            }
            compiled_ms.push(took(&tuning));
            candidates.push(tuning);
        }
        Ok(Tunings { reference, candidates, compiled_ms })
    }
}
