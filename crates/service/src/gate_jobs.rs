//! The gate as a job, and stored baselines.

use std::sync::Arc;

use futures_util::FutureExt;

use super::baselines::Baselines;
use super::error::{self, Problem, ServiceError, differs};
use super::gate_service::{GateService, HistoryQuery};
use super::history::unix_s;
use super::jobs::kinds;
use super::shared::Shared;
use super::start::LocalService;
use super::submission::{Answer, Caller, Submission};
use super::tensors::Copies;
use warpgauge_contract::{DecisionSpec, EvaluateRequest};
use warpgauge_gate::report::{BaselineKind, GateReport};
use warpgauge_gate::{
    Baseline, BaselineSummary, Conditions, GatePlan, GateRequest, Manner, NewBaseline, Pin, Seen,
    Sides, SuiteError,
};
use warpgauge_history::HistoryAnswer;
use warpgauge_model::{FailureCode, PresetName};
use warpgauge_report::{CompareResponse, ResponseStatus};

impl Shared {
    /// Whether a gate's request can be a job.
    pub(super) async fn check_gate(
        &self,
        request: &GateRequest,
        owner: &str,
    ) -> Result<(), ServiceError> {
        request.check().map_err(|error| invalid(&error))?;
        for (index, case) in request.cases.iter().enumerate() {
            // What lies in an older tree is not the request's to mend: the case is judged without.
            let inline = request.baseline_origin.as_ref().is_none_or(|origin| {
                !matches!(origin.kind, BaselineKind::Git | BaselineKind::Directory)
            });
            let baseline = case.baseline.as_ref().filter(|_| inline);
            let sides = [("contract", Some(&case.contract)), ("baseline", baseline)];
            for (side, contract) in sides {
                let Some(contract) = contract else { continue };
                let at = format!("cases[{index}].{side}");
                let checked = self.check(contract).and_then(|()| {
                    warpgauge_contract::check_comparable(contract).map_err(error::invalid)
                });
                let checked = checked.map_err(|error| within(&at, error));
                checked.map_err(|error| of_case(&case.name, error))?;
            }
        }
        if let Some(name) = &request.baseline {
            self.stored_baseline(name, owner).await?;
        }
        Ok(())
    }

    /// What a request for a gate comes to, with the baseline that it names.
    pub(super) async fn gate_plan(
        &self,
        request: GateRequest,
        owner: &str,
    ) -> Result<GatePlan, ServiceError> {
        let stored = match &request.baseline {
            Some(name) => Some(self.stored_baseline(name, owner).await?),
            None => None,
        };
        request.plan(stored).map_err(|error| invalid(&error))
    }

    /// A baseline of the owner's.
    async fn stored_baseline(&self, name: &str, owner: &str) -> Result<Baseline, ServiceError> {
        self.shelf().named(name, owner).await
    }

    /// The baselines of the store; those for the device of this machine come first.
    fn shelf(&self) -> Baselines {
        let device = self.default_device().map(|device| device.name).ok();
        Baselines::new(self.store.clone(), device)
    }

    /// Runs each case of a baseline once, and stores it.
    pub(super) async fn new_baseline(
        self: &Arc<Self>,
        new: NewBaseline,
        caller: &Caller,
    ) -> Result<BaselineSummary, ServiceError> {
        new.check().map_err(|error| invalid(&error))?;
        let mut new = new;
        let mut left = self.limits.max_decoded_bytes;
        for (index, case) in new.cases.iter_mut().enumerate() {
            let put = self.evaluation_with(
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
            self.check(&case.contract).map_err(|error| within(&at, error))?;
        }
        let mut pin = new.pin;
        for (index, case) in new.cases.iter().enumerate() {
            let at = format!("cases[{index}].contract");
            let ran = self.tried(&case.contract, caller).await;
            let ran = ran.map_err(|error| within(&at, error))?;
            let Some(seen) = Seen::of_comparison(&ran) else {
                let message = "ran on the CPU, whose times rank nothing: it cannot be gated yet";
                return Err(invalid(&SuiteError::Value { at, message: message.to_owned() }));
            };
            let now = Pin::from(&Conditions::of(&seen, PresetName::Ci));
            match &pin {
                Some(pin) => pin.check(&now).map_err(|error| differs(error.to_string()))?,
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
        self.shelf().keep(&baseline, caller).await
    }

    /// A contract beside itself, with no effort spent on times: whether it compiles and runs here.
    async fn tried(
        self: &Arc<Self>,
        contract: &EvaluateRequest,
        caller: &Caller,
    ) -> Result<CompareResponse, ServiceError> {
        let manner = Manner {
            preset: PresetName::Quick,
            decision: DecisionSpec::default(),
            fresh: false,
            counted: true,
            measure_identical: false,
        };
        let request = Sides::itself(contract.clone()).comparison(&manner);
        let submission = Submission::of(caller.clone());
        let response = self.respond::<kinds::Compare>(request, submission, None).await?;
        let own = response.candidates.first().map(|one| &one.evaluation);
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
        Err(ServiceError::Invalid(vec![Problem {
            path: String::new(),
            code: FailureCode::NotRight,
            message: why.unwrap_or_else(|| "it could not be run here".to_owned()),
        }]))
    }
}

impl GateService for LocalService {
    fn gate(&self, request: GateRequest, submission: Submission) -> Answer<'_, GateReport> {
        self.shared.respond::<kinds::Gate>(request, submission, None).boxed()
    }

    fn put_baseline<'a>(
        &'a self,
        new: NewBaseline,
        caller: &'a Caller,
    ) -> Answer<'a, BaselineSummary> {
        self.shared.new_baseline(new, caller).boxed()
    }

    fn baselines<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Vec<BaselineSummary>> {
        async move { self.shared.shelf().list(caller).await }.boxed()
    }

    fn baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> Answer<'a, Baseline> {
        self.shared.stored_baseline(name, &caller.owner).boxed()
    }

    fn promote<'a>(
        &'a self,
        name: &'a str,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> Answer<'a, BaselineSummary> {
        async move { self.shared.shelf().promote(name, job_id, caller).await }.boxed()
    }

    fn remove_baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> Answer<'a, ()> {
        async move { self.shared.shelf().remove(name, caller).await }.boxed()
    }

    fn history<'a>(&'a self, query: HistoryQuery, caller: &'a Caller) -> Answer<'a, HistoryAnswer> {
        async move { self.shared.history_of(&query, caller).await }.boxed()
    }
}

pub(super) fn invalid(error: &SuiteError) -> ServiceError {
    let (path, message) = match error {
        SuiteError::Value { at, message } => (at.clone(), message.clone()),
        SuiteError::Parse(error) => (error.path.clone(), error.to_string()),
    };
    ServiceError::Invalid(vec![Problem { path, code: FailureCode::InvalidSuite, message }])
}

/// A contract's problems as those of the request that it stands in.
fn within(at: &str, error: ServiceError) -> ServiceError {
    let problems = match error {
        ServiceError::Invalid(problems) => problems,
        ServiceError::Named { path, error } => {
            return ServiceError::Named { path: format!("{at}.{path}"), error };
        }
        other => return other,
    };
    let moved = problems.into_iter().map(|problem| Problem {
        path: match problem.path.strip_prefix("ref_kernel") {
            // What is tried is compared with itself.
            Some(rest) => format!("{at}.kernel{rest}"),
            None if problem.path.is_empty() => at.to_owned(),
            None => format!("{at}.{}", problem.path),
        },
        ..problem
    });
    ServiceError::Invalid(moved.collect())
}

/// Problems of a case, with its name: whoever wrote the suite knows it by that.
fn of_case(name: &str, error: ServiceError) -> ServiceError {
    let ServiceError::Invalid(problems) = error else { return error };
    let named = problems.into_iter().map(|problem| Problem {
        message: format!("{} (case `{name}`)", problem.message),
        ..problem
    });
    ServiceError::Invalid(named.collect())
}
