//! A job in processes that have nothing in common: one judges, others have the kernels.
//!
//! The judge generates inputs, poisons outputs, compares and decides; it runs no stranger's code. The
//! lease's worker has the candidate, a second one the references, which are no more trusted. Either
//! reaches of the judge's memory the buffers alone, and those between its own launches only. The judge
//! decides: where it ends without a verdict there is none.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use tokio::sync::watch;

use super::aide::Aide;
use super::answer::{Answer, outcome_of};
use super::kind::WorkerKind;
use super::lease::{Lease, unavailable};
use super::process::{StartPlan, Worker};
use super::slot::Slot;
use super::{Fleet, RunEvent};
use crate::protocol::{Blame, Job, JudgePlan, Judged, Plan, RunFailure, RunOutcome, Task};
use warpgauge_model::FailureCode;

/// Longest time that a runner takes to end once its judge has ended.
const PARTING: Duration = Duration::from_secs(2);

/// The workers of a device that sealed jobs need beside the lease's.
#[derive(Default)]
pub(super) struct Sealing {
    judge: Aide,
    reference: Aide,
}

fn judge_of(slot: &mut Slot) -> &mut Aide {
    &mut slot.sealing.judge
}

fn reference_of(slot: &mut Slot) -> &mut Aide {
    &mut slot.sealing.reference
}

impl Lease {
    /// Runs a job whose launches are made by processes apart from the one that judges them. Limits and
    /// failures are as for [`Lease::run`].
    pub async fn run_sealed<P: Plan + Into<Judged>>(
        &mut self,
        job: Job<P>,
        time_limit: Duration,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> RunOutcome<P::Told> {
        let Job { id, directory, program, task } = job;
        let task: Judged = task.into();
        let job = Job { id, directory, program, task };
        outcome_of::<P>(self.run_sealed_any(job, time_limit, on_event).await)
    }

    async fn run_sealed_any(
        &mut self,
        job: Job<Judged>,
        time_limit: Duration,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> Answer {
        self.make_ready(false).await?;
        let (fleet, slot) = (std::sync::Arc::clone(&self.fleet), self.slot);
        let references = job.task.has_references();
        // Side by side: each takes a third of a second where it has to be started.
        let timing = &fleet.plans[slot];
        let plan = StartPlan { kind: WorkerKind::Judge, ..timing.clone() };
        let start_reference = async {
            match references {
                true => fleet.take_aide(slot, reference_of, timing).await.map(Some),
                false => Ok(None),
            }
        };
        let (judge, reference) =
            tokio::join!(fleet.take_aide(slot, judge_of, &plan), start_reference);
        let candidate = self.worker.as_mut().ok_or_else(unavailable)?;
        let (judge, reference) = match (judge, reference) {
            (Ok(judge), Ok(reference)) => (judge, reference),
            (judge, reference) => {
                let reason = [judge.as_ref().err(), reference.as_ref().err()];
                let reason = reason.into_iter().flatten().next().cloned().unwrap_or_default();
                if let Ok(judge) = judge {
                    fleet.keep_aide(slot, judge_of, judge);
                }
                if let Ok(Some(reference)) = reference {
                    fleet.keep_aide(slot, reference_of, reference);
                }
                let message = format!("no process could be started to judge the kernel: {reason}");
                return Err(RunFailure { message, ..unavailable() });
            }
        };
        let mut court = Court { judge, candidate, reference };
        let answer = court.hear(job, time_limit, fleet.stop.subscribe(), on_event).await;
        let Court { judge, reference, .. } = court;
        tokio::join!(
            settle(&fleet, slot, judge_of, Some(judge)),
            settle(&fleet, slot, reference_of, reference)
        );
        self.replace_lost().await;
        answer
    }
}

/// Keeps a worker for the next sealed job, once it has cleaned up; the device is the lease's as long.
async fn settle(fleet: &Fleet, slot: usize, place: super::aide::Place, worker: Option<Worker>) {
    let Some(mut worker) = worker else { return };
    if worker.settle().await.is_ok() {
        fleet.keep_aide(slot, place, worker);
    }
}

/// Who takes part.
struct Court<'a> {
    judge: Worker,
    candidate: &'a mut Worker,
    reference: Option<Worker>,
}

impl Court<'_> {
    async fn hear(
        &mut self,
        job: Job<Judged>,
        time_limit: Duration,
        mut stop: watch::Receiver<bool>,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> Answer {
        for runner in [Some(&mut *self.candidate), self.reference.as_mut()].into_iter().flatten() {
            let (near, far) = UnixStream::pair().map_err(no_sockets)?;
            self.judge.hand(&near).await?;
            runner.hand(&far).await?;
        }
        let plan = JudgePlan { task: job.task.clone(), has_reference: self.reference.is_some() };
        let serve = |role: &str| Job { id: format!("{}-{role}", job.id), ..job.with(Task::Serve) };
        let candidate = self.candidate.serve(serve("candidate"));
        let reference = async {
            match &mut self.reference {
                Some(worker) => Some(worker.serve(serve("reference")).await),
                None => None,
            }
        };
        let judge = self.judge.run(job.with(Task::Judge(Box::new(plan))), time_limit, on_event);
        let runners = async { tokio::join!(candidate, reference) };
        let mut runners = std::pin::pin!(runners);
        let answer = async {
            let mut judge = std::pin::pin!(judge);
            let mut ended = None;
            loop {
                tokio::select! {
                    answer = &mut judge => break (answer, ended),
                    both = &mut runners, if ended.is_none() => ended = Some(both),
                }
            }
        };
        let (answer, ended) = tokio::select! {
            heard = answer => heard,
            // An error means that the fleet is gone, which holds us: it cannot be.
            _ = stop.wait_for(|&stop| stop) => {
                return Err(RunFailure {
                    code: FailureCode::ShuttingDown,
                    message: "the server is shutting down; the job was stopped".to_owned(),
                    blame: Blame::Environment,
                });
            }
        };
        // The connections of a judge that has ended are closed. A runner that hangs is killed when its
        // worker is dropped.
        let ended = match ended {
            Some(ended) => Some(ended),
            None => tokio::time::timeout(PARTING, runners).await.ok(),
        };
        let (candidate, reference) = ended.map_or((None, None), |(a, b)| (Some(a), b));
        told(answer, candidate, reference)
    }
}

/// The judge's verdict, with what the runners say of themselves.
fn told(mut answer: Answer, candidate: Option<Answer>, reference: Option<Answer>) -> Answer {
    let failure = match &mut answer {
        Ok(outcome) => outcome.failure.as_mut(),
        Err(failure) => Some(failure),
    };
    // Why a process ended is known here better than to the judge, which only sees that it did.
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
            let blame = match own.blame {
                Blame::Environment => Blame::Environment,
                _ if of_reference => Blame::Reference,
                _ => Blame::Candidate,
            };
            *failure = RunFailure { blame, ..own.clone() };
        }
    }
    if let (Ok(outcome), Some(Ok(own))) = (&mut answer, &candidate) {
        outcome.printed.push_str(&own.printed);
    }
    answer
}

fn no_sockets(error: std::io::Error) -> RunFailure {
    let message = format!("create the sockets of a judge: {error}");
    RunFailure { message, ..unavailable() }
}
