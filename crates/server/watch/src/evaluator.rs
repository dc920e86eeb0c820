//! The interface to the service that evaluates kernels. The main type is [`Evaluator`].

use warpgauge_contract::{CompileRequest, EvaluateRequest};
use warpgauge_report::{CompileResponse, EvaluateResponse};

/// Evaluates kernels. Several threads may call it at the same time.
pub trait Evaluator: Sync {
    /// Evaluates a request. A second call with the same key returns the same evaluation, without
    /// running the kernel again.
    ///
    /// # Errors
    /// [`EvaluatorError::Refused`] is final. After [`EvaluatorError::Again`], the caller may retry
    /// later.
    fn evaluate(
        &self,
        request: &EvaluateRequest,
        key: &str,
    ) -> Result<EvaluateResponse, EvaluatorError>;

    /// Compiles a kernel in order to find its parameters.
    ///
    /// # Errors
    /// The errors of [`Evaluator::evaluate`].
    fn compile(&self, request: &CompileRequest) -> Result<CompileResponse, EvaluatorError>;
}

/// Reasons why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluatorError {
    /// The request was rejected. A retry would not succeed.
    #[error("{0}")]
    Refused(FileRejection),
    /// A retry may succeed, because the service is full or unreachable.
    #[error("{0}")]
    Again(String),
    /// The watcher is stopping.
    #[error("stopped")]
    Stopped,
}

/// Error code if no server meets the requirements of a request, such as a device, a tool or a
/// programming language.
pub const UNMET: &str = "requirements_unmet";

/// Reason why a file is not evaluated.
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
