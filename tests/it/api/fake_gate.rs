//! The gate of the service without devices: every suite passes, and baselines are kept in memory.

use futures_util::FutureExt;
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{
    Baseline, BaselinePin, BaselineSummary, GateRequest, NewBaseline, SuiteError,
    check_baseline_name,
};
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_service::{
    Caller, ExecError, GateService, HistoryQuery, JobSubmission, Problem, ServiceError,
    ServiceFuture,
};

use super::FakeService;

const REPORT: &str = include_str!("../../../openapi/examples/gate.json");
const HISTORY: &str = include_str!("../../../openapi/examples/history.json");

fn invalid(error: SuiteError) -> ServiceError {
    let SuiteError::Value { at: path, message } = error else { panic!("{error}") };
    ServiceError::invalid(vec![Problem { path, code: FailureCode::InvalidSuite, message }])
}

fn pin() -> BaselinePin {
    BaselinePin {
        device: "NVIDIA H200".to_owned(),
        driver: Some("580.159.04".to_owned()),
        cuda: "13.0".to_owned(),
        method: "cuda_events_gated".to_owned(),
        method_version: 2,
    }
}

fn found<'a>(
    baselines: &'a std::collections::BTreeMap<String, Baseline>,
    name: &str,
) -> Result<&'a Baseline, ServiceError> {
    let missing = || ServiceError::NoSuchBaseline(name.chars().take(128).collect());
    baselines.get(name).ok_or_else(missing)
}

impl GateService for FakeService {
    fn gate(&self, request: GateRequest, _: JobSubmission) -> ServiceFuture<'_, GateReport> {
        async move {
            request.check().map_err(invalid)?;
            for case in &request.cases {
                self.check_ranges(&case.contract)?;
            }
            if let Some(name) = &request.baseline {
                let baselines = self.baselines.lock().unwrap();
                let now = BaselinePin { device: "NVIDIA H100".to_owned(), ..pin() };
                let checked = found(&baselines, name)?.pin.check(&now);
                checked.map_err(|error| ExecError::ConditionsDiffer(error.to_string()))?;
            }
            Ok(serde_json::from_str(REPORT).unwrap())
        }
        .boxed()
    }

    fn put_baseline<'a>(
        &'a self,
        new: NewBaseline,
        _: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary> {
        async move {
            new.check().map_err(invalid)?;
            let cases = new.cases.into_iter().map(|case| (case.name, case.contract)).collect();
            let baseline = Baseline {
                name: new.name,
                pin: new.pin.unwrap_or_else(pin),
                suite: new.suite,
                commit: new.commit,
                promoted_from: None,
                stored_unix_s: 1_767_225_600.0,
                cases,
            };
            let summary = baseline.summary();
            self.baselines.lock().unwrap().insert(summary.name.clone(), baseline);
            Ok(summary)
        }
        .boxed()
    }

    fn baselines<'a>(&'a self, _: &'a Caller) -> ServiceFuture<'a, Vec<BaselineSummary>> {
        let all = self.baselines.lock().unwrap().values().map(Baseline::summary).collect();
        async move { Ok(all) }.boxed()
    }

    fn baseline<'a>(&'a self, name: &'a str, _: &'a Caller) -> ServiceFuture<'a, Baseline> {
        let found = found(&self.baselines.lock().unwrap(), name).cloned();
        async move { found }.boxed()
    }

    fn promote<'a>(
        &'a self,
        name: &'a str,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary> {
        use warpgauge_service::JobService;
        async move {
            check_baseline_name(name).map_err(invalid)?;
            let job = self.job(job_id, caller).await?;
            let message = format!("job {} is not a run of the gate", job.job_id);
            Err(ServiceError::Conflict { code: ErrorCode::NotPromotable, message })
        }
        .boxed()
    }

    fn remove_baseline<'a>(&'a self, name: &'a str, _: &'a Caller) -> ServiceFuture<'a, ()> {
        let mut baselines = self.baselines.lock().unwrap();
        let outcome = found(&baselines, name).map(drop);
        baselines.remove(name);
        async move { outcome }.boxed()
    }

    /// Every owner has the same case. Its branch is the owner.
    fn history<'a>(
        &'a self,
        query: HistoryQuery,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, HistoryAnswer> {
        async move {
            let mut answer: HistoryAnswer = serde_json::from_str(HISTORY).unwrap();
            let points = answer.series.iter_mut().flat_map(|series| &mut series.points);
            let owner = Some(&caller.owner).filter(|owner| !owner.is_empty());
            points.for_each(|point| point.branch = owner.cloned());
            let wanted = |case: &str| query.case.as_deref().is_none_or(|wanted| wanted == case);
            answer.series.retain(|series| wanted(&series.key.case));
            Ok(answer)
        }
        .boxed()
    }
}
