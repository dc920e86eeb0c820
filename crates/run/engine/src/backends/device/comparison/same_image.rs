//! Detects a candidate that equals the reference: the same image with the same launch.

use super::Built;
use crate::prepare::CompileOutcome;
use warpgauge_contract::{Candidate, CompareRequest, KernelCode};

/// Returns whether there is nothing to measure, because the only candidate has the reference's
/// image and launch. Returns false if a kernel does not compile, which its evaluation will report.
/// Returns false, too, if the request asks for identical kernels to be measured.
pub(super) fn is_same_image(
    request: &CompareRequest,
    candidates: &[(usize, Candidate)],
    built: &[Built],
) -> bool {
    let ([(_, candidate)], [a, b]) = (candidates, built) else { return false };
    let launch = |kernel: &KernelCode| {
        let launch = kernel.io.as_ref().map(|io| &io.launch);
        serde_json::to_value((launch, &kernel.launches, &kernel.setup)).ok()
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

/// Number of timed launches in a comparison that needs no times.
const UNMEASURED_TRIALS: u32 = 3;

/// Reduces the timed launches of a comparison that needs no times.
pub(super) fn unmeasured(mut request: CompareRequest) -> CompareRequest {
    request.num_trials = Some(UNMEASURED_TRIALS);
    request.measure.min_warmup_time = Some(0.0);
    request
}

/// The reason why a candidate that equals the reference is not measured.
pub(super) const NOTHING_TO_MEASURE: &str =
    "its image and its launch are identical to the reference's: there is nothing to measure";
