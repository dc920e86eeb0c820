//! Detects a candidate that equals the reference: the same image with the same launch.

use super::Built;
use crate::prepare::CompileOutcome;
use warpgauge_contract::{Candidate, CompareRequest, KernelCode};

/// Whether there is nothing to measure: the only candidate has the reference's image and launch. It is
/// false if a kernel does not compile, which its evaluation will report, or if the request asks to
/// measure identical kernels.
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

/// Timed launches of kernels whose times are not needed.
const UNMEASURED_TRIALS: u32 = 3;

/// Reduces the effort that a comparison spends on times.
pub(super) fn unmeasured(mut request: CompareRequest) -> CompareRequest {
    request.num_trials = Some(UNMEASURED_TRIALS);
    request.measure.min_warmup_time = Some(0.0);
    request
}

/// The reason for not comparing a candidate that equals the reference.
pub(super) const NOTHING_TO_MEASURE: &str =
    "its image and its launch are the reference's: there is nothing to measure";
