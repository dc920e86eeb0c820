//! The interface of the service that evaluates kernels. The main type is [`Evaluator`].

use warpgauge_contract::{CompileRequest, EvaluateRequest};
use warpgauge_report::{CompileResponse, EvaluateResponse};

/// Evaluates kernels, from several threads at once.
pub trait Evaluator: Sync {
    /// Evaluates a request. A second call with the same key returns the same evaluation, without a
    /// further run.
    ///
    /// # Errors
    /// [`EvaluatorError::Refused`] is final; after [`EvaluatorError::Again`] the caller may retry
    /// later.
    fn evaluate(
        &self,
        request: &EvaluateRequest,
        key: &str,
    ) -> Result<EvaluateResponse, EvaluatorError>;

    /// Compiles a kernel, to find its parameters.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    fn compile(&self, request: &CompileRequest) -> Result<CompileResponse, EvaluatorError>;
}

/// Reasons why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluatorError {
    /// The refusal is final.
    #[error("{0}")]
    Refused(FileRejection),
    /// A retry may succeed: the service is full or unreachable.
    #[error("{0}")]
    Again(String),
    /// The watcher stops.
    #[error("stopped")]
    Stopped,
}

/// Code of a refusal because no server meets the requirements of a request: a device, a tool, a
/// language.
pub const UNMET: &str = "requirements_unmet";

/// Reasons why a file is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FileRejection {
    /// Code for programs.
    pub code: String,
    /// Description of the problem, with a remedy.
    pub message: String,
}

impl FileRejection {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

impl From<FileRejection> for EvaluatorError {
    fn from(refusal: FileRejection) -> Self {
        Self::Refused(refusal)
    }
}
