//! The gate: runs of suites as jobs, their baselines and their history. The main type is [`Gate`].

mod service;

use std::sync::Arc;

use futures_util::FutureExt;

pub use service::GateService;

use super::error::{ExecError, Problem, ServiceError};
use super::inputs::NamedInputs;
use super::jobs::Intake;
use super::records;
use super::submission::{Caller, JobSubmission, ServiceFuture};
use super::suites::{HistoryQuery, Suites, history_in, invalid, unix_s, within};
use super::tensors::Copies;
use warpgauge_contract::{DecisionSpec, EvaluateRequest};
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{
    Baseline, BaselinePin, BaselineSummary, CalibrationConditions, CasePair, ComparisonSettings,
    GateRequest, NewBaseline, RunEnvironment, SuiteError,
};
use warpgauge_model::{FailureCode, PresetName};
use warpgauge_report::{CompareResponse, ResponseStatus};
use warpgauge_store::Store;

/// Runs suites, and stores their baselines and history.
pub(super) struct Gate {
    intake: Arc<Intake>,
    suites: Arc<Suites>,
    inputs: Arc<NamedInputs>,
    store: Store,
}

impl Gate {
    /// Creates a gate. `intake` accepts its runs as jobs.
    pub(super) fn new(
        intake: Arc<Intake>,
        suites: Arc<Suites>,
        inputs: Arc<NamedInputs>,
        store: Store,
    ) -> Self {
        Self { intake, suites, inputs, store }
    }

    /// Runs each case of a baseline once, and stores the baseline.
    async fn new_baseline(
        &self,
        new: NewBaseline,
        caller: &Caller,
    ) -> Result<BaselineSummary, ServiceError> {
        new.check().map_err(|error| invalid(&error))?;
        let mut new = new;
        let mut left = self.inputs.max_bytes();
        for (index, case) in new.cases.iter_mut().enumerate() {
            let put = self.inputs.evaluation_with(
                case.contract.clone(),
                &caller.owner,
                &mut left,
                Copies::ThroughHost,
            );
            let put = put.await;
            let at = format!("cases[{index}].contract");
            case.contract = put.map_err(|error| within(&at, error))?;
        }
        for (index, case) in new.cases.iter().enumerate() {
            let at = format!("cases[{index}].contract");
            self.suites.check_contract(&case.contract).map_err(|error| within(&at, error))?;
        }
        let mut pin = new.pin;
        for (index, case) in new.cases.iter().enumerate() {
            let at = format!("cases[{index}].contract");
            let ran = self.tried(&case.contract, caller).await;
            let ran = ran.map_err(|error| within(&at, error))?;
            let Some(seen) = RunEnvironment::of_comparison(&ran) else {
                let message =
                    "ran on the CPU, whose times are not comparable: it cannot be gated yet";
                return Err(invalid(&SuiteError::Value { at, message: message.to_owned() }));
            };
            let now = BaselinePin::from(&CalibrationConditions::of(&seen, PresetName::Ci));
            match &pin {
                Some(pin) => pin
                    .check(&now)
                    .map_err(|error| ExecError::ConditionsDiffer(error.to_string()))?,
                None => pin = Some(now),
            }
        }
        let Some(pin) = pin else {
            return Err(invalid(&SuiteError::Value {
                at: "cases".to_owned(),
                message: "is empty".to_owned(),
            }));
        };
        let cases = new.cases.into_iter().map(|case| (case.name, case.contract)).collect();
        let baseline = Baseline {
            name: new.name,
            pin,
            suite: new.suite,
            commit: new.commit,
            promoted_from: None,
            stored_unix_s: unix_s(),
            cases,
        };
        self.suites.baselines().keep(&baseline, caller).await
    }

    /// Compares a contract with itself under the quickest preset, in order to check that it
    /// compiles and runs on this machine.
    async fn tried(
        &self,
        contract: &EvaluateRequest,
        caller: &Caller,
    ) -> Result<CompareResponse, ServiceError> {
        let manner = ComparisonSettings {
            preset: PresetName::Quick,
            decision: DecisionSpec::default(),
            fresh: false,
            counted: true,
            measure_identical: false,
        };
        let request = CasePair::itself(contract.clone()).comparison(&manner);
        let submission = JobSubmission::of(caller.clone());
        let response = self.intake.respond::<records::Compare>(request, submission, None).await?;
        let own = response.candidates.first().map(|one| &one.evaluation);
        let is_compiled = own.is_none_or(|own| own.kernel_exec_result.compiled);
        let why = match own {
            Some(own) if own.status == ResponseStatus::Success => {
                let result = &own.kernel_exec_result;
                match result.runtime {
                    Some(_) => return Ok(response),
                    None => result.compilation_error.clone().or(result.validation_error.clone()),
                }
            }
            _ => None,
        };
        Err(ServiceError::invalid(vec![Problem {
            path: if is_compiled { String::new() } else { "kernel".to_owned() },
            code: FailureCode::NotRight,
            message: why.unwrap_or_else(|| "it could not run on this machine".to_owned()),
        }]))
    }
}

impl GateService for Gate {
    fn gate(
        &self,
        request: GateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, GateReport> {
        self.intake.respond::<records::Gate>(request, submission, None).boxed()
    }

    fn put_baseline<'a>(
        &'a self,
        new: NewBaseline,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary> {
        self.new_baseline(new, caller).boxed()
    }

    fn baselines<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, Vec<BaselineSummary>> {
        async move { self.suites.baselines().list(caller).await }.boxed()
    }

    fn baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, Baseline> {
        self.suites.baseline(name, &caller.owner).boxed()
    }

    fn promote<'a>(
        &'a self,
        name: &'a str,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary> {
        async move { self.suites.baselines().promote(name, job_id, caller).await }.boxed()
    }

    fn remove_baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, ()> {
        async move { self.suites.baselines().remove(name, caller).await }.boxed()
    }

    fn history<'a>(
        &'a self,
        query: HistoryQuery,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, HistoryAnswer> {
        async move { history_in(&self.store.view(), &query, caller).await }.boxed()
    }
}
