//! Executes a gate run. The engine compares every case once. It compares those that seem slower
//! again, in fresh processes. It checks that all cases run under the same conditions.
//! [`warpgauge_gate`] interprets the comparisons. The main function is [`run_gate`].

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

/// Number of cases whose kernels are compiled at once. The compile stage has a separate bound.
const CASES_AT_ONCE: usize = 16;

/// Effect of one case's error on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gravity {
    /// The error affects only the case in which it occurred.
    Case,
    /// No further comparison can succeed. The report contains the cases that were measured before.
    Suite,
    /// The gate run ends without a report.
    Run,
}

fn gravity(error: &ExecError) -> Gravity {
    match error {
        ExecError::ShuttingDown | ExecError::ConditionsDiffer(_) => Gravity::Run,
        ExecError::Unavailable(_) | ExecError::QueueFull { .. } => Gravity::Suite,
        _ => Gravity::Case,
    }
}

/// Runs a suite and returns its report.
///
/// # Errors
/// Fails if there is nothing to report: no comparison was possible, or the conditions differ from
/// those that the plan requires.
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

/// Returns the reason why nothing can be compared with a baseline, or `None` if the error has
/// another cause. The baseline does not compile, crashes, fails its own check, or does not fit its
/// contract.
fn broken_baseline(error: &ExecError) -> Option<String> {
    let ExecError::Invalid(problems) = error else { return None };
    let theirs = |path: &str| {
        let rest = path.strip_prefix(REFERENCE_PATH);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let broken = |code: &FailureCode| *code != FailureCode::ReferenceNotTimed;
    let all = problems.iter().all(|problem| theirs(&problem.path) && broken(&problem.code));
    let first = problems.first().filter(|_| all)?;
    Some(format!("nothing can be compared with the baseline: {}", first.message))
}

/// Returns the problem of a candidate that does not fit its own contract, or `None` if the error
/// has another cause. Arguments that differ from the baseline's do not count.
fn unfit_candidate(error: &ExecError) -> Option<String> {
    let ExecError::Invalid(problems) = error else { return None };
    let own = |problem: &&crate::error::Problem| {
        problem.path.starts_with("custom_kernel") && problem.code != FailureCode::DifferentArguments
    };
    problems.iter().find(own).map(|_| error.to_string())
}

/// A gate run in progress. Each of its comparisons leases the device separately, and then releases
/// it.
struct Run<'a> {
    plan: GatePlan,
    /// Results so far, in the order of the plan's cases.
    cases: Vec<MeasuredCase>,
    /// Device and method of the first case that was measured. A case that did not run gives only
    /// the device.
    seen: Option<RunEnvironment>,
    /// Whether exact counts decide the verdicts, because all devices are emulated.
    counts: bool,
    engine: &'a Engine,
    job: &'a ActiveOrder<'a>,
    /// Number of cases and confirmations that are done. Clients that follow the job see this number
    /// and `all`.
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

    /// Compiles the kernels of all cases before the first comparison leases a device, so that
    /// comparisons find the images in the cache. Each case reports its compile errors.
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
                // Nothing has been measured yet, so the error is more useful than a report.
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

    /// Measures one case for the first time. A case with a usable baseline is compared with it and
    /// checked against its contract's expectations. A case without a usable baseline is evaluated
    /// alone.
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

    /// Evaluates a kernel alone. The inner error is the reason why the kernel does not fit its
    /// contract. Such a reason counts like a compile error.
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

    /// Compiles, runs and checks a case without a usable baseline.
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
                // A case that existed before must not pass merely because nothing can be checked.
                if why == NoBaseline::Broken
                    && contract.expected.is_empty()
                    && matches!(evidence, CaseEvidence::Alone { .. })
                {
                    evidence = CaseEvidence::Error(format!(
                        "{what}; the candidate runs, but its contract has no `expected` to check \
                         its outputs: add one"
                    ));
                }
                self.cases[index].set_alone(&report, evidence);
            }
        }
        Ok(())
    }

    /// Checks the candidate against its contract's expectations. They apply to baseline and
    /// candidate. A baseline that was never correct does not excuse a wrong candidate.
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
        // If a useless kernel would produce the baseline's outputs, `expected` may be stricter.
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
                    _ => format!("it does not meet its contract's `expected`: {why}"),
                };
                self.cases[index].first = CaseEvidence::Invalid(why);
                self.cases[index].kernel_verdict = verdict;
            }
            (Some(CaseEvidence::Error(why)), _) if !differs => {
                self.cases[index].first = CaseEvidence::Error(why);
            }
            // The candidate's outputs are correct but differ from the baseline's. So the baseline
            // is checked, too.
            (None, Ok(report)) if differs => {
                let theirs = alone(&sides.baseline_as_candidate(), manner, false);
                if let Ok(theirs) = self.evaluate(theirs).await?
                    && let Some(CaseEvidence::Invalid(why)) = CaseEvidence::against(&theirs)
                {
                    let what = format!("the baseline does not meet `expected`: {why}");
                    let evidence = CaseEvidence::alone(&report, metric, NoBaseline::Broken, &what);
                    self.cases[index].set_alone(&report, evidence);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Repeats the comparison of the cases that seem slower, in fresh processes.
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

    /// Checks that the conditions match those of the first case, the baseline and the calibration.
    /// If they do not match, earlier numbers do not apply, and the run ends without a verdict.
    fn look_at_conditions(&mut self, now: Option<RunEnvironment>) -> Result<(), ExecError> {
        let Some(now) = now else { return Ok(()) };
        if let Some(first) = &self.seen {
            if (first.device.kind, &first.device.name) != (now.device.kind, &now.device.name) {
                return Err(ExecError::ConditionsDiffer(format!(
                    "the suite began on {} and continued on {}: its cases are not comparable; \
                     give the server devices of one kind",
                    first.device.name, now.device.name
                )));
            }
            if first.method.is_some() {
                return Ok(());
            }
        }
        // A case that did not run shows the device but not the method.
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

    /// Adds a note about a launch that is too small to decide the gate, if there is no calibration.
    fn note_idle(&mut self, index: usize, response: &CompareResponse) {
        if self.plan.calibration.is_some() {
            return;
        }
        if let Some(why) = idle_multiprocessors(response) {
            let name = &self.cases[index].spec.name;
            self.plan.notes.push(format!(
                "case `{name}`: {why}, so its time depends on their placement; calibrated, it \
                 would only inform"
            ));
        }
    }
}

/// Returns whether a kernel is compiled before a worker runs it.
fn is_built_ahead(kernel: &KernelCode) -> bool {
    match kernel.family().runtime() {
        KernelRuntime::Worker => true,
        KernelRuntime::Judge | KernelRuntime::Process => false,
    }
}
