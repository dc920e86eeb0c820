//! Suites of the gate: validates requests, and plans them with their baselines. This module also
//! contains the stored baselines and the history. The main type is [`Suites`].

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
    /// Creates the suites of this store. Their contracts must be within these limits.
    pub(super) fn new(
        store: Store,
        executor: Arc<dyn Executor>,
        limits: ContractLimits,
    ) -> Arc<Self> {
        Arc::new(Self { store, executor, limits })
    }

    /// Validates a request to the gate.
    pub(super) async fn check_gate(
        &self,
        request: &GateRequest,
        owner: &str,
    ) -> Result<(), ServiceError> {
        request.check().map_err(|error| invalid(&error))?;
        for (index, case) in request.cases.iter().enumerate() {
            // The request's author cannot change an older source tree, so the gate judges the case
            // without that baseline.
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

    /// Returns the plan for a request to the gate. The plan includes the baseline to which the
    /// request refers by name.
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

    /// Returns the owner's baseline with this name.
    ///
    /// # Errors
    /// The errors of [`GateBaselines::named`].
    pub(super) async fn baseline(&self, name: &str, owner: &str) -> Result<Baseline, ServiceError> {
        self.baselines().named(name, owner).await
    }

    /// Returns the baselines of the store. Those for this machine's device take precedence.
    pub(super) fn baselines(&self) -> GateBaselines {
        let device = self.executor.offer().default_device().map(|device| device.name.clone()).ok();
        GateBaselines::new(self.store.clone(), device)
    }

    /// Validates a contract of a suite.
    ///
    /// # Errors
    /// All problems that were found.
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

/// Changes the paths of a contract's problems to the contract's position in the request.
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
            // The check of a contract is a comparison with itself, so `ref_kernel` is its kernel.
            Some(rest) => format!("{at}.kernel{rest}"),
            None if problem.path.is_empty() => at.to_owned(),
            None => format!("{at}.{}", problem.path),
        },
        ..problem
    });
    ServiceError::invalid(moved.collect())
}

/// Adds the name of the case to its problems, for the author of the suite.
fn of_case(name: &str, error: ServiceError) -> ServiceError {
    let ServiceError::Exec(ExecError::Invalid(problems)) = error else { return error };
    let named = problems.into_iter().map(|problem| Problem {
        message: format!("{} (case `{name}`)", problem.message),
        ..problem
    });
    ServiceError::invalid(named.collect())
}
