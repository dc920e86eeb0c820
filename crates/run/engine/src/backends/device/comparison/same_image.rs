//! A candidate that is the reference: its image, with the reference's launch.

use super::Built;
use crate::prepare::CompileOutcome;
use warpgauge_contract::{Candidate, CompareRequest, KernelCode};

/// Whether there is nothing to measure: one candidate, which is the reference's image with the
/// reference's launch. What does not compile is not; its evaluation will say why.
pub(super) fn is_same_image(
    request: &CompareRequest,
    candidates: &[(usize, Candidate)],
    built: &[Built],
) -> bool {
    let ([(_, candidate)], [a, b]) = (candidates, built) else { return false };
    let launch = |kernel: &KernelCode| {
        let launch = kernel.io.as_ref().map(|io| &io.launch);
        serde_json::to_value(launch).ok()
    };
    let (reference, candidate) = (&request.ref_kernel, &candidate.kernel);
    if request.measure_identical
        || launch(reference).is_none()
        || launch(reference) != launch(candidate)
    {
        return false;
    }
    match (&a.compiled, &b.compiled) {
        (CompileOutcome::Compiled(a), CompileOutcome::Compiled(b)) => {
            a.candidate.same_image(&b.candidate)
        }
        _ => false,
    }
}

/// Launches of kernels that are run for their outputs alone.
const UNMEASURED_TRIALS: u32 = 3;

/// The comparison without effort spent on times.
pub(super) fn unmeasured(mut request: CompareRequest) -> CompareRequest {
    request.num_trials = Some(UNMEASURED_TRIALS);
    request.measure.min_warmup_time = Some(0.0);
    request
}

/// Why a candidate that is the reference is not compared with it.
pub(super) const NOTHING_TO_MEASURE: &str =
    "its image and its launch are the reference's: there is nothing to measure";
