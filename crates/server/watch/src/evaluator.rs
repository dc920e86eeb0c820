//! Who evaluates.

use warpgauge_contract::{CompileRequest, EvaluateRequest};
use warpgauge_report::{CompileResponse, EvaluateResponse};

/// Has kernels evaluated, from several threads at once.
pub trait Evaluator: Sync {
    /// Evaluates. The same key again is the same evaluation again: it is not made twice.
    ///
    /// # Errors
    /// [`EvaluatorError::Refused`] ends the matter; after [`EvaluatorError::Again`] the same is asked again later.
    fn evaluate(
        &self,
        request: &EvaluateRequest,
        key: &str,
    ) -> Result<EvaluateResponse, EvaluatorError>;

    /// Compiles, for the parameters of a kernel.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    fn compile(&self, request: &CompileRequest) -> Result<CompileResponse, EvaluatorError>;
}

/// Why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluatorError {
    /// There will be none.
    #[error("{0}")]
    Refused(FileRejection),
    /// There may be one later: the service is full, or away.
    #[error("{0}")]
    Again(String),
    /// Whoever watched goes.
    #[error("stopped")]
    Stopped,
}

/// Code of a refusal because nobody has what a request requires: a device, a tool, a language.
pub const UNMET: &str = "requirements_unmet";

/// Why a file is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FileRejection {
    /// For programs.
    pub code: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl FileRejection {
    /// A refusal.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

impl From<FileRejection> for EvaluatorError {
    fn from(refusal: FileRejection) -> Self {
        Self::Refused(refusal)
    }
}
