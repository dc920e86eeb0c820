//! Comparison of an output with its expectation. It includes the check that the kernel and the
//! reference wrote the whole output.

use super::expectations::Expected;
use super::oracle::unknown;
use super::verdicts::LeftOutputs;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::buffers::{JobBuffer, bytes_of};
use crate::protocol::{Blame, BufferSpec, Checks};
use warpgauge_device::MappedFile;
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Dtype, shape};
use warpgauge_validate::{
    Comparison, Expectation, FillTrace, Filling, Reason, ReasonCode, ResolvedTolerance,
    UnwrittenElements,
};

/// Maximum absolute tolerance that still exposes an unwritten floating-point element. It is far
/// below the finite fillings of the types for which one unwritten element is proof.
const FAR: f64 = 1e30;

/// Compares one output of a launch with its expectation, using the tolerance and the error bounds
/// of the checks.
pub(crate) fn compare_output(
    checks: &Checks,
    buffers: &[JobBuffer<'_>],
    buffer: usize,
    (actual, filling): LeftOutputs<'_>,
    expected: &Expected,
) -> JobResult<(Comparison, FillTrace)> {
    let actual = actual.iter().find(|(index, _)| *index == buffer);
    let (Some(tolerance), Some((_, actual)), Some(compared)) =
        (checks.tolerances.of(buffer), actual, buffers.get(buffer))
    else {
        return Err(unknown(buffer));
    };
    let bounds = bounds(checks, compared, buffer)?;
    let bounds = bounds.as_ref().map(MappedFile::bytes);
    let left = (actual.bytes(), filling);
    let (comparison, trace) = compare(compared, tolerance, left, (expected.bytes(), bounds));
    let dtype = compared.spec.dtype;
    // This search takes as long as the comparison, so it runs only if it may find something.
    let may_lack = comparison.matched < comparison.elements
        || comparison.non_finite_matched > 0
        || !would_show(dtype, tolerance);
    if let Expected::Computed(content, filling) = expected
        && may_lack
        && compared.is_poisoned()
        && let Some(left) = filling.left_in(dtype, content.bytes())
    {
        return Err(reference_leaves(compared.spec, left));
    }
    Ok((comparison, trace))
}

/// Returns the error bounds of an output's elements, or `None` if the checks have none.
fn bounds(
    checks: &Checks,
    compared: &JobBuffer<'_>,
    buffer: usize,
) -> JobResult<Option<MappedFile>> {
    let found = checks.bounds.iter().find(|(index, _)| *index == buffer);
    let Some((_, path)) = found else { return Ok(None) };
    let spec = compared.spec;
    // The output was allocated, so its size is valid and the product does not overflow.
    let elements = bytes_of(spec)? / (spec.dtype.size() as u64).max(1);
    let file = MappedFile::open(path, elements.saturating_mul(8)).map_err(|error| {
        let text = format!("cannot read the error bounds of {}: {error}", spec.name);
        Failed::new(FailureCode::ExpectedUnreadable, text, Blame::Environment)
    })?;
    Ok(Some(file))
}

/// Compares an output with its expectation. Returns the comparison, and the trace that the output's
/// filling left.
pub(crate) fn compare(
    output: &JobBuffer<'_>,
    tolerance: &ResolvedTolerance,
    (actual, filling): (&[u8], Filling),
    (expected, bounds): (&[u8], Option<&[u8]>),
) -> (Comparison, FillTrace) {
    let filling = output.is_poisoned().then_some(filling);
    let (dtype, shape) = (output.spec.dtype, &output.spec.shape);
    let expected = Expectation { elements: expected, bounds };
    warpgauge_validate::compare_traced(dtype, shape, actual, expected, filling, tolerance)
}

/// Returns whether a comparison of finite elements would detect an element that a reference never
/// wrote. It does if no accepted value is near the filling.
fn would_show(dtype: Dtype, tolerance: &ResolvedTolerance) -> bool {
    let near = if dtype.is_float() {
        tolerance.rtol >= 1.0 || tolerance.atol > FAR
    } else {
        tolerance.atol > 0.0 || tolerance.rtol > 0.0
    };
    !near
}

/// Returns the failure of a reference that does not write all expected elements.
fn reference_leaves(output: &BufferSpec, left: UnwrittenElements) -> Failed {
    let elements = output.shape.iter().product::<u64>();
    let index = shape::shown(&shape::unravel(left.first, &output.shape));
    let text = format!(
        "the reference kernel never writes {} of {elements} elements of `{}`, the first at {index}: \
         these have no expected value; check its bounds and its launch, or make the output `inout` \
         if it adds to existing values",
        left.count, output.name
    );
    Failed::new(FailureCode::OutputUnwritten, text, Blame::Reference)
}

/// Returns the failure of a launch that did not write elements of an output.
pub(crate) fn unwritten(
    output: &str,
    trace: &FillTrace,
    comparison: &Comparison,
    launch: &str,
) -> Failed {
    let text = format!(
        "output `{output}`: {} of {} elements were never written ({launch}); a kernel must write \
         every element in every launch, even if `tolerance` allows mismatches; give an output role \
         `inout` if the kernel must keep some of its elements",
        trace.held, comparison.elements
    );
    Failed::reason(Reason::new(ReasonCode::OutputUnwritten, text))
}
