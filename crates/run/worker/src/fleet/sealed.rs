//! Runs a job in separate processes: one process judges, others run the kernels.
//!
//! The judge generates inputs, poisons outputs, compares and decides; it runs no submitted code.
//! The lease's worker has the candidate, and a second worker has the references, which are not
//! trusted either. Each of them can access only the buffers of the judge's memory, and only between
//! its own launches. Only the judge can pass a job: if it ends without a verdict, the job does not
//! pass.

use std::future::Future;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tokio::sync::watch;

use super::RunEvent;
use super::aide::Aide;
use super::answer::{Answer, outcome_of};
use super::kind::WorkerKind;
use super::lease::{Lease, unavailable};
use super::process::{StartPlan, Worker};
use crate::protocol::{
    Blame, EvaluatePlan, EvaluatedRun, JudgePlan, JudgedTask, RunFailure, RunOutcome, SealedFacts,
    TaskPlan, WorkerJob, WorkerTask,
};
use warpgauge_model::FailureCode;

/// Time limit for a runner to end after its judge has ended.
const PARTING: Duration = Duration::from_secs(2);

/// Minimum time limit of a judge for verifying the launches that a candidate handed over, after the
/// candidate has ended.
const VERDICT: Duration = Duration::from_secs(30);

/// Maximum number of attempts to connect the judge and the runners.
const ATTEMPTS: usize = 3;

/// Workers of a device that sealed jobs need in addition to the lease's worker.
pub(super) struct Sealing {
    judge: Aide,
    reference: Aide,
}

impl Sealing {
    /// Prepares the workers without starting any. `timing` is the plan for starting timing workers.
    pub(super) fn new(timing: &StartPlan) -> Self {
        let judge = StartPlan { kind: WorkerKind::Judge, ..timing.clone() };
        Self { judge: Aide::new(judge), reference: Aide::new(timing.clone()) }
    }

    /// Starts the workers in advance, so that the device's first evaluation does not wait for them.
    /// If a start fails, an evaluation that needs the worker tries again and reports the error.
    pub(super) async fn summon(&self) {
        let start = async |aide: &Aide| {
            if let Ok(worker) = aide.take().await {
                aide.keep(worker);
            }
        };
        tokio::join!(start(&self.judge), start(&self.reference));
    }

    /// Returns the judge of a job and, if the job has references, their worker. The error says why
    /// they are missing.
    async fn convene(&self, references: bool) -> Result<Court, String> {
        let reference = async {
            match references {
                true => self.reference.take().await.map(Some),
                false => Ok(None),
            }
        };
        // Both start at the same time, because each start takes a fraction of a second.
        match tokio::join!(self.judge.take(), reference) {
            (Ok(judge), Ok(reference)) => Ok(Court { judge, reference }),
            (Ok(judge), Err(reason)) => {
                self.judge.keep(judge);
                Err(reason)
            }
            (Err(reason), reference) => {
                if let Ok(Some(reference)) = reference {
                    self.reference.keep(reference);
                }
                Err(reason)
            }
        }
    }

    /// From now on, ends workers that are returned, instead of keeping them.
    pub(super) fn close(&self) {
        self.judge.close();
        self.reference.close();
    }

    /// Ends the judge and the worker for references.
    pub(super) fn dismiss(&self) {
        self.judge.dismiss();
        self.reference.dismiss();
    }
}

impl Lease {
    /// Runs a job for which processes other than the judge make all launches. Limits and failures
    /// are as for [`Lease::run`].
    pub async fn run_sealed<P: TaskPlan + Into<JudgedTask>>(
        &mut self,
        job: WorkerJob<P>,
        time_limit: Duration,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> RunOutcome<P::Output> {
        let WorkerJob { id, directory, program, task } = job;
        let judged = WorkerJob { id, directory, program, task: task.into() };
        outcome_of::<P>(self.sealed(judged, time_limit, on_event).await)
    }

    async fn sealed(
        &mut self,
        job: WorkerJob<JudgedTask>,
        time_limit: Duration,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> Answer {
        let mut court = match self.assemble(job.task.has_references(), false).await {
            Ok(court) => court,
            Err(Hindrance::Candidate(failure)) => return Err(failure),
            Err(Hindrance::Judge(reason)) => return Err(no_judge(reason)),
        };
        let candidate = self.worker.as_mut().ok_or_else(unavailable)?;
        let stop = self.fleet.stop.subscribe();
        let answer = court.judge_all(candidate, job, stop, (time_limit, on_event)).await;
        self.court = Some(court);
        self.replace_lost().await;
        answer
    }

    /// Runs an evaluation in which a separate process judges some of the timed launches, chosen at
    /// random. If that is impossible, the outcome gives the reason, and all launches are judged as
    /// by [`Lease::run`].
    pub async fn run_shared(
        &mut self,
        mut job: WorkerJob<EvaluatePlan>,
        time_limit: Duration,
        fresh: bool,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> RunOutcome<EvaluatedRun> {
        let reason = match self.shared(&job, time_limit, fresh, on_event).await {
            Ok(outcome) => return outcome,
            Err(reason) => reason,
        };
        tracing::warn!(device = self.device().ordinal, %reason, "no launch can be sealed");
        if let Some(trials) = &mut job.task.trials {
            trials.sealed = 0;
        }
        let mut outcome = self.run(job, time_limit, fresh, on_event).await;
        outcome.told.sealed = SealedFacts::unavailable(reason);
        outcome
    }

    /// Runs the evaluation with a judge. The error is the reason why no launch can be sealed.
    async fn shared(
        &mut self,
        job: &WorkerJob<EvaluatePlan>,
        time_limit: Duration,
        fresh: bool,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> Result<RunOutcome<EvaluatedRun>, String> {
        let mut court = match self.assemble(!job.task.checks.references.is_empty(), fresh).await {
            Ok(court) => court,
            Err(Hindrance::Candidate(failure)) => return Ok(failure.into()),
            Err(Hindrance::Judge(reason)) => return Err(reason),
        };
        let Some(candidate) = self.worker.as_mut() else { return Ok(unavailable().into()) };
        let stop = self.fleet.stop.subscribe();
        let heard = court.judge_some(candidate, job, stop, (time_limit, on_event)).await;
        self.court = Some(court);
        if let Ok(outcome) = &heard {
            self.fleet.lock().slots[self.slot].evaluated(&outcome.told);
        }
        if fresh && self.worker.as_mut().is_some_and(Worker::is_usable) {
            self.lose();
        }
        self.replace_lost().await;
        heard
    }

    /// Prepares the candidate's worker, the judge and the reference's worker, and connects them.
    /// Replaces a worker that ended while it was idle, which does not fail the job.
    async fn assemble(&mut self, references: bool, fresh: bool) -> Result<Court, Hindrance> {
        let mut failed = unavailable();
        for _ in 0..ATTEMPTS {
            self.make_ready(fresh).await.map_err(Hindrance::Candidate)?;
            let mut court = self.fleet.sealing[self.slot]
                .convene(references)
                .await
                .map_err(Hindrance::Judge)?;
            let Some(candidate) = self.worker.as_mut() else { break };
            match court.connect(candidate).await {
                Ok(()) => return Ok(court),
                Err(failure) => failed = failure,
            }
            self.court = Some(court);
            self.replace_lost().await;
        }
        Err(Hindrance::Candidate(failed))
    }

    /// Waits until the judge and the reference's worker have cleaned up after the last job, and
    /// keeps them for the next.
    pub(super) async fn adjourn(&mut self) {
        if let Some(court) = self.court.take() {
            court.close(&self.fleet.sealing[self.slot]).await;
        }
    }
}

/// Reason why a job cannot begin.
enum Hindrance {
    /// The candidate's worker is not available.
    Candidate(RunFailure),
    /// No judge is available.
    Judge(String),
}

/// The judge of a job and the worker for its references.
pub(super) struct Court {
    judge: Worker,
    reference: Option<Worker>,
}

/// The candidate's time limit, and the callback for progress events.
type Watched<'a> = (Duration, &'a (dyn Fn(RunEvent) + Send + Sync));

impl Court {
    /// Waits until both workers have cleaned up, and keeps them for the next job that needs them.
    pub(super) async fn close(self, sealing: &Sealing) {
        let settle = async |worker: Option<Worker>, aide: &Aide| {
            let Some(mut worker) = worker else { return };
            if worker.settle().await.is_ok() {
                aide.keep(worker);
            }
        };
        let reference = settle(self.reference, &sealing.reference);
        tokio::join!(settle(Some(self.judge), &sealing.judge), reference);
    }

    /// Connects the judge with each runner by a pair of sockets.
    async fn connect(&mut self, candidate: &mut Worker) -> Result<(), RunFailure> {
        for runner in [Some(candidate), self.reference.as_mut()].into_iter().flatten() {
            let (near, far) = UnixStream::pair().map_err(no_sockets)?;
            self.judge.hand(&near).await?;
            runner.hand(&far).await?;
        }
        Ok(())
    }

    /// Runs a job for which runners make all launches. The judge's answer is the job's answer.
    async fn judge_all(
        &mut self,
        candidate: &mut Worker,
        job: WorkerJob<JudgedTask>,
        stop: watch::Receiver<bool>,
        (time_limit, on_event): Watched<'_>,
    ) -> Answer {
        let plan = JudgePlan { task: job.task.clone(), has_reference: self.reference.is_some() };
        let Self { judge, reference } = self;
        let served = serve(&job, "candidate");
        let runners = async {
            let (candidate, reference) =
                tokio::join!(candidate.serve(served), beside(reference.as_mut(), &job));
            (Some(candidate), reference)
        };
        let judged = judge.run(job.with(WorkerTask::Judge(Box::new(plan))), time_limit, on_event);
        let (answer, runners) = first_and_others(judged, runners, stop, |_| PARTING).await;
        let (candidate, reference) = runners.unwrap_or_default();
        told(answer, candidate, reference)
    }

    /// Runs a job for which the candidate's worker makes all launches and hands some over to the
    /// judge. The error says why it cannot hand over any.
    async fn judge_some(
        &mut self,
        candidate: &mut Worker,
        job: &WorkerJob<EvaluatePlan>,
        stop: watch::Receiver<bool>,
        (time_limit, on_event): Watched<'_>,
    ) -> Result<RunOutcome<EvaluatedRun>, String> {
        let task = JudgedTask::Share(Box::new(job.task.clone()));
        let plan = JudgePlan { task, has_reference: self.reference.is_some() };
        let Self { judge, reference } = self;
        let own = WorkerJob {
            id: format!("{}-judge", job.id),
            ..job.with(WorkerTask::Judge(Box::new(plan)))
        };
        let others = async {
            let (judged, reference) =
                tokio::join!(judge.serve(own), beside(reference.as_mut(), job));
            (Some(judged), reference)
        };
        let run = candidate.run(job.clone().any(), time_limit, on_event);
        let parting = |answer: &Answer| match answer {
            Ok(outcome) if outcome.failure.is_none() => time_limit.max(VERDICT),
            _ => PARTING,
        };
        let (answer, others) = first_and_others(run, others, stop, parting).await;
        let (judged, reference) = others.unwrap_or_default();
        let judged = judged.map(outcome_of::<EvaluatePlan>);
        let outcome = outcome_of::<EvaluatePlan>(answer);
        let reference = reference.and_then(|answer| answer.err());
        shared(outcome, judged, reference)
    }
}

/// Returns the job of a runner, which makes launches until its judge requests no more.
fn serve<T>(job: &WorkerJob<T>, role: &str) -> WorkerJob {
    // The judge's messages say which program to launch.
    WorkerJob { id: format!("{}-{role}", job.id), ..job.with(WorkerTask::Serve) }
}

/// Runs the worker for references, if the job has references.
async fn beside<T>(worker: Option<&mut Worker>, job: &WorkerJob<T>) -> Option<Answer> {
    match worker {
        Some(worker) => Some(worker.serve(serve(job, "reference")).await),
        None => None,
    }
}

/// Waits for the first future, on which the others depend, and then for the others, as long as
/// `parting` allows. A worker that hangs is killed when it is dropped. If the server is shutting
/// down, the answer says so.
async fn first_and_others<B>(
    first: impl Future<Output = Answer>,
    others: impl Future<Output = B>,
    mut stop: watch::Receiver<bool>,
    parting: impl Fn(&Answer) -> Duration,
) -> (Answer, Option<B>) {
    let both = async {
        let (mut first, mut others) = (std::pin::pin!(first), std::pin::pin!(others));
        let mut ended = None;
        let answer = loop {
            tokio::select! {
                answer = &mut first => break answer,
                others = &mut others, if ended.is_none() => ended = Some(others),
            }
        };
        let ended = match ended {
            Some(ended) => Some(ended),
            None => tokio::time::timeout(parting(&answer), others).await.ok(),
        };
        (answer, ended)
    };
    tokio::select! {
        ended = both => ended,
        // The error case cannot occur: it would mean that the fleet is gone, but the fleet owns
        // this lease.
        _ = stop.wait_for(|&stop| stop) => {
            let failure = RunFailure {
                code: FailureCode::ShuttingDown,
                message: "the server is shutting down; the job was stopped".to_owned(),
                blame: Blame::Environment,
            };
            (Err(failure), None)
        }
    }
}

/// Merges the candidate's outcome with the judge's verdict on the launches that were handed over.
/// The error says why none were handed over. If the judge gave no verdict, the job does not pass.
fn shared(
    mut outcome: RunOutcome<EvaluatedRun>,
    judged: Option<RunOutcome<EvaluatedRun>>,
    reference: Option<RunFailure>,
) -> Result<RunOutcome<EvaluatedRun>, String> {
    if let Some(reason) = judged.as_ref().and_then(|judged| judged.told.sealed.unavailable.clone())
    {
        return Err(reason);
    }
    let lost = |failure: &RunFailure| failure.code == FailureCode::JudgeLost;
    match judged {
        // The candidate's worker has the most precise report of how the candidate failed.
        Some(judged) if outcome.failure.as_ref().is_none_or(lost) => {
            let (all, sealed) = (&mut outcome.told.audits, &judged.told.audits);
            (all.done, all.skipped) = (all.done + sealed.done, all.skipped + sealed.skipped);
            outcome.told.sealed.verified = sealed.done;
            if let Some(failure) = judged.failure {
                let died = failure.code == FailureCode::WorkerDied;
                let own = reference.filter(|_| died && failure.blame == Blame::Reference);
                let own = own.map(|own| ended_by(Blame::Reference, &own));
                outcome.failure = Some(own.unwrap_or(failure));
            } else if judged.told.samples_ms.len() != outcome.told.sealed.turns as usize
                && outcome.failure.is_none()
            {
                outcome.failure = Some(no_verdict());
            }
        }
        None if outcome.failure.is_none() => outcome.failure = Some(no_verdict()),
        _ => {}
    }
    Ok(outcome)
}

/// Returns a runner's failure. Blames the code that ran there, unless the machine is at fault.
fn ended_by(blame: Blame, own: &RunFailure) -> RunFailure {
    let blame = if own.blame == Blame::Environment { own.blame } else { blame };
    RunFailure { blame, ..own.clone() }
}

fn no_verdict() -> RunFailure {
    RunFailure {
        code: FailureCode::JudgeLost,
        message: "the process that judges sealed launches did not judge all of them".to_owned(),
        blame: Blame::Environment,
    }
}

fn no_judge(reason: String) -> RunFailure {
    let message = format!("no process could be started to judge the kernel: {reason}");
    RunFailure { message, ..unavailable() }
}

/// Returns the judge's verdict, with the runners' explanations of their failures.
fn told(mut answer: Answer, candidate: Option<Answer>, reference: Option<Answer>) -> Answer {
    let failure = match &mut answer {
        Ok(outcome) => outcome.failure.as_mut(),
        Err(failure) => Some(failure),
    };
    // The server knows why a process ended; the judge knows only that it ended.
    if let Some(failure) = failure.filter(|failure| failure.code == FailureCode::WorkerDied) {
        let went_well = |answer: &Option<Answer>| {
            answer
                .as_ref()
                .is_some_and(|answer| matches!(answer, Ok(told) if told.failure.is_none()))
        };
        let of_reference = failure.blame == Blame::Reference || went_well(&candidate);
        let own = match if of_reference { &reference } else { &candidate } {
            Some(Ok(outcome)) => outcome.failure.as_ref(),
            Some(Err(failure)) => Some(failure),
            None => None,
        };
        if let Some(own) = own {
            let blame = if of_reference { Blame::Reference } else { Blame::Candidate };
            *failure = ended_by(blame, own);
        }
    }
    if let (Ok(outcome), Some(Ok(own))) = (&mut answer, &candidate) {
        outcome.printed.push_str(&own.printed);
    }
    answer
}

fn no_sockets(error: std::io::Error) -> RunFailure {
    let message = format!("could not create the sockets between a judge and a runner: {error}");
    RunFailure { message, ..unavailable() }
}
