//! The order of a gate run: a first look at every case, a second in fresh processes at those that
//! seem slower, and the conditions that all of them must share. What comparisons mean is
//! [`warpgauge_gate`]'s.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};

use crate::backend::{Evaluator, Purpose, REFERENCE_PATH};
use crate::comparison;
use crate::engine::Engine;
use crate::error::ExecError;
use crate::progress::ActiveOrder;
use warpgauge_contract::{
    CompareRequest, DecisionSpec, EvaluateRequest, KernelCode, KernelRuntime,
};
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{
    BaselinePin, CalibrationConditions, CaseCode, CaseEvidence, CasePair, CasePolicy,
    ComparisonSettings, GatePlan, MeasuredCase, NoBaseline, PlannedCase, RunEnvironment,
    RunInterval, alone, finish, first_alphas, idle_multiprocessors, unconfirmed,
};
use warpgauge_model::{DeviceKind, FailureCode, Requirements};
use warpgauge_report::{CompareResponse, EvaluateResponse, KernelVerdict, VerdictBy};

/// Cases whose kernels are compiled at once; the compile stage has a bound of its own.
const CASES_AT_ONCE: usize = 16;

/// What an error of one case means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gravity {
    /// It says something of this case alone.
    Case,
    /// No further comparison can succeed; what was measured is reported.
    Suite,
    /// The run is over, with nothing to report.
    Run,
}

fn gravity(error: &ExecError) -> Gravity {
    match error {
        ExecError::ShuttingDown | ExecError::ConditionsDiffer(_) => Gravity::Run,
        ExecError::Unavailable(_) | ExecError::QueueFull { .. } => Gravity::Suite,
        _ => Gravity::Case,
    }
}

/// Takes a suite to its report.
///
/// # Errors
/// Where there is nothing to report: no comparison could be made at all, or they were made under
/// conditions that the plan does not bear.
pub(crate) async fn run_gate(
    plan: GatePlan,
    engine: &Engine,
    job: &ActiveOrder<'_>,
) -> Result<GateReport, ExecError> {
    let devices = engine.host.fleet.devices();
    let counts = devices.iter().all(|device| device.info.kind == DeviceKind::Emulator);
    let began = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let all = plan.cases.iter().filter(|case| case.candidate().is_some()).count();
    job.points(0, all);
    let cases = plan.unmeasured();
    let mut run = Run { plan, cases, seen: None, counts, engine, job, done: 0, all };
    for case in &run.plan.cases {
        if let Some(note) = case.unused() {
            run.plan.notes.push(format!("case `{}`: {note}", case.spec.name));
        }
    }
    run.compile_all().await?;
    run.first_looks().await?;
    run.confirm().await?;
    let clocked =
        RunInterval { started_unix_s: started, duration_s: began.elapsed().as_secs_f64() };
    Ok(finish(run.plan, &run.cases, run.seen.as_ref(), clocked, job.id()))
}

/// Why a baseline cannot be compared with, if that is what an error says: its kernel does not
/// compile, crashes, is not right against itself, or does not fit its contract.
fn broken_baseline(error: &ExecError) -> Option<String> {
    let ExecError::Invalid(problems) = error else { return None };
    let theirs = |path: &str| {
        let rest = path.strip_prefix(REFERENCE_PATH);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let broken = |code: &FailureCode| *code != FailureCode::ReferenceNotTimed;
    let all = problems.iter().all(|problem| theirs(&problem.path) && broken(&problem.code));
    let first = problems.first().filter(|_| all)?;
    Some(format!("the baseline cannot be compared with: {}", first.message))
}

/// What is wrong with a candidate that does not fit its own contract, if that is what an error says.
/// Arguments other than the baseline's are no fault of it.
fn unfit_candidate(error: &ExecError) -> Option<String> {
    let ExecError::Invalid(problems) = error else { return None };
    let own = |problem: &&crate::error::Problem| {
        problem.path.starts_with("custom_kernel") && problem.code != FailureCode::DifferentArguments
    };
    problems.iter().find(own).map(|_| error.to_string())
}

/// A suite on its way to a verdict. Each of its comparisons has the device for itself, and gives it
/// back.
struct Run<'a> {
    plan: GatePlan,
    /// As far as they were measured, in the plan's order.
    cases: Vec<MeasuredCase>,
    /// The device, and the method of the first case that was measured.
    seen: Option<RunEnvironment>,
    /// Whether it is known before that exact counts will decide.
    counts: bool,
    engine: &'a Engine,
    job: &'a ActiveOrder<'a>,
    /// Cases and confirmations done, of all that are to be made as far as that is known; the job's
    /// watchers see them.
    done: usize,
    all: usize,
}

impl Run<'_> {
    fn step(&mut self) {
        self.done += 1;
        self.job.points(self.done, self.all);
    }

    fn manner(&self, index: usize, alpha: f64, fresh: bool) -> ComparisonSettings {
        let policy: &CasePolicy = &self.cases[index].policy;
        let decision = DecisionSpec {
            margin: Some(policy.margin),
            equivalence: Some(policy.delta),
            alpha: Some(alpha),
            blocks: None,
        };
        let by = self.seen.as_ref().map(RunEnvironment::verdict_by);
        ComparisonSettings {
            preset: self.plan.preset,
            decision,
            fresh,
            counted: self.counts || by == Some(VerdictBy::Counts),
            measure_identical: self.plan.measure_identical,
        }
    }

    /// Compiles the kernels of all cases, before the first comparison holds a device: it and those after
    /// it find their images in the cache. What does not compile is told where its case is looked at.
    async fn compile_all(&self) -> Result<(), ExecError> {
        let order = self.plan.cases.iter().find_map(|case| match &case.code {
            CaseCode::Removed(_) => None,
            CaseCode::New { contract, .. } => Some(&contract.requires),
            CaseCode::Both(sides) => Some(sides.requires()),
        });
        let device = self.engine.host.device_for(order.unwrap_or(&Requirements::default()))?;
        let mut compilations: Vec<BoxFuture<'_, ()>> = Vec::new();
        for (index, case) in self.plan.cases.iter().enumerate() {
            let manner = self.manner(index, self.cases[index].policy.alpha, false);
            let (engine, job, device) = (self.engine, self.job, &device);
            match &case.code {
                CaseCode::Removed(_) => {}
                CaseCode::New { contract, .. } if !is_built_ahead(&contract.kernel) => {}
                CaseCode::New { contract, .. } => {
                    let request = alone(contract, &manner, true);
                    compilations.push(
                        async move { engine.device.compile_ahead(job, &request, device).await }
                            .boxed(),
                    );
                }
                CaseCode::Both(sides) => {
                    let request: CompareRequest = sides.comparison(&manner);
                    if !is_built_ahead(&request.ref_kernel) || request.is_mixed() {
                        continue;
                    }
                    compilations.push(
                        async move { engine.device.compile_ahead_all(job, &request, device).await }
                            .boxed(),
                    );
                }
            }
        }
        let mut compiled = futures_util::stream::iter(compilations).buffer_unordered(CASES_AT_ONCE);
        while compiled.next().await.is_some() {}
        Ok(())
    }

    async fn first_looks(&mut self) -> Result<(), ExecError> {
        let policies = self.cases.iter().map(|case| case.policy).collect::<Vec<_>>();
        let alphas = first_alphas(&policies);
        let mut gone: Option<String> = None;
        for (index, alpha) in alphas.into_iter().enumerate() {
            if self.plan.cases[index].candidate().is_none() {
                continue;
            }
            if let Some(why) = &gone {
                let why = format!("not measured, because of an earlier case's error: {why}");
                self.cases[index].first = CaseEvidence::Error(why);
                continue;
            }
            let began = Instant::now();
            let looked = self.look(index, alpha).await;
            self.step();
            self.cases[index].duration_s = began.elapsed().as_secs_f64();
            if let Err(error) = looked {
                let gravity = gravity(&error);
                // Nothing was measured yet: the error says more than a report of errors.
                if gravity == Gravity::Run || gravity == Gravity::Suite && self.seen.is_none() {
                    return Err(error);
                }
                let why = error.to_string();
                gone = (gravity == Gravity::Suite).then(|| why.clone());
                self.cases[index].first = CaseEvidence::Error(why);
            }
        }
        Ok(())
    }

    /// The first look at one case: beside its baseline where there is one that can be compared with,
    /// and at what its contract expects where that says something.
    async fn look(&mut self, index: usize, alpha: f64) -> Result<(), ExecError> {
        let manner = self.manner(index, alpha, false);
        let PlannedCase { code, .. } = &self.plan.cases[index];
        match code.clone() {
            CaseCode::Removed(_) => Ok(()),
            CaseCode::New { contract, why } => {
                self.look_alone(index, &contract, &manner, NoBaseline::New, &why).await
            }
            CaseCode::Both(sides) => match self.compare(&sides, &manner).await {
                Ok(response) => {
                    self.look_at_conditions(RunEnvironment::of_comparison(&response))?;
                    self.note_idle(index, &response);
                    self.cases[index].set_first(&response);
                    self.look_at_expectation(index, &sides, &manner).await
                }
                Err(error) => match (broken_baseline(&error), unfit_candidate(&error)) {
                    (Some(why), _) => {
                        let contract = &sides.candidate;
                        self.look_alone(index, contract, &manner, NoBaseline::Broken, &why).await
                    }
                    (None, Some(why)) => {
                        self.cases[index].first = CaseEvidence::Invalid(why);
                        Ok(())
                    }
                    (None, None) => Err(error),
                },
            },
        }
    }

    async fn compare(
        &self,
        sides: &CasePair,
        manner: &ComparisonSettings,
    ) -> Result<CompareResponse, ExecError> {
        let request: CompareRequest = sides.comparison(manner);
        comparison::compare(self.engine, self.job, request).await
    }

    /// A kernel on its own. One that does not fit its contract is as wrong as one that does not
    /// compile: the error is what is wrong with it.
    async fn evaluate(
        &self,
        request: EvaluateRequest,
    ) -> Result<Result<Box<EvaluateResponse>, String>, ExecError> {
        match self.engine.evaluate(self.job, request, Purpose::Rank).await {
            Ok(report) => Ok(Ok(Box::new(report))),
            Err(error @ ExecError::Invalid(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Compiles, runs and checks a case that there is nothing to compare with.
    async fn look_alone(
        &mut self,
        index: usize,
        contract: &EvaluateRequest,
        manner: &ComparisonSettings,
        why: NoBaseline,
        what: &str,
    ) -> Result<(), ExecError> {
        match self.evaluate(alone(contract, manner, true)).await? {
            Err(unfit) => self.cases[index].first = CaseEvidence::Invalid(unfit),
            Ok(report) => {
                if let Some(seen) = RunEnvironment::of(&report) {
                    self.look_at_conditions(Some(seen))?;
                }
                let metric = self.cases[index].spec.metric;
                let mut evidence = CaseEvidence::alone(&report, metric, why, what);
                // A case that was there before is not let through because nothing can be said of it.
                if why == NoBaseline::Broken
                    && contract.expected.is_empty()
                    && matches!(evidence, CaseEvidence::Alone { .. })
                {
                    evidence = CaseEvidence::Error(format!(
                        "{what}; the candidate runs, and its contract has no `expected` that says \
                         whether it is right: give it one"
                    ));
                }
                self.cases[index].set_alone(&report, evidence);
            }
        }
        Ok(())
    }

    /// A baseline that was never right is no excuse: what the contract expects holds for both sides.
    async fn look_at_expectation(
        &mut self,
        index: usize,
        sides: &CasePair,
        manner: &ComparisonSettings,
    ) -> Result<(), ExecError> {
        let metric = self.cases[index].spec.metric;
        if sides.candidate.expected.is_empty()
            || matches!(self.cases[index].first, CaseEvidence::Error(_))
        {
            return Ok(());
        }
        let own = self.evaluate(alone(&sides.candidate, manner, false)).await?;
        // Where a useless kernel would leave what the baseline leaves, `expected` may say more.
        let is_weak = self.cases[index].kernel_verdict == Some(KernelVerdict::Weak);
        let differs = matches!(self.cases[index].first, CaseEvidence::Invalid(_)) && !is_weak;
        let against = match &own {
            Err(unfit) => Some(CaseEvidence::Invalid(unfit.clone())),
            Ok(report) => CaseEvidence::against(report),
        };
        match (against, own) {
            (Some(CaseEvidence::Invalid(why)), own) if !differs => {
                let verdict = own.ok().map(|report| report.kernel_verdict());
                let why = match verdict {
                    Some(KernelVerdict::Weak) => why,
                    _ => format!("it is not what its contract's `expected` says: {why}"),
                };
                self.cases[index].first = CaseEvidence::Invalid(why);
                self.cases[index].kernel_verdict = verdict;
            }
            (Some(CaseEvidence::Error(why)), _) if !differs => {
                self.cases[index].first = CaseEvidence::Error(why);
            }
            // Other outputs than the baseline's, and right ones: which of the two is wrong?
            (None, Ok(report)) if differs => {
                let theirs = alone(&sides.baseline_as_candidate(), manner, false);
                if let Ok(theirs) = self.evaluate(theirs).await?
                    && let Some(CaseEvidence::Invalid(why)) = CaseEvidence::against(&theirs)
                {
                    let what = format!("the baseline is not what `expected` says: {why}");
                    let evidence = CaseEvidence::alone(&report, metric, NoBaseline::Broken, &what);
                    self.cases[index].set_alone(&report, evidence);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares again, in fresh processes, what seems slower.
    async fn confirm(&mut self) -> Result<(), ExecError> {
        let unconfirmed = unconfirmed(&self.cases);
        self.all += unconfirmed.len();
        self.job.points(self.done, self.all);
        for index in unconfirmed {
            let CaseCode::Both(sides) = self.plan.cases[index].code.clone() else { continue };
            let manner = self.manner(index, self.cases[index].policy.alpha, true);
            let began = Instant::now();
            let outcome = self.compare(&sides, &manner).await;
            self.step();
            let evidence = match outcome {
                Ok(response) => {
                    self.look_at_conditions(RunEnvironment::of_comparison(&response))?;
                    CaseEvidence::of(&response, self.cases[index].spec.metric)
                }
                Err(error) if gravity(&error) == Gravity::Run => return Err(error),
                Err(error) => CaseEvidence::Error(error.to_string()),
            };
            let measured = &mut self.cases[index];
            measured.confirmation = Some(evidence);
            measured.duration_s += began.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// A calibration or a baseline of another device, driver or method says nothing here: better no
    /// verdict.
    fn look_at_conditions(&mut self, now: Option<RunEnvironment>) -> Result<(), ExecError> {
        let Some(now) = now else { return Ok(()) };
        if let Some(first) = &self.seen {
            if (first.device.kind, &first.device.name) != (now.device.kind, &now.device.name) {
                return Err(ExecError::ConditionsDiffer(format!(
                    "the suite was begun on {} and went on on {}: its cases are not comparable; \
                     give the server devices of one kind",
                    first.device.name, now.device.name
                )));
            }
            if first.method.is_some() {
                return Ok(());
            }
        }
        // What did not run shows the device, and nothing of how it measures.
        if now.method.is_some() {
            let conditions = CalibrationConditions::of(&now, self.plan.preset);
            if let Some(pin) = &self.plan.pin {
                pin.check(&BaselinePin::from(&conditions))
                    .map_err(|error| ExecError::ConditionsDiffer(error.to_string()))?;
            }
            if let (VerdictBy::Times, Some(calibration)) =
                (now.verdict_by(), &self.plan.calibration)
            {
                let checked = calibration.check(&conditions);
                checked.map_err(|error| ExecError::ConditionsDiffer(error.to_string()))?;
            }
        }
        self.seen = Some(now);
        Ok(())
    }

    /// Where nothing was calibrated, a launch too small to carry the gate is worth a remark.
    fn note_idle(&mut self, index: usize, response: &CompareResponse) {
        if self.plan.calibration.is_some() {
            return;
        }
        if let Some(why) = idle_multiprocessors(response) {
            let name = &self.cases[index].spec.name;
            self.plan.notes.push(format!(
                "case `{name}`: {why}, so that its time hangs on their placement; calibrated, it \
                 would only inform"
            ));
        }
    }
}

/// Whether a kernel is compiled before a worker runs it.
fn is_built_ahead(kernel: &KernelCode) -> bool {
    match kernel.family().runtime() {
        KernelRuntime::Worker => true,
        KernelRuntime::Judge | KernelRuntime::Process => false,
    }
}
