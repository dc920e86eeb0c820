//! Arithmetic expressions in place of kernels: an example of how to add a family
//! (docs/contributing/kernel-type.md). The source is an expression over the contract's integers, as
//! in launch dimensions. `expected.value.text` is its expected value. Only test builds contain this
//! backend.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::backend::{Contest, Evaluator, KernelBackend, Opened, Purpose};
use crate::clock::ms;
use crate::error::ExecError;
use crate::host::Host;
use crate::progress::ActiveOrder;
use crate::reporting::{Additions, assemble, finished};
use warpgauge_contract::expr::{Variable, evaluate};
use warpgauge_contract::{Checked, EvaluateRequest};
use warpgauge_report::{EvaluateResponse, Timings, ToolReport, ValidationStatus};
use warpgauge_validate::{Reason, ReasonCode};

/// Evaluates arithmetic expressions in the server process.
pub(crate) struct ExampleBackend {
    host: Arc<Host>,
}

impl ExampleBackend {
    pub(crate) fn new(host: &Arc<Host>) -> Self {
        Self { host: Arc::clone(host) }
    }
}

impl KernelBackend for ExampleBackend {
    fn tools(&self, _host: &Host) -> Vec<ToolReport> {
        Vec::new()
    }

    fn evaluate<'a>(
        &'a self,
        _evaluator: &'a dyn Evaluator,
        job: &'a ActiveOrder<'_>,
        request: Checked<EvaluateRequest>,
        _purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>> {
        ready(evaluated(&self.host, job, &request)).boxed()
    }

    fn compare<'a>(&'a self, _job: &'a ActiveOrder<'a>, contest: Contest) -> Opened<'a> {
        ready(Err(contest.refused())).boxed()
    }
}

fn evaluated(
    host: &Host,
    job: &ActiveOrder<'_>,
    request: &EvaluateRequest,
) -> Result<EvaluateResponse, ExecError> {
    let arrived = Instant::now();
    let device = host.device_for(&request.requires)?;
    let mut report = assemble::empty(job.id(), request, &device, Timings::default());
    let source = request.kernel.source_code.as_deref().unwrap_or_default();
    match evaluate(source, |variable| value_of(request, variable)) {
        Err(error) => report.kernel_exec_result.compilation_error = Some(error.to_string()),
        Ok(value) => {
            let value = value.to_string();
            let expected = request.expected.get("value").and_then(|one| one.text.as_ref());
            report.kernel_exec_result.compiled = true;
            report.kernel_exec_result.correctness = expected.map(|text| *text == value);
            report.validation.status = match report.kernel_exec_result.correctness {
                Some(true) => ValidationStatus::Passed,
                Some(false) => ValidationStatus::Failed,
                None => ValidationStatus::NotChecked,
            };
            if let Some(text) = expected.filter(|text| **text != value) {
                let message = format!("the value is {value}, but {text} was expected");
                report.kernel_exec_result.validation_error = Some(message.clone());
                report.validation.reasons = vec![Reason::new(ReasonCode::OutputMismatch, message)];
            }
            report.printed = Some(value);
        }
    }
    Ok(finished(report, request.allow_weak, ms(arrived), Additions::default()))
}

/// Returns the value of an integer argument.
fn value_of(request: &EvaluateRequest, variable: Variable<'_>) -> Result<i128, String> {
    let Variable::Scalar(name) = variable else {
        return Err("an example kernel takes only numbers".to_owned());
    };
    let args = request.kernel.io.iter().flat_map(|io| &io.args);
    let mut args = args.filter(|arg| arg.name == name);
    let value = args.next().and_then(|arg| arg.value.as_ref()).and_then(|value| value.as_i64());
    value.map(i128::from).ok_or_else(|| format!("there is no integer `{name}`"))
}
