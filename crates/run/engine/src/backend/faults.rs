//! Errors of comparisons: which kernel caused them, and its path in the request.

use crate::error::{ExecError, Problem};
use warpgauge_model::FailureCode;
use warpgauge_report::{EvaluateResponse, KernelVerdict};

/// Path of the reference kernel in a request.
pub(crate) const REFERENCE_PATH: &str = "ref_kernel";

/// Converts the problems of an evaluation to problems of its comparison. Paths of the evaluated
/// kernel become paths of `kernel`, and paths in `expected` become paths of the reference.
pub(crate) fn placed(error: ExecError, kernel: &str) -> ExecError {
    let ExecError::Invalid(problems) = error else { return error };
    let moved = problems.into_iter().map(|problem| {
        let rest = problem.path.strip_prefix("kernel");
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        let path = match rest {
            Some(rest) => format!("{kernel}{rest}"),
            None if problem.path.starts_with("expected.") => {
                let rest = problem.path.split_once(".kernel").map_or("", |(_, rest)| rest);
                format!("{REFERENCE_PATH}{rest}")
            }
            None => problem.path,
        };
        Problem { path, ..problem }
    });
    ExecError::Invalid(moved.collect())
}

/// Returns the error for a reference without usable times. The request is invalid, unless the
/// reference could not be run on this machine.
pub(crate) fn unusable_reference(report: &EvaluateResponse) -> ExecError {
    if let Some(broken) = broken_reference(report) {
        return ExecError::Invalid(vec![broken]);
    }
    let why = why_unusable(report);
    if report.kernel_verdict() == KernelVerdict::Error {
        return ExecError::Unavailable(format!("the reference kernel could not be run: {why}"));
    }
    ExecError::Invalid(vec![Problem {
        path: REFERENCE_PATH.to_owned(),
        code: FailureCode::ReferenceNotTimed,
        message: format!("nothing can be compared with the reference kernel: {why}"),
    }])
}

/// Returns the problem of a reference that does not compile, fails or is wrong; otherwise returns
/// `None`.
pub(crate) fn broken_reference(report: &EvaluateResponse) -> Option<Problem> {
    let (code, what) = match report.kernel_verdict() {
        KernelVerdict::NotCompiled => {
            (FailureCode::ReferenceNotCompiled, "the reference kernel does not compile")
        }
        KernelVerdict::Wrong | KernelVerdict::Failed => {
            (FailureCode::ReferenceFailed, "nothing can be compared with the reference kernel")
        }
        KernelVerdict::Correct
        | KernelVerdict::NotChecked
        | KernelVerdict::Weak
        | KernelVerdict::Error => return None,
    };
    let message = format!("{what}: {}", why_unusable(report));
    Some(Problem { path: REFERENCE_PATH.to_owned(), code, message })
}

fn why_unusable(report: &EvaluateResponse) -> &str {
    let result = &report.kernel_exec_result;
    let why = result.compilation_error.as_ref().or(result.validation_error.as_ref());
    let why = why.or(report.failure.as_ref().map(|failure| &failure.message));
    why.map_or("it has no usable times", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_stand_where_the_comparison_has_them() {
        let at = |path: &str, kernel: &str| {
            let problem = Problem {
                path: path.to_owned(),
                code: FailureCode::ArgumentType,
                message: "m".to_owned(),
            };
            match placed(ExecError::Invalid(vec![problem]), kernel) {
                ExecError::Invalid(problems) => problems[0].path.clone(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(at("kernel", REFERENCE_PATH), "ref_kernel");
        assert_eq!(at("kernel.io.args[2]", "custom_kernel"), "custom_kernel.io.args[2]");
        assert_eq!(at("kernel.io", "candidates[1].kernel"), "candidates[1].kernel.io");
        assert_eq!(at("expected.c.kernel.io.launch", "custom_kernel"), "ref_kernel.io.launch");
        assert_eq!(at("expected.c.kernel", "custom_kernel"), "ref_kernel");
        assert_eq!(at("timeout", "custom_kernel"), "timeout");
    }
}
