//! The interface between the engine's operations and the [backends](crate::backends), one for each
//! family of kernels. The main type is [`KernelBackend`].

use futures_util::future::BoxFuture;

use crate::error::ExecError;
use crate::host::Host;
use crate::progress::ActiveOrder;
use warpgauge_contract::{Checked, EvaluateRequest};
use warpgauge_report::{EvaluateResponse, ToolReport};

pub(crate) mod decision;
mod faults;
mod session;

pub(crate) use faults::{REFERENCE_PATH, broken_reference, placed, unusable_reference};
pub(crate) use session::{
    Compared, ComparisonSession, Conclusion, Contest, NotCompiled, different_clocks,
};

/// The purpose for which a kernel is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The report contains a verdict and times.
    Evaluate,
    /// The report contains a verdict and times. On the emulated device it also contains counts,
    /// which replace times in the ranking of kernels.
    Rank,
    /// The kernel runs once, untimed, for its outputs.
    Execute,
}

/// Future that opens a comparison session.
pub(crate) type Opened<'a> =
    BoxFuture<'a, Result<Box<dyn ComparisonSession + Send + 'a>, ExecError>>;

/// Evaluates kernels of all families.
pub(crate) trait Evaluator: Sync {
    /// Runs one evaluation and returns its report, or the problems of the request.
    fn evaluate<'a>(
        &'a self,
        job: &'a ActiveOrder<'_>,
        request: EvaluateRequest,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>>;
}

/// Runs kernels of one family.
///
/// A backend evaluates a validated request, reports the tools that its kernels need in addition to
/// a device, and opens comparisons whose reference belongs to its family.
pub(crate) trait KernelBackend: Send + Sync {
    /// Returns the tools that kernels of this family need in addition to a device, each named after
    /// the kernel type that needs it.
    fn tools(&self, host: &Host) -> Vec<ToolReport>;

    /// Runs one evaluation and returns its report. If the expected outputs come from a kernel of
    /// another family, `evaluator` runs that kernel.
    fn evaluate<'a>(
        &'a self,
        evaluator: &'a dyn Evaluator,
        job: &'a ActiveOrder<'_>,
        request: Checked<EvaluateRequest>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>>;

    /// Opens a comparison with a reference of this family.
    fn compare<'a>(&'a self, job: &'a ActiveOrder<'a>, contest: Contest) -> Opened<'a>;
}
