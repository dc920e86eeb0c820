//! Taking one job to its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Needs;
use super::accepted::Accepted;
use super::dispatch::ClaimedPlace;
use super::live::{LiveJob, LiveJobs, Stop};
use super::outcome;
use super::requirements::Placements;
use crate::admission::{Admission, Admitted};
use crate::artifacts::store_artifacts;
use crate::error::{self, ServiceError, refused};
use crate::inputs::{matrices_of, tensors_of};
use crate::records::CodecError;
use crate::run_dir::RunDir;
use crate::submission::{JobRequest, SweepEvents};
use crate::suites::{self, Suites, unix_s};
use crate::tensors::{KeptTensor, SharedTensors, wanted};
use warpgauge_executor::{ExecError, Executor, JobOutcome, JobWork, WorkOrder};
use warpgauge_model::{JobKind, JobState, Requirements};
use warpgauge_store::{HistoryRow, JobEnding, NewJob, Store, StoreError};
use warpgauge_telemetry::{EndState, telemetry};
use warpgauge_turns::Owner;

/// How much of a report is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// All of it: the stored report is the only one.
    Whole,
    /// All but the content of outputs, which the waiting caller gets.
    WithoutContent,
}

/// Pauses, in seconds, before the end of a job is written again that could not be: a minute in all. What
/// was done is not done again for a disk that is full for a moment.
const PAUSES_S: [u64; 7] = [1, 2, 4, 8, 15, 15, 15];

/// A job to be taken to its end.
pub(super) struct Task {
    pub job: Arc<LiveJob>,
    pub request: Accepted,
    pub admitted: Admitted,
    /// Its place among those that were claimed.
    pub place: Option<ClaimedPlace>,
    /// The store is told of it while it runs already. `None`: the store has it.
    pub to_accept: Option<NewJob>,
    pub keep: Keep,
    /// Whether it waits for another process when this one shuts down.
    pub returns: bool,
    /// Whether it may be begun again where the server lacked something.
    pub again: bool,
    pub answer: Option<oneshot::Sender<Answer>>,
}

type Answer = Result<JobOutcome, ServiceError>;

/// What is to become of a job's end.
struct Manner {
    keep: Keep,
    returns: bool,
    again: bool,
    /// What its evaluation is called in the history.
    case: String,
    /// What it requires, as the store has it.
    requires: Option<String>,
}

/// How the work on a job ended.
enum End {
    Done(Answer),
    Stopped(Stop),
}

/// Takes jobs to their end.
pub(super) struct Runner {
    store: Store,
    live: Arc<LiveJobs>,
    admission: Arc<Admission>,
    placements: Arc<Placements>,
    suites: Arc<Suites>,
    tensors: Arc<SharedTensors>,
    executor: Arc<dyn Executor>,
    /// Files of jobs are in it. It goes after the executor, which uses it.
    run_dir: Arc<RunDir>,
}

impl Runner {
    /// A runner whose jobs are in this table.
    pub(super) fn new(
        needs: &Needs,
        live: Arc<LiveJobs>,
        placements: Arc<Placements>,
    ) -> Arc<Self> {
        let Needs { store, executor, admission, suites, tensors, run_dir, .. } = needs.clone();
        Arc::new(Self { store, live, admission, placements, suites, tensors, executor, run_dir })
    }

    /// A job that this process is to carry out. `sweep` takes the events of a sweep.
    pub(super) fn live_job(
        &self,
        id: String,
        kind: JobKind,
        owner: &str,
        attempt: u32,
        sweep: Option<SweepEvents>,
    ) -> Arc<LiveJob> {
        LiveJob::new(id, kind, owner, attempt, self.run_dir.path(), sweep)
    }

    /// Takes a job to its end in a task of its own.
    pub(super) fn begin(self: &Arc<Self>, task: Task) {
        let runner = Arc::clone(self);
        // Entered before anybody can ask for it.
        let entered = self.live.enter(&task.job);
        tokio::spawn(async move {
            let Task { job, request, to_accept, keep, returns, again, answer, .. } = task;
            let places = (task.admitted, task.place, entered);
            let (request, order) = request.into_parts();
            let case = match &request {
                JobRequest::Evaluate(request) => warpgauge_gate::history::case_of(request),
                _ => String::new(),
            };
            let requires = order.key();
            let work = runner.work(&job, request, order);
            let ended = runner.accepted_and_done(&job, to_accept, work).await;
            let answered = match ended {
                Ok(end) => {
                    let manner = Manner { keep, returns, again, case, requires };
                    runner.settle(&job, end, &manner, answer).await
                }
                Err(error) => {
                    job.ended(JobState::Failed, Some(error.to_string()));
                    tell(answer, Err(error));
                    return;
                }
            };
            if let Some(state) = answered {
                telemetry().job_ended(state, job.age());
            }
            // Those that no report names are no use to anybody.
            drop(job.kept_tensors());
            let artifacts = job.collected().snapshot();
            store_artifacts(&runner.store, job.id(), artifacts).await;
            // Until here a job counts as one in flight, so that what waits to be written is bounded.
            drop(places);
            // Where the end is not written, the lease is still there. Dropped, it gives the job back, which
            // is an attempt; not before, for that attempt may begin at once.
            drop(job.lease().take());
        });
    }

    /// Has the store accept the job and does it, both at once: what a commit takes is not added to
    /// what the run takes. The error is why the job is not accepted; then it does not run either.
    async fn accepted_and_done(
        &self,
        job: &LiveJob,
        to_accept: Option<NewJob>,
        work: impl Future<Output = End>,
    ) -> Result<End, ServiceError> {
        let Some(new) = to_accept else { return Ok(work.await) };
        let accepted = async {
            let (_, lease) = self.store.queue().submit_leased(new).await.map_err(refused)?;
            *job.lease() = lease;
            Ok::<_, ServiceError>(())
        };
        tokio::pin!(accepted, work);
        tokio::select! {
            biased;
            end = &mut work => {
                accepted.await?;
                Ok(end)
            }
            accepted = &mut accepted => {
                accepted?;
                Ok(work.await)
            }
        }
    }

    /// Does the work, until it is done or is to stop. What runs is dropped then, and with it its
    /// worker.
    async fn work(&self, job: &LiveJob, request: JobRequest, requires: Requirements) -> End {
        tokio::select! {
            biased;
            why = job.stopped() => End::Stopped(why),
            answer = self.perform(job, request, requires) => End::Done(answer),
        }
    }

    async fn perform(&self, job: &LiveJob, request: JobRequest, requires: Requirements) -> Answer {
        let matrices = matrices_of(&request);
        let (used, keep) = (tensors_of(&request), wanted(&request));
        // Places that a sweep has beside its own, for as long as it goes on.
        let mut places = Vec::new();
        if let JobRequest::Sweep(_) = &request {
            let devices = self.executor.offer().devices.len();
            places = self.admission.more_lanes(job.owner(), devices);
        }
        let work = match request.planned() {
            Ok(work) => work,
            Err(gate) => JobWork::Gate(Box::new(self.suites.gate_plan(*gate, job.owner()).await?)),
        };
        let (id, lanes) = (job.id().to_owned(), 1 + places.len());
        let owner = Owner::named(job.owner());
        let order = WorkOrder { id, work, requires, lanes, owner };
        let outcome = self.executor.run(order, job).await;
        drop(places);
        let mut outcome = outcome?.with_matrices(matrices).with_tensors(used);
        self.tensors.keep_outputs(job, keep, &mut outcome).await;
        Ok(outcome)
    }

    /// Writes the end of a job, then answers who waits. Returns how it ended, if this process saw to that.
    async fn settle(
        &self,
        job: &LiveJob,
        end: End,
        manner: &Manner,
        answer: Option<oneshot::Sender<Answer>>,
    ) -> Option<EndState> {
        let ended = |told: &mut Answer| {
            let mut ending = outcome::ending(job.kind, told, manner.keep == Keep::Whole)?;
            ending.points = points_of(job, &manner.case, told);
            Ok::<_, CodecError>(ending)
        };
        let stopped = match end {
            End::Stopped(why) => Some(why),
            End::Done(_) => None,
        };
        let (ending, mut told) = match end {
            End::Stopped(Stop::Lost) => {
                tracing::warn!(job = job.id(), "the job was taken over by another process");
                (None, Err(taken_over(job)))
            }
            End::Stopped(why) => {
                let told = Err(ServiceError::Cancelled { job_id: job.id().to_owned() });
                (outcome::stopped(why), told)
            }
            End::Done(told) if manner.returns && self.is_interrupted(&told) => {
                self.give_back(job).await;
                (None, Err(ServiceError::shutting_down()))
            }
            End::Done(Err(error)) if manner.again && error.is_unavailable() => {
                let cause = error::chain(&error);
                tracing::warn!(job = job.id(), error = cause, "the job is begun again");
                self.return_to_queue(job, cause).await;
                (None, Err(error))
            }
            End::Done(Err(ServiceError::Exec(ExecError::NotOffered(why)))) if manner.again => {
                let key = manner.requires.clone().unwrap_or_default();
                match self.placements.reject(key, &why).await {
                    Ok(()) => {
                        self.return_to_queue(job, why.clone()).await;
                        (None, Err(ExecError::NotOffered(why).into()))
                    }
                    Err(error) => {
                        let mut told = Err(error);
                        (ended(&mut told).ok(), told)
                    }
                }
            }
            End::Done(mut told) => match ended(&mut told) {
                Ok(ending) => (Some(ending), told),
                Err(error) => {
                    let mut told = Err(error::internal("writing a report", &error));
                    (outcome::ending(job.kind, &mut told, true).ok(), told)
                }
            },
        };
        let Some(ending) = ending else {
            job.ended(JobState::Queued, None);
            tell(answer, told);
            return None;
        };
        let state = ending.state;
        let why = ending.error.as_ref().map(|error| error.message.clone());
        let again = || match stopped {
            Some(why) => outcome::stopped(why),
            None => ended(&mut told).ok(),
        };
        let told = match self.write_end(job, ending, again).await {
            Ok(()) => {
                if state == JobState::Completed {
                    job.kept_tensors().into_iter().for_each(KeptTensor::told);
                }
                told
            }
            Err(error) => Err(not_kept(job, &error)),
        };
        job.ended(state, why);
        tell(answer, told);
        end_state(state)
    }

    /// Whether the end of the service ended the job.
    fn is_interrupted(&self, told: &Answer) -> bool {
        match told {
            Ok(outcome) => outcome.was_stopped(),
            Err(ServiceError::Exec(ExecError::ShuttingDown)) => true,
            // What fails while everything is taken down says nothing of the job.
            Err(error) => error.is_unavailable() && self.admission.is_closing(),
        }
    }

    /// Where there is no room for it, or no database, it is tried again for a while; `again` makes the
    /// same end. If it cannot be written then, the job waits for its turn again.
    async fn write_end(
        &self,
        job: &LiveJob,
        ending: JobEnding,
        mut again: impl FnMut() -> Option<JobEnding>,
    ) -> Result<(), StoreError> {
        // Only a job that is held can end.
        let Some(mut lease) = job.lease().take() else { return Ok(()) };
        if ending.state == JobState::Completed && may_not_complete(lease.state()) {
            self.store.queue().advance_behind(&lease, JobState::Compiling)?;
        }
        let mut outcome = self.store.queue().try_finish(&mut lease, ending).await;
        for pause in PAUSES_S {
            let Err(error) = &outcome else { break };
            if !error.may_pass() || self.admission.is_closing() {
                break;
            }
            let cause = error::chain(error);
            tracing::warn!(job = job.id(), error = cause, "the end of a job is written again soon");
            tokio::time::sleep(Duration::from_secs(pause)).await;
            let Some(ending) = again() else { break };
            outcome = self.store.queue().try_finish(&mut lease, ending).await;
        }
        if outcome.is_err() {
            // Given back where the job leaves.
            *job.lease() = Some(lease);
        }
        outcome
    }

    /// Has the job wait for another process, and says why.
    async fn return_to_queue(&self, job: &LiveJob, why: String) {
        let Some(lease) = job.lease().take() else { return };
        if let Err(error) = self.store.queue().return_to_queue(lease, why).await {
            // Written again with a heartbeat, without the reason.
            tracing::warn!(job = job.id(), error = error::chain(&error), "cannot give a job back");
        }
    }

    /// Has the job wait for its turn again.
    async fn give_back(&self, job: &LiveJob) {
        let Some(lease) = job.lease().take() else { return };
        if let Err(error) = self.store.queue().release(lease).await {
            // Its lease ends with this process, with the same effect.
            tracing::warn!(job = job.id(), error = error::chain(&error), "cannot give a job back");
        }
    }
}

/// Whether a job seems not to have been begun: stages that do not last are not written.
fn may_not_complete(written: JobState) -> bool {
    matches!(written, JobState::Submitted | JobState::Queued)
}

fn end_state(state: JobState) -> Option<EndState> {
    match state {
        JobState::Completed => Some(EndState::Completed),
        JobState::Failed => Some(EndState::Failed),
        JobState::Cancelled => Some(EndState::Cancelled),
        JobState::TimedOut => Some(EndState::TimedOut),
        _ => None,
    }
}

/// What an answer leaves in the history.
fn points_of(job: &LiveJob, case: &str, told: &Answer) -> Vec<HistoryRow> {
    let points = match told {
        Ok(JobOutcome::Evaluated(report)) if job.kind == JobKind::Evaluate => {
            warpgauge_gate::history::of_evaluation(case, report, unix_s()).into_iter().collect()
        }
        Ok(JobOutcome::Gated(report)) => warpgauge_gate::history::of_gate(report),
        _ => Vec::new(),
    };
    suites::rows(job.owner(), points)
}

fn tell(answer: Option<oneshot::Sender<Answer>>, told: Answer) {
    if let Some(answer) = answer {
        // Whoever waited may have gone.
        let _ = answer.send(told);
    }
}

fn taken_over(job: &LiveJob) -> ServiceError {
    ServiceError::unavailable(format!(
        "job {id} was taken over by another process of the service; GET /jobs/{id} has its report \
         when it ended",
        id = job.id()
    ))
}

fn not_kept(job: &LiveJob, cause: &StoreError) -> ServiceError {
    if let StoreError::LeaseLost { .. } = cause {
        return taken_over(job);
    }
    let cause = error::chain(cause);
    tracing::error!(job = job.id(), error = cause, "the end of a job cannot be kept");
    ServiceError::unavailable(format!(
        "job {id} ended, and its report cannot be kept: {cause}; it is run again as soon as it can",
        id = job.id()
    ))
}
