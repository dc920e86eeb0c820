//! The gate as a job, and stored baselines.

use std::sync::Arc;

use futures_util::FutureExt;

use super::error::{self, Problem, ServiceError};
use super::gate::{GateBench, GateFault, GateProgress, Gravity, run_gate};
use super::gate_service::{GateService, HistoryQuery};
use super::jobs::{LiveJob, Outcome, refused};
use super::remembered::unix_s;
use super::run::Shared;
use super::start::Pipeline;
use super::submission::{Answer, Caller, JobRequest, Submission};
use crate::contract::{CompareRequest, DecisionSpec, EvaluateRequest, PresetName};
use crate::gate::report::GateReport;
use crate::gate::{
    Baseline, BaselineSummary, Conditions, GateRequest, Manner, NewBaseline, Pin, Sides,
    SuiteError, SuiteVerdict, check_baseline_name,
};
use crate::history::HistoryAnswer;
use crate::report::{CompareResponse, ResponseStatus};
use crate::store::{BaselineRow, NewBaseline as NewBaselineRow, StoredBaseline, Visibility};
use crate::worker::protocol::DeviceKind;

/// Versions of baselines that are looked through.
const MAX_VERSIONS: usize = 10_000;

/// Versions of one name that are kept beside those that count.
const KEPT_VERSIONS: usize = 20;

/// Baselines of a list.
const MAX_LISTED: usize = 200;

/// Comparisons of a gate's job: each has the device for itself, and gives it back.
struct SharedBench<'a> {
    shared: &'a Shared,
    job: &'a LiveJob,
}

impl GateBench for SharedBench<'_> {
    type Error = ServiceError;

    async fn compare(&mut self, request: CompareRequest) -> Result<CompareResponse, ServiceError> {
        self.shared.compare(self.job, request).await
    }

    fn gravity(error: &ServiceError) -> Gravity {
        match error {
            ServiceError::ShuttingDown | ServiceError::Cancelled { .. } => Gravity::Run,
            ServiceError::Unavailable(_) | ServiceError::QueueFull { .. } => Gravity::Suite,
            _ => Gravity::Case,
        }
    }

    fn quoted(error: &ServiceError) -> String {
        error.to_string()
    }
}

/// Cases done, as the job's watchers see them.
struct OnJob<'a> {
    job: &'a LiveJob,
    done: usize,
    all: usize,
}

impl GateProgress for OnJob<'_> {
    fn extend(&mut self, by: usize) {
        self.all += by;
        self.job.points(self.done, self.all);
    }

    fn begin(&mut self, _: &str) {}

    fn end(&mut self) {
        self.done += 1;
        self.job.points(self.done, self.all);
    }
}

impl Shared {
    /// Whether a gate's request can be a job.
    pub(super) async fn check_gate(
        &self,
        request: &GateRequest,
        owner: &str,
    ) -> Result<(), ServiceError> {
        request.check().map_err(|error| invalid(&error))?;
        for (index, case) in request.cases.iter().enumerate() {
            let sides = [("contract", Some(&case.contract)), ("baseline", case.baseline.as_ref())];
            for (side, contract) in sides {
                let Some(contract) = contract else { continue };
                let at = format!("cases[{index}].{side}");
                self.check(contract).map_err(|error| within(&at, error))?;
            }
        }
        if let Some(name) = &request.baseline {
            self.stored_baseline(name, owner).await?;
        }
        Ok(())
    }

    /// Takes a suite to its report.
    pub(super) async fn gate(
        &self,
        job: &LiveJob,
        request: GateRequest,
    ) -> Result<GateReport, ServiceError> {
        let stored = match &request.baseline {
            Some(name) => Some(self.stored_baseline(name, job.owner()).await?),
            None => None,
        };
        let plan = request.plan(stored).map_err(|error| invalid(&error))?;
        let all = plan.cases.iter().filter(|case| case.sides.is_ok()).count();
        job.points(0, all);
        let devices = self.fleet.devices();
        let counts = devices.iter().all(|device| device.info.kind == DeviceKind::Emulator);
        let mut bench = SharedBench { shared: self, job };
        let mut progress = OnJob { job, done: 0, all };
        run_gate(plan, &mut bench, counts, &mut progress).await.map_err(conflict)
    }

    /// A baseline of the owner's.
    pub(super) async fn stored_baseline(
        &self,
        name: &str,
        owner: &str,
    ) -> Result<Baseline, ServiceError> {
        // One that no baseline can have is not asked for, nor echoed at length.
        let missing = || ServiceError::NoSuchBaseline(name.chars().take(128).collect());
        if check_baseline_name(name).is_err() {
            return Err(missing());
        }
        let who = Visibility::Owner(owner);
        let rows = self.store.baselines(who, Some(name), MAX_VERSIONS).await.map_err(refused)?;
        let chosen = self.chosen(rows).ok_or_else(missing)?;
        self.read_baseline(&chosen.id, owner).await?.ok_or_else(missing)
    }

    /// Of several baselines of one name, each for other conditions, the one for this machine; else
    /// the newest.
    fn chosen(&self, rows: Vec<BaselineRow>) -> Option<BaselineRow> {
        let device = self.default_device().map(|device| device.name).unwrap_or_default();
        let here = |row: &BaselineRow| {
            serde_json::from_str::<Pin>(&row.pin).is_ok_and(|pin| pin.device == device)
        };
        let promoted = rows.into_iter().filter(|row| row.promoted);
        promoted.max_by_key(|row| (here(row), row.created_at))
    }

    async fn read_baseline(&self, id: &str, owner: &str) -> Result<Option<Baseline>, ServiceError> {
        let stored = self.store.baseline(id, Visibility::Owner(owner)).await.map_err(refused)?;
        let read = |stored: StoredBaseline| {
            serde_json::from_slice(&stored.body)
                .map_err(|error| error::internal("reading a stored baseline", &error))
        };
        stored.map(read).transpose()
    }

    /// Runs each case of a baseline once, and stores it.
    pub(super) async fn new_baseline(
        self: &Arc<Self>,
        new: NewBaseline,
        caller: &Caller,
    ) -> Result<BaselineSummary, ServiceError> {
        new.check().map_err(|error| invalid(&error))?;
        for (index, case) in new.cases.iter().enumerate() {
            let at = format!("cases[{index}].contract");
            self.check(&case.contract).map_err(|error| within(&at, error))?;
        }
        let mut pin = new.pin;
        for (index, case) in new.cases.iter().enumerate() {
            let at = format!("cases[{index}].contract");
            let ran = self.tried(&case.contract, caller).await;
            let ran = ran.map_err(|error| within(&at, error))?;
            let now = Pin::from(&Conditions::of(&ran, PresetName::Ci));
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
        self.keep_baseline(&baseline, caller).await
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
        let request = JobRequest::Compare(Box::new(request));
        let outcome = self.waited(request, Submission::of(caller.clone()), None).await?;
        let Outcome::Compared(response) = outcome else {
            let odd = std::io::Error::other("a comparison gave something else");
            return Err(error::internal("trying a case", &odd));
        };
        let own = response.candidates.first().map(|one| &one.evaluation);
        let why = match own {
            Some(own) if own.status == ResponseStatus::Success => {
                let result = &own.kernel_exec_result;
                match result.runtime {
                    Some(_) => return Ok(*response),
                    None => result.compilation_error.clone().or(result.validation_error.clone()),
                }
            }
            _ => None,
        };
        Err(ServiceError::Invalid(vec![Problem {
            path: String::new(),
            code: "not_right".to_owned(),
            message: why.unwrap_or_else(|| "it could not be run here".to_owned()),
        }]))
    }

    async fn keep_baseline(
        &self,
        baseline: &Baseline,
        caller: &Caller,
    ) -> Result<BaselineSummary, ServiceError> {
        let written = |error: &serde_json::Error| error::internal("writing a baseline", error);
        let new = NewBaselineRow {
            owner: caller.owner.clone(),
            name: baseline.name.clone(),
            pin: serde_json::to_string(&baseline.pin).map_err(|error| written(&error))?,
            job: baseline.promoted_from.clone(),
            body: serde_json::to_vec(baseline).map_err(|error| written(&error))?,
            promote: true,
        };
        self.store.put_baseline(new).await.map_err(refused)?;
        self.drop_old_versions(&baseline.name, &caller.owner).await?;
        Ok(baseline.summary())
    }

    /// Keeps the latest versions of a name.
    async fn drop_old_versions(&self, name: &str, owner: &str) -> Result<(), ServiceError> {
        let who = Visibility::Owner(owner);
        let mut rows =
            self.store.baselines(who, Some(name), MAX_VERSIONS).await.map_err(refused)?;
        rows.retain(|row| !row.promoted);
        rows.sort_by_key(|row| std::cmp::Reverse(row.created_at));
        for row in rows.iter().skip(KEPT_VERSIONS) {
            self.store.delete_baseline(&row.id, who).await.map_err(refused)?;
        }
        Ok(())
    }

    /// The caller's baselines, by name.
    pub(super) async fn stored_baselines(
        &self,
        caller: &Caller,
    ) -> Result<Vec<BaselineSummary>, ServiceError> {
        let who = Visibility::Owner(&caller.owner);
        let rows = self.store.baselines(who, None, MAX_VERSIONS).await.map_err(refused)?;
        let mut summaries = Vec::new();
        for row in rows.into_iter().filter(|row| row.promoted).take(MAX_LISTED) {
            // One that was removed meanwhile is not listed.
            if let Some(baseline) = self.read_baseline(&row.id, &caller.owner).await? {
                summaries.push(baseline.summary());
            }
        }
        Ok(summaries)
    }

    /// Makes the candidate of a gate's job that passed a baseline.
    pub(super) async fn promoted(
        &self,
        name: &str,
        job_id: &str,
        caller: &Caller,
    ) -> Result<BaselineSummary, ServiceError> {
        check_baseline_name(name).map_err(|error| invalid(&error))?;
        let (request, report) = self.gate_job(job_id, caller).await?;
        let no = |why: String| ServiceError::Conflict { code: "not_promotable", message: why };
        if report.verdict != SuiteVerdict::Pass {
            return Err(no(format!(
                "the verdict of job {job_id} is not PASS; a candidate becomes the baseline only if \
                 nothing stands against it"
            )));
        }
        let (Some(device), Some(method)) = (&report.device, &report.method) else {
            return Err(no(format!("job {job_id} measured nothing")));
        };
        let baseline = Baseline {
            name: name.to_owned(),
            pin: Pin {
                device: device.name.clone(),
                driver: method.driver.clone(),
                cuda: device.cuda_version.clone(),
                method: method.method.clone(),
                method_version: method.method_version,
            },
            suite: request.suite.clone(),
            commit: request.commit.clone(),
            promoted_from: Some(job_id.to_owned()),
            stored_unix_s: unix_s(),
            cases: request.contracts(),
        };
        self.keep_baseline(&baseline, caller).await
    }

    /// Removes a baseline.
    pub(super) async fn baseline_removed(
        &self,
        name: &str,
        caller: &Caller,
    ) -> Result<(), ServiceError> {
        let who = Visibility::Owner(&caller.owner);
        let rows = self.store.baselines(who, Some(name), MAX_VERSIONS).await.map_err(refused)?;
        if rows.is_empty() {
            return Err(ServiceError::NoSuchBaseline(name.chars().take(128).collect()));
        }
        for row in rows {
            self.store.delete_baseline(&row.id, who).await.map_err(refused)?;
        }
        Ok(())
    }
}

impl GateService for Pipeline {
    fn gate(&self, request: GateRequest, submission: Submission) -> Answer<'_, GateReport> {
        let request = JobRequest::Gate(Box::new(request));
        async move { self.shared.waited(request, submission, None).await?.gated() }.boxed()
    }

    fn put_baseline<'a>(
        &'a self,
        new: NewBaseline,
        caller: &'a Caller,
    ) -> Answer<'a, BaselineSummary> {
        self.shared.new_baseline(new, caller).boxed()
    }

    fn baselines<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Vec<BaselineSummary>> {
        self.shared.stored_baselines(caller).boxed()
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
        self.shared.promoted(name, job_id, caller).boxed()
    }

    fn remove_baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> Answer<'a, ()> {
        self.shared.baseline_removed(name, caller).boxed()
    }

    fn remember<'a>(&'a self, report: GateReport, caller: &'a Caller) -> Answer<'a, ()> {
        async move {
            self.shared.remember_gate(&report, &caller.owner).await;
            Ok(())
        }
        .boxed()
    }

    fn history<'a>(&'a self, query: HistoryQuery, caller: &'a Caller) -> Answer<'a, HistoryAnswer> {
        async move { self.shared.history_of(&query, caller).await }.boxed()
    }
}

fn invalid(error: &SuiteError) -> ServiceError {
    let (path, message) = match error {
        SuiteError::Value { at, message } => (at.clone(), message.clone()),
        SuiteError::Parse(error) => (error.path.clone(), error.to_string()),
    };
    ServiceError::Invalid(vec![Problem { path, code: "invalid_suite".to_owned(), message }])
}

/// A contract's problems as those of the request that it stands in.
fn within(at: &str, error: ServiceError) -> ServiceError {
    let ServiceError::Invalid(problems) = error else { return error };
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

fn differs(message: String) -> ServiceError {
    ServiceError::Conflict { code: "conditions_differ", message }
}

fn conflict(fault: GateFault<ServiceError>) -> ServiceError {
    match fault {
        GateFault::Bench(error) => error,
        other => differs(other.to_string()),
    }
}
