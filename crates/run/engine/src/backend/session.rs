//! Sessions of comparisons, which backends implement. The main trait is [`ComparisonSession`].

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::error::{self, ExecError};
use warpgauge_code::listing::CodeDiff;
use warpgauge_contract::{Candidate, Checked, CompareRequest, check_comparable};
use warpgauge_model::DeviceKind;
use warpgauge_report::{CountComparison, EvaluateResponse, VerdictBy};
use warpgauge_statistics::paired::{PairedComparison, Ranking};
use warpgauge_statistics::{CountedComparison, CountedRank};

/// The kernels that one session compares.
pub(crate) struct Contest {
    pub(crate) request: CompareRequest,
    /// Indices of the candidates that run in the reference's runtime, among all candidates of the
    /// request.
    pub(crate) own: Vec<usize>,
}

impl Contest {
    /// Creates the contest of a validated request, with the candidates at the indices `own`.
    pub(crate) fn new(request: &Checked<CompareRequest>, own: Vec<usize>) -> Self {
        Self { request: CompareRequest::clone(request), own }
    }

    /// Returns the candidates of the session with their indices among all candidates.
    pub(crate) fn candidates(&self) -> Vec<(usize, Candidate)> {
        let all = self.request.named_candidates().into_iter().enumerate();
        all.filter(|(index, _)| self.own.contains(index)).collect()
    }
}

impl Contest {
    /// Returns the error of a backend that cannot compare its kernels, because it does not time
    /// them.
    pub(crate) fn refused(&self) -> ExecError {
        let reference = self.request.evaluation_of(&self.request.ref_kernel);
        check_comparable(&reference).map_or_else(error::invalid, |()| {
            error::internal(
                "comparing",
                &std::io::Error::other("kernels of this type are not timed"),
            )
        })
    }
}

/// A session that compares kernels of one runtime, timed by one clock.
pub(crate) trait ComparisonSession {
    /// Evaluates the reference kernel without a candidate.
    fn reference(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>>;

    /// Evaluates the session's next candidate against the reference. The reference must have usable
    /// times.
    fn next_candidate(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>>;

    /// Decides how the candidates compare with the reference. `reports` contains the reference's
    /// report, followed by those of the candidates in order.
    fn conclude<'a>(
        self: Box<Self>,
        reports: &'a [EvaluateResponse],
    ) -> BoxFuture<'a, Result<Conclusion, ExecError>>
    where
        Self: 'a;
}

/// A session whose reference does not compile. It contains the reference's report, and leases no
/// device.
pub(crate) struct NotCompiled(pub(crate) EvaluateResponse);

impl ComparisonSession for NotCompiled {
    fn reference(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>> {
        ready(Ok(self.0.clone())).boxed()
    }

    fn next_candidate(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>> {
        ready(Err(nothing_to_compare_with())).boxed()
    }

    fn conclude<'a>(
        self: Box<Self>,
        _: &'a [EvaluateResponse],
    ) -> BoxFuture<'a, Result<Conclusion, ExecError>>
    where
        Self: 'a,
    {
        ready(Err(nothing_to_compare_with())).boxed()
    }
}

fn nothing_to_compare_with() -> ExecError {
    let error = std::io::Error::other("the reference does not compile");
    error::internal("comparing kernels", &error)
}

/// Result of comparing the candidates of a session with the reference.
pub(crate) struct Conclusion {
    /// Wall time that the session waited for its device, in milliseconds.
    pub(crate) queue_ms: f64,
    pub(crate) verdict_by: VerdictBy,
    /// Results in the order of the candidates.
    pub(crate) compared: Vec<Compared>,
    /// Ranking by indices among all kernels of the request, where the reference is 0.
    pub(crate) ranking: Option<Ranking>,
    pub(crate) counted_ranking: Vec<CountedRank>,
}

/// Result of comparing one candidate with the reference.
pub(crate) struct Compared {
    /// Comparison of the candidate's times with the reference's, or the reason why there is none.
    pub(crate) comparison: Result<PairedComparison, String>,
    /// Whether the candidate has the same image and launch as the reference.
    pub(crate) same_image: bool,
    pub(crate) identical_code: Option<bool>,
    pub(crate) counted: Option<CountedComparison>,
    pub(crate) counts: Vec<CountComparison>,
    /// Difference between the candidate's code and the reference's, or the reason why it is
    /// unknown. `None` if the codes are equal or were not compared.
    pub(crate) code_diff: Option<Result<CodeDiff, String>>,
}

impl Compared {
    /// Creates the result of a candidate of which only the times were compared.
    pub(crate) fn of(comparison: Result<PairedComparison, String>) -> Self {
        Self {
            comparison,
            same_image: false,
            identical_code: None,
            counted: None,
            counts: Vec::new(),
            code_diff: None,
        }
    }
}

/// Returns the reason why two kernels are not ranked. Different clocks timed them, or their device
/// has no comparable times.
pub(crate) fn different_clocks(
    reference: &EvaluateResponse,
    candidate: &EvaluateResponse,
) -> String {
    let place = |report: &EvaluateResponse| match report.device.as_ref().map(|device| device.kind) {
        None => "the CPU",
        Some(DeviceKind::Emulator) => "the emulated device",
        Some(DeviceKind::Cuda) => "a GPU",
    };
    let (one, other) = (place(reference), place(candidate));
    if one == other {
        return format!("both ran on {one}, whose times are not ranked: the reports contain both");
    }
    format!(
        "the reference ran on {one} and this kernel on {other}: times of different clocks are never \
         compared; each report contains its own times, and the candidate's report its correctness"
    )
}
