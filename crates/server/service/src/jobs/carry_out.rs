//! Runs one job to its end. The main type is [`Runner`].

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
use crate::inputs::{matrices_of, tensors_of, warnings_of};
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

/// Parts of a report that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The complete report, because no other copy exists.
    Whole,
    /// The report without the content of outputs, which only the waiting caller receives.
    WithoutContent,
}

/// Pauses between attempts to write the end of a job, seconds. They add up to a minute. So a job is
/// not repeated because the disk was full for a moment.
const PAUSES_S: [u64; 7] = [1, 2, 4, 8, 15, 15, 15];

/// A job to run to its end.
pub(super) struct Task {
    pub job: Arc<LiveJob>,
    pub request: Accepted,
    pub admitted: Admitted,
    /// The slot that the job occupies among the claimed jobs.
    pub place: Option<ClaimedPlace>,
    /// Entry of a job that the store accepts while the job already runs. `None` means that the
    /// store has already accepted the job.
    pub to_accept: Option<NewJob>,
    pub keep: Keep,
    /// Whether the job is requeued when this process shuts down.
    pub returns: bool,
    /// Whether the job may be retried if the server lacked a resource.
    pub again: bool,
    pub answer: Option<oneshot::Sender<Answer>>,
}

type Answer = Result<JobOutcome, ServiceError>;

/// Settings that apply when the end of a job is written.
struct Manner {
    keep: Keep,
    returns: bool,
    again: bool,
    /// Name of the evaluation's case in the history.
    case: String,
    /// Text that identifies the job's requirements, as in the store.
    requires: Option<String>,
}

/// Outcome of the work on a job.
enum End {
    Done(Answer),
    Stopped(Stop),
}

/// Runs jobs to their end.
pub(super) struct Runner {
    store: Store,
    live: Arc<LiveJobs>,
    admission: Arc<Admission>,
    placements: Arc<Placements>,
    suites: Arc<Suites>,
    tensors: Arc<SharedTensors>,
    executor: Arc<dyn Executor>,
    /// Directory of the jobs' files. The executor uses it, so it is dropped after the executor.
    run_dir: Arc<RunDir>,
}

impl Runner {
    /// Creates a runner that registers its jobs in the table `live`.
    pub(super) fn new(
        needs: &Needs,
        live: Arc<LiveJobs>,
        placements: Arc<Placements>,
    ) -> Arc<Self> {
        let Needs { store, executor, admission, suites, tensors, run_dir, .. } = needs.clone();
        Arc::new(Self { store, live, admission, placements, suites, tensors, executor, run_dir })
    }

    /// Creates the live state of a job that this process runs. `sweep` receives the events of a
    /// sweep.
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

    /// Runs a job to its end in a separate task.
    pub(super) fn begin(self: &Arc<Self>, task: Task) {
        let runner = Arc::clone(self);
        // The job is registered in the table before a caller can ask for it.
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
            // A tensor that no report mentions is useless, so it is freed.
            drop(job.kept_tensors());
            let artifacts = job.collected().snapshot();
            store_artifacts(&runner.store, job.id(), artifacts).await;
            // The permits are held until here. This limits the number of jobs whose end is not
            // written yet.
            drop(places);
            // If the end was not written, the job still has its lease. Dropping the lease requeues
            // the job for another attempt, which may begin at once. So this must come last.
            drop(job.lease().take());
        });
    }

    /// Accepts the job in the store while its work runs, so the commit adds no latency. If the
    /// store rejects the job, stops the work and returns the error.
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

    /// Runs the work until it ends or the job is stopped. A stop drops the work, which kills its
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
        let warnings = warnings_of(&request);
        // Permits for additional points of a sweep that run in parallel. They are held while the
        // sweep runs.
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
        let outcome = outcome?.with_matrices(matrices).with_tensors(used);
        let mut outcome = outcome.with_warnings(warnings);
        self.tensors.keep_outputs(job, keep, &mut outcome).await;
        Ok(outcome)
    }

    /// Writes the end of a job, and then sends the outcome to the waiting caller. Returns the job's
    /// end state if this process wrote it.
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
                tracing::warn!(job = job.id(), error = cause, "the job is restarted");
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
        outcome::log(job.id(), job.kind, &ending, job.age());
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

    /// Returns whether the job ended because the service is shutting down.
    fn is_interrupted(&self, told: &Answer) -> bool {
        match told {
            Ok(outcome) => outcome.was_stopped(),
            Err(ServiceError::Exec(ExecError::ShuttingDown)) => true,
            // A failure during the shutdown is not caused by the job.
            Err(error) => error.is_unavailable() && self.admission.is_closing(),
        }
    }

    /// Writes the end of a job. Retries for a while after a transient error such as a full disk.
    /// `again` builds the same end for a retry. If all attempts fail, the job keeps its lease and
    /// is requeued later.
    async fn write_end(
        &self,
        job: &LiveJob,
        ending: JobEnding,
        mut again: impl FnMut() -> Option<JobEnding>,
    ) -> Result<(), StoreError> {
        // Only the holder of a lease can end the job.
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
            tracing::warn!(
                job = job.id(),
                error = cause,
                "writing the end of a job is retried soon"
            );
            tokio::time::sleep(Duration::from_secs(pause)).await;
            let Some(ending) = again() else { break };
            outcome = self.store.queue().try_finish(&mut lease, ending).await;
        }
        if outcome.is_err() {
            // The lease is dropped when the job leaves the table.
            *job.lease() = Some(lease);
        }
        outcome
    }

    /// Requeues the job for another process, and stores the reason.
    async fn return_to_queue(&self, job: &LiveJob, why: String) {
        let Some(lease) = job.lease().take() else { return };
        if let Err(error) = self.store.queue().return_to_queue(lease, why).await {
            // A later heartbeat requeues the job again, without the reason.
            tracing::warn!(
                job = job.id(),
                error = error::chain(&error),
                "cannot return a job to the queue"
            );
        }
    }

    /// Requeues the job.
    async fn give_back(&self, job: &LiveJob) {
        let Some(lease) = job.lease().take() else { return };
        if let Err(error) = self.store.queue().release(lease).await {
            // The lease expires when this process ends, which has the same effect.
            tracing::warn!(
                job = job.id(),
                error = error::chain(&error),
                "cannot return a job to the queue"
            );
        }
    }
}

/// Returns whether a job cannot complete from its stored state. The stored state may be an early
/// one, because short stages are not written to the store.
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

/// Returns the points that an outcome adds to the history.
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
        // The waiting caller may have disconnected.
        let _ = answer.send(told);
    }
}

fn taken_over(job: &LiveJob) -> ServiceError {
    ServiceError::unavailable(format!(
        "job {id} was taken over by another process of the service; GET /jobs/{id} returns its report \
         after its end",
        id = job.id()
    ))
}

fn not_kept(job: &LiveJob, cause: &StoreError) -> ServiceError {
    if let StoreError::LeaseLost { .. } = cause {
        return taken_over(job);
    }
    let cause = error::chain(cause);
    tracing::error!(job = job.id(), error = cause, "the end of a job cannot be written");
    ServiceError::unavailable(format!(
        "job {id} ended, but its report cannot be stored: {cause}; the job is run again as soon as possible",
        id = job.id()
    ))
}
