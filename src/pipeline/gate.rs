//! The order of a gate run: a first look at every case, a second in fresh processes at those that
//! seem slower, and the conditions that all of them must share.
//!
//! Where the comparisons are made — by this pipeline or by a server — is a [`GateBench`]'s business;
//! what they mean is [`crate::gate`]'s.

use std::future::Future;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::contract::{CompareRequest, DecisionSpec};
use crate::gate::report::GateReport;
use crate::gate::{
    CalibrationError, CasePolicy, Clocked, Conditions, Evidence, GatePlan, Manner, MeasuredCase,
    Pin, PinMismatch, Sides, finish, first_alphas, idle_multiprocessors, unconfirmed,
};
use crate::report::{CompareResponse, VerdictBy};

/// Where comparisons are made.
pub trait GateBench: Send {
    /// Why one was not.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Makes one comparison.
    fn compare(
        &mut self,
        request: CompareRequest,
    ) -> impl Future<Output = Result<CompareResponse, Self::Error>> + Send;

    /// What an error means for the run.
    fn gravity(error: &Self::Error) -> Gravity;

    /// The error as the report quotes it.
    fn quoted(error: &Self::Error) -> String;
}

/// What an error of one comparison means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gravity {
    /// It says something of this case alone.
    Case,
    /// No further comparison can succeed; what was measured is reported.
    Suite,
    /// The run is over, with nothing to report.
    Run,
}

/// How far a run is.
pub trait GateProgress: Send {
    /// So many comparisons more than it seemed.
    fn extend(&mut self, by: usize);
    /// A comparison begins.
    fn begin(&mut self, what: &str);
    /// It ended.
    fn end(&mut self);
}

/// Why a run has no report. None of it is a regression.
#[derive(Debug, thiserror::Error)]
pub enum GateFault<E: std::error::Error + 'static> {
    /// No comparison could be made.
    #[error(transparent)]
    Bench(E),
    /// The calibration is for something else.
    #[error(transparent)]
    Calibration(Box<CalibrationError>),
    /// The stored baseline is for something else.
    #[error(transparent)]
    Pin(Box<PinMismatch>),
    /// Devices of several models took part.
    #[error(
        "the suite was begun on {first} and went on on {then}: its cases are not comparable; give \
         the server devices of one kind"
    )]
    Devices {
        /// The first one.
        first: String,
        /// Another one.
        then: String,
    },
}

/// Takes a suite to its report. `counts`: it is known before that exact counts will decide.
///
/// # Errors
/// Where there is nothing to report: no comparison could be made at all, or they were made under
/// conditions that the plan does not bear.
pub async fn run_gate<B: GateBench>(
    plan: GatePlan,
    bench: &mut B,
    counts: bool,
    progress: &mut dyn GateProgress,
) -> Result<GateReport, GateFault<B::Error>> {
    let began = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let cases = plan.unmeasured();
    let mut run = Run { plan, cases, seen: None, counts };
    for case in &run.plan.cases {
        if let Some(note) = case.sides.as_ref().ok().and_then(Sides::unused) {
            run.plan.notes.push(format!("case `{}`: {note}", case.spec.name));
        }
    }
    run.first_looks(bench, progress).await?;
    run.confirm(bench, progress).await?;
    let clocked = Clocked { started_unix_s: started, duration_s: began.elapsed().as_secs_f64() };
    Ok(finish(run.plan, &run.cases, run.seen.as_ref(), clocked))
}

/// A suite on its way to a verdict.
struct Run {
    plan: GatePlan,
    /// As far as they were measured, in the plan's order.
    cases: Vec<MeasuredCase>,
    /// The device and the method of the first comparison that succeeded.
    seen: Option<CompareResponse>,
    counts: bool,
}

impl Run {
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

    async fn first_looks<B: GateBench>(
        &mut self,
        bench: &mut B,
        progress: &mut dyn GateProgress,
    ) -> Result<(), GateFault<B::Error>> {
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
            progress.begin(&self.cases[index].spec.name);
            let began = Instant::now();
            match bench.compare(request).await {
                Ok(response) => {
                    self.look_at_conditions(&response)?;
                    self.note_idle(index, &response);
                    let measured = &mut self.cases[index];
                    measured.set_first(&response);
                    measured.duration_s = began.elapsed().as_secs_f64();
                }
                Err(error) => {
                    let gravity = B::gravity(&error);
                    // Nothing was measured yet: the error says more than a report of errors.
                    if gravity == Gravity::Run || gravity == Gravity::Suite && self.seen.is_none() {
                        return Err(GateFault::Bench(error));
                    }
                    let why = B::quoted(&error);
                    gone = (gravity == Gravity::Suite).then(|| why.clone());
                    self.cases[index].first = Evidence::Error(why);
                }
            }
            progress.end();
        }
        Ok(())
    }

    /// Compares again, in fresh processes, what seems slower.
    async fn confirm<B: GateBench>(
        &mut self,
        bench: &mut B,
        progress: &mut dyn GateProgress,
    ) -> Result<(), GateFault<B::Error>> {
        let unconfirmed = unconfirmed(&self.cases);
        progress.extend(unconfirmed.len());
        for index in unconfirmed {
            let alpha = self.cases[index].policy.alpha;
            let Some(request) = self.request(index, alpha, true) else { continue };
            progress.begin(&format!("{}, again in fresh processes", self.cases[index].spec.name));
            let began = Instant::now();
            let outcome = bench.compare(request).await;
            let evidence = match outcome {
                Ok(response) => {
                    self.look_at_conditions(&response)?;
                    Evidence::of(&response, self.cases[index].spec.metric)
                }
                Err(error) if B::gravity(&error) == Gravity::Run => {
                    return Err(GateFault::Bench(error));
                }
                Err(error) => Evidence::Error(B::quoted(&error)),
            };
            let measured = &mut self.cases[index];
            measured.confirmation = Some(evidence);
            measured.duration_s += began.elapsed().as_secs_f64();
            progress.end();
        }
        Ok(())
    }

    /// A calibration or a baseline of another device, driver or method says nothing here: better no
    /// verdict.
    fn look_at_conditions<E: std::error::Error>(
        &mut self,
        response: &CompareResponse,
    ) -> Result<(), GateFault<E>> {
        if let Some(seen) = &self.seen {
            let (first, then) = (&seen.device, &response.device);
            return if (first.kind, &first.name) == (then.kind, &then.name) {
                Ok(())
            } else {
                Err(GateFault::Devices { first: first.name.clone(), then: then.name.clone() })
            };
        }
        let now = Conditions::of(response, self.plan.preset);
        if let Some(pin) = &self.plan.pin {
            pin.check(&Pin::from(&now)).map_err(|error| GateFault::Pin(Box::new(error)))?;
        }
        if let (VerdictBy::Times, Some(calibration)) = (response.verdict_by, &self.plan.calibration)
        {
            let checked = calibration.check(&now);
            checked.map_err(|error| GateFault::Calibration(Box::new(error)))?;
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
