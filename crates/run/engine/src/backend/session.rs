//! What a backend contributes to a comparison.

use futures_util::future::BoxFuture;

use crate::error::{self, ExecError};
use warpgauge_code::listing::CodeDiff;
use warpgauge_contract::{Candidate, Checked, CompareRequest, check_comparable};
use warpgauge_model::DeviceKind;
use warpgauge_report::{CountComparison, EvaluateResponse, VerdictBy};
use warpgauge_statistics::paired::{PairedComparison, Ranking};
use warpgauge_statistics::{CountedComparison, CountedRank};

/// What one session compares.
pub(crate) struct Contest {
    pub(crate) request: CompareRequest,
    /// Indices of the candidates that have the reference's runtime, among all.
    pub(crate) own: Vec<usize>,
}

impl Contest {
    /// The contest of a request that was checked, among these candidates of it.
    pub(crate) fn new(request: &Checked<CompareRequest>, own: Vec<usize>) -> Self {
        Self { request: CompareRequest::clone(request), own }
    }

    /// The candidates of the session, by their indices among all.
    pub(crate) fn candidates(&self) -> Vec<(usize, Candidate)> {
        let all = self.request.named_candidates().into_iter().enumerate();
        all.filter(|(index, _)| self.own.contains(index)).collect()
    }
}

impl Contest {
    /// Why a backend whose kernels nothing times opens no session.
    pub(crate) fn refused(&self) -> ExecError {
        let reference = self.request.evaluation_of(&self.request.ref_kernel);
        check_comparable(&reference).map_or_else(error::invalid, |()| {
            error::internal("comparing", &std::io::Error::other("nothing times such a kernel"))
        })
    }
}

/// Kernels of one runtime that are compared by one clock.
pub(crate) trait ComparisonSession {
    /// Evaluates the reference by itself.
    fn reference(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>>;

    /// Evaluates the session's next candidate against the reference, which has usable times.
    fn next_candidate(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>>;

    /// Decides how the candidates compare with the reference. `reports` has the reference's report first,
    /// and those of the candidates in their order.
    fn conclude<'a>(
        self: Box<Self>,
        reports: &'a [EvaluateResponse],
    ) -> BoxFuture<'a, Result<Conclusion, ExecError>>
    where
        Self: 'a;
}

/// How the candidates of a session compare with the reference.
pub(crate) struct Conclusion {
    /// Wall time that the session waited for its device, milliseconds.
    pub(crate) queue_ms: f64,
    pub(crate) verdict_by: VerdictBy,
    /// In the order of the candidates.
    pub(crate) compared: Vec<Compared>,
    /// By indices of all kernels of the request, the reference's is 0.
    pub(crate) ranking: Option<Ranking>,
    pub(crate) counted_ranking: Vec<CountedRank>,
}

/// How one candidate compares with the reference.
pub(crate) struct Compared {
    /// Its time beside the reference's, or why that says nothing.
    pub(crate) comparison: Result<PairedComparison, String>,
    /// Whether image and launch are the reference's.
    pub(crate) same_image: bool,
    pub(crate) identical_code: Option<bool>,
    pub(crate) counted: Option<CountedComparison>,
    pub(crate) counts: Vec<CountComparison>,
    /// How its code differs, or why that is unknown; `None`: it does not.
    pub(crate) code_diff: Option<Result<CodeDiff, String>>,
}

impl Compared {
    /// A candidate of which no more is known.
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

/// Why neither of two kernels that different clocks timed, or the CPU's, is called faster.
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
        return format!("both ran on {one}, whose times rank nothing: both are in the reports");
    }
    format!(
        "the reference ran on {one} and this one on {other}: times of different clocks are never compared, \
         and are in the reports of each; whether it is right is said"
    )
}
