//! The seam between what evaluates and compares kernels and the [backends](crate::backends), one for each
//! family.

use futures_util::future::BoxFuture;

use crate::error::ExecError;
use crate::host::Host;
use crate::progress::ActiveOrder;
use warpgauge_contract::{Checked, EvaluateRequest};
use warpgauge_report::{EvaluateResponse, ToolReport};

pub(crate) mod decision;
mod faults;
mod session;

pub(crate) use faults::{REFERENCE_PATH, placed, unusable_reference};
pub(crate) use session::{Compared, ComparisonSession, Conclusion, Contest, different_clocks};

/// What an evaluation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Verdict and times.
    Evaluate,
    /// Verdict and times, and on the emulated device the counts that stand for times where kernels
    /// are ranked.
    Rank,
    /// One untimed run for its outputs.
    Execute,
}

/// A session of a comparison.
pub(crate) type Opened<'a> =
    BoxFuture<'a, Result<Box<dyn ComparisonSession + Send + 'a>, ExecError>>;

/// Evaluates kernels of all families.
pub(crate) trait Evaluator: Sync {
    /// Takes one evaluation to its report, or reports what is wrong with the request.
    fn evaluate<'a>(
        &'a self,
        job: &'a ActiveOrder<'_>,
        request: EvaluateRequest,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>>;
}

/// Runs kernels of one family.
///
/// A backend runs a checked request and reports, says what it needs beside a device, and opens
/// comparisons whose reference is of its family. Nothing else in this crate distinguishes kernels by what
/// runs them.
pub(crate) trait KernelBackend: Send + Sync {
    /// What its kernels need beside a device, each named as the kernel type that needs it.
    fn tools(&self, host: &Host) -> Vec<ToolReport>;

    /// Takes one evaluation to its report. `evaluator` evaluates what the kernel is checked against where
    /// that is of another family.
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
