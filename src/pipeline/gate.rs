//! The order of a gate run: a first look at every case, a second in fresh processes at those that
//! seem slower, and the conditions that all of them must share. What comparisons mean is
//! [`crate::gate`]'s.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::error::ServiceError;
use super::jobs::LiveJob;
use super::run::Shared;
use crate::contract::{CompareRequest, DecisionSpec};
use crate::gate::report::GateReport;
use crate::gate::{
    CasePolicy, Clocked, Conditions, Evidence, GatePlan, Manner, MeasuredCase, Pin, Sides, finish,
    first_alphas, idle_multiprocessors, unconfirmed,
};
use crate::report::{CompareResponse, VerdictBy};

/// What an error of one comparison means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gravity {
    /// It says something of this case alone.
    Case,
    /// No further comparison can succeed; what was measured is reported.
    Suite,
    /// The run is over, with nothing to report.
    Run,
}

fn gravity(error: &ServiceError) -> Gravity {
    match error {
        ServiceError::ShuttingDown | ServiceError::Cancelled { .. } => Gravity::Run,
        ServiceError::Unavailable(_) | ServiceError::QueueFull { .. } => Gravity::Suite,
        _ => Gravity::Case,
    }
}

/// Takes a suite to its report. `counts`: it is known before that exact counts will decide.
///
/// # Errors
/// Where there is nothing to report: no comparison could be made at all, or they were made under
/// conditions that the plan does not bear.
pub(super) async fn run_gate(
    plan: GatePlan,
    shared: &Shared,
    job: &LiveJob,
    counts: bool,
) -> Result<GateReport, ServiceError> {
    let began = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let all = plan.cases.iter().filter(|case| case.sides.is_ok()).count();
    job.points(0, all);
    let cases = plan.unmeasured();
    let mut run = Run { plan, cases, seen: None, counts, shared, job, done: 0, all };
    for case in &run.plan.cases {
        if let Some(note) = case.sides.as_ref().ok().and_then(Sides::unused) {
            run.plan.notes.push(format!("case `{}`: {note}", case.spec.name));
        }
    }
    run.first_looks().await?;
    run.confirm().await?;
    let clocked = Clocked { started_unix_s: started, duration_s: began.elapsed().as_secs_f64() };
    Ok(finish(run.plan, &run.cases, run.seen.as_ref(), clocked, job.id()))
}

/// The conditions are not those that something holds for.
pub(super) fn differs(message: String) -> ServiceError {
    ServiceError::Conflict { code: "conditions_differ", message }
}

/// A suite on its way to a verdict. Each of its comparisons has the device for itself, and gives it
/// back.
struct Run<'a> {
    plan: GatePlan,
    /// As far as they were measured, in the plan's order.
    cases: Vec<MeasuredCase>,
    /// The device and the method of the first comparison that succeeded.
    seen: Option<CompareResponse>,
    counts: bool,
    shared: &'a Shared,
    job: &'a LiveJob,
    /// Comparisons done, of all that are to be made as far as that is known; the job's watchers see
    /// them.
    done: usize,
    all: usize,
}

impl Run<'_> {
    async fn compare(&mut self, request: CompareRequest) -> Result<CompareResponse, ServiceError> {
        let outcome = self.shared.compare(self.job, request).await;
        self.done += 1;
        self.job.points(self.done, self.all);
        outcome
    }

    fn request(&self, index: usize, alpha: f64, fresh: bool) -> Option<CompareRequest> {
        let sides = self.plan.cases[index].sides.as_ref().ok()?;
        let policy: &CasePolicy = &self.cases[index].policy;
        let decision = DecisionSpec {
            margin: Some(policy.margin),
            equivalence: Some(policy.delta),
            alpha: Some(alpha),
            blocks: None,
        };
        let by = self.seen.as_ref().map(|seen| seen.verdict_by);
        Some(sides.comparison(&Manner {
            preset: self.plan.preset,
            decision,
            fresh,
            counted: self.counts || by == Some(VerdictBy::Counts),
            measure_identical: self.plan.measure_identical,
        }))
    }

    async fn first_looks(&mut self) -> Result<(), ServiceError> {
        let policies = self.cases.iter().map(|case| case.policy).collect::<Vec<_>>();
        let alphas = first_alphas(&policies);
        let mut gone: Option<String> = None;
        for (index, alpha) in alphas.into_iter().enumerate() {
            let Some(request) = self.request(index, alpha, false) else { continue };
            if let Some(why) = &gone {
                let why = format!("not measured, because of an earlier case's error: {why}");
                self.cases[index].first = Evidence::Error(why);
                continue;
            }
            let began = Instant::now();
            match self.compare(request).await {
                Ok(response) => {
                    self.look_at_conditions(&response)?;
                    self.note_idle(index, &response);
                    let measured = &mut self.cases[index];
                    measured.set_first(&response);
                    measured.duration_s = began.elapsed().as_secs_f64();
                }
                Err(error) => {
                    let gravity = gravity(&error);
                    // Nothing was measured yet: the error says more than a report of errors.
                    if gravity == Gravity::Run || gravity == Gravity::Suite && self.seen.is_none() {
                        return Err(error);
                    }
                    let why = error.to_string();
                    gone = (gravity == Gravity::Suite).then(|| why.clone());
                    self.cases[index].first = Evidence::Error(why);
                }
            }
        }
        Ok(())
    }

    /// Compares again, in fresh processes, what seems slower.
    async fn confirm(&mut self) -> Result<(), ServiceError> {
        let unconfirmed = unconfirmed(&self.cases);
        self.all += unconfirmed.len();
        self.job.points(self.done, self.all);
        for index in unconfirmed {
            let alpha = self.cases[index].policy.alpha;
            let Some(request) = self.request(index, alpha, true) else { continue };
            let began = Instant::now();
            let outcome = self.compare(request).await;
            let evidence = match outcome {
                Ok(response) => {
                    self.look_at_conditions(&response)?;
                    Evidence::of(&response, self.cases[index].spec.metric)
                }
                Err(error) if gravity(&error) == Gravity::Run => return Err(error),
                Err(error) => Evidence::Error(error.to_string()),
            };
            let measured = &mut self.cases[index];
            measured.confirmation = Some(evidence);
            measured.duration_s += began.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// A calibration or a baseline of another device, driver or method says nothing here: better no
    /// verdict.
    fn look_at_conditions(&mut self, response: &CompareResponse) -> Result<(), ServiceError> {
        if let Some(seen) = &self.seen {
            let (first, then) = (&seen.device, &response.device);
            return if (first.kind, &first.name) == (then.kind, &then.name) {
                Ok(())
            } else {
                Err(differs(format!(
                    "the suite was begun on {} and went on on {}: its cases are not comparable; \
                     give the server devices of one kind",
                    first.name, then.name
                )))
            };
        }
        let now = Conditions::of(response, self.plan.preset);
        if let Some(pin) = &self.plan.pin {
            pin.check(&Pin::from(&now)).map_err(|error| differs(error.to_string()))?;
        }
        if let (VerdictBy::Times, Some(calibration)) = (response.verdict_by, &self.plan.calibration)
        {
            let checked = calibration.check(&now);
            checked.map_err(|error| differs(error.to_string()))?;
        }
        self.seen = Some(response.clone());
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
