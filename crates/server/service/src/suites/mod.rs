//! Suites of the gate: whether a request for a gate is valid, and what it comes to with the baseline that it
//! names; stored baselines and the history.

mod baselines;
mod history;

use std::sync::Arc;

pub use baselines::GateBaselines;
pub use history::{HistoryQuery, MAX_HISTORY, stored_history};
pub(super) use history::{history_in, rows, unix_s};

use super::error::{self, Problem, ServiceError};
use warpgauge_contract::{ContractLimits, EvaluateRequest};
use warpgauge_executor::{ExecError, Executor};
use warpgauge_gate::report::BaselineKind;
use warpgauge_gate::{Baseline, GatePlan, GateRequest, SuiteError};
use warpgauge_model::FailureCode;
use warpgauge_store::Store;

/// The suites and baselines of a store.
pub(super) struct Suites {
    store: Store,
    executor: Arc<dyn Executor>,
    limits: ContractLimits,
}

impl Suites {
    /// Suites whose contracts are within these limits, with the baselines of this store.
    pub(super) fn new(
        store: Store,
        executor: Arc<dyn Executor>,
        limits: ContractLimits,
    ) -> Arc<Self> {
        Arc::new(Self { store, executor, limits })
    }

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
                let checked = self.check_contract(contract).and_then(|()| {
                    warpgauge_contract::check_comparable(contract).map_err(error::invalid)
                });
                let checked = checked.map_err(|error| within(&at, error));
                checked.map_err(|error| of_case(&case.name, error))?;
            }
        }
        if let Some(name) = &request.baseline {
            self.baseline(name, owner).await?;
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
            Some(name) => Some(self.baseline(name, owner).await?),
            None => None,
        };
        request.plan(stored).map_err(|error| invalid(&error))
    }

    /// The owner's baseline of this name.
    ///
    /// # Errors
    /// As [`GateBaselines::named`].
    pub(super) async fn baseline(&self, name: &str, owner: &str) -> Result<Baseline, ServiceError> {
        self.baselines().named(name, owner).await
    }

    /// The baselines of the store; those for the device of this machine come first.
    pub(super) fn baselines(&self) -> GateBaselines {
        let device = self.executor.offer().default_device().map(|device| device.name.clone()).ok();
        GateBaselines::new(self.store.clone(), device)
    }

    /// Checks a contract of a suite.
    ///
    /// # Errors
    /// Every problem found.
    pub(super) fn check_contract(&self, contract: &EvaluateRequest) -> Result<(), ServiceError> {
        warpgauge_contract::validate(contract, &self.limits).map_err(error::invalid)
    }
}

pub(super) fn invalid(error: &SuiteError) -> ServiceError {
    let (path, message) = match error {
        SuiteError::Value { at, message } => (at.clone(), message.clone()),
        SuiteError::Parse(error) => (error.path.clone(), error.to_string()),
    };
    ServiceError::invalid(vec![Problem { path, code: FailureCode::InvalidSuite, message }])
}

/// A contract's problems as those of the request that it stands in.
pub(super) fn within(at: &str, error: ServiceError) -> ServiceError {
    let problems = match error {
        ServiceError::Exec(ExecError::Invalid(problems)) => problems,
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
    ServiceError::invalid(moved.collect())
}

/// Problems of a case, with its name: the suite's author knows it by that.
fn of_case(name: &str, error: ServiceError) -> ServiceError {
    let ServiceError::Exec(ExecError::Invalid(problems)) = error else { return error };
    let named = problems.into_iter().map(|problem| Problem {
        message: format!("{} (case `{name}`)", problem.message),
        ..problem
    });
    ServiceError::invalid(named.collect())
}
