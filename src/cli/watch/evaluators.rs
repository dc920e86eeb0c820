//! Evaluators for the files in a folder: this machine, or a server.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::cli::args::Target;
use crate::cli::signals::EndSignals;
use crate::cli::{CliError, local};
use crate::exit::Exit;
use warpgauge_client::{Client, ClientError};
use warpgauge_config::Config;
use warpgauge_contract::{CompileRequest, EvaluateRequest};
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_report::{CompileResponse, EvaluateResponse};
use warpgauge_service::{
    Caller, ExecError, JobSubmission, LocalService, ProcessRole, ServiceError,
};
use warpgauge_watch::{Evaluator, EvaluatorError, FileRejection, UNMET, WatchStop};

/// Time for which evaluations in progress may continue after a signal. A kernel that is still
/// running afterwards is assumed to hang.
const GRACE: Duration = Duration::from_secs(2);

/// Message in the result for a kernel that was running when its watcher ended.
const INTERRUPTED: &str = "the watcher or the machine stopped while this kernel ran. The kernel may hang, \
                           so it is not run again automatically: put the file into `kernels/` once more to \
                           evaluate it again";

/// The evaluator that the command line selects.
pub(super) type AnyEvaluator = Box<dyn Evaluator>;

/// Returns the evaluator that the command line selects. SIGINT and SIGTERM set `stop`. The next
/// watcher continues jobs that had begun, except those whose kernels were running.
pub(super) fn evaluator(
    target: &Target,
    config: &Config,
    stop: &Arc<WatchStop>,
) -> Result<AnyEvaluator, CliError> {
    match target.client()? {
        Some(client) => {
            end_at_signal();
            Ok(Box::new(Remote { client }))
        }
        None => Ok(Box::new(Local::start(config, Arc::clone(stop))?)),
    }
}

/// Ends the process when a signal arrives. The server stores the jobs and the folder contains the
/// files, so nothing is lost.
fn end_at_signal() {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // If no handlers can be installed, the signals end the process.
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            if let Ok(mut signals) = EndSignals::listen() {
                signals.next().await;
                std::process::exit(i32::from(Exit::Success.code()));
            }
        });
    });
}

/// The pipeline in this process. It acts as a server, so it also continues the jobs of earlier
/// watchers.
struct Local {
    runtime: tokio::runtime::Runtime,
    service: LocalService,
    stopped: watch::Receiver<bool>,
}

impl Local {
    fn start(config: &Config, stop: Arc<WatchStop>) -> Result<Self, CliError> {
        let runtime = local::runtime()?;
        let service = runtime.block_on(local::start(config, ProcessRole::Server))?;
        let (sender, stopped) = watch::channel(false);
        runtime.spawn(async move {
            // If no handlers can be installed, the signals end the process.
            let Ok(mut signals) = EndSignals::listen() else { return };
            signals.next().await;
            stop.stop();
            sender.send_replace(true);
            signals.next().await;
            std::process::exit(i32::from(Exit::Interrupted.code()));
        });
        Ok(Self { runtime, service, stopped })
    }

    /// Waits for work; after a signal, waits at most `grace` longer. No work begins after a signal.
    fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, ServiceError>>,
        grace: Duration,
    ) -> Result<T, EvaluatorError> {
        let mut stopped = self.stopped.clone();
        if *stopped.borrow_and_update() {
            return Err(EvaluatorError::Stopped);
        }
        self.runtime.block_on(async {
            let stop = async {
                if stopped.wait_for(|stopped| *stopped).await.is_err() {
                    // The sender was dropped, so no signal can arrive.
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(grace).await;
            };
            tokio::select! {
                biased;
                () = stop => Err(EvaluatorError::Stopped),
                outcome = work => outcome.map_err(of_service),
            }
        })
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.runtime.block_on(self.service.shutdown(Duration::ZERO));
    }
}

impl Evaluator for Local {
    fn evaluate(
        &self,
        request: &EvaluateRequest,
        key: &str,
    ) -> Result<EvaluateResponse, EvaluatorError> {
        let idempotency_key = Some(key.to_owned());
        let submission = JobSubmission { idempotency_key, once: true, ..JobSubmission::local() };
        self.wait(self.service.services().evaluations.evaluate(request.clone(), submission), GRACE)
    }

    fn compile(&self, request: &CompileRequest) -> Result<CompileResponse, EvaluatorError> {
        let caller = Caller::local();
        let compiled = self.service.services().compiler.compile(request.clone(), &caller);
        self.wait(compiled, Duration::ZERO)
    }
}

fn of_service(error: ServiceError) -> EvaluatorError {
    let code = match &error {
        ServiceError::QueueFull { .. }
        | ServiceError::QuotaExceeded { .. }
        | ServiceError::Cancelled { .. }
        | ServiceError::Exec(
            ExecError::QueueFull { .. }
            | ExecError::Unavailable(_)
            | ExecError::RunnersLost(_)
            | ExecError::ShuttingDown,
        )
        // The job of an earlier watcher ended before its kernel ran, so its idempotency key can be
        // used again.
        | ServiceError::JobFailed {
            code:
                ErrorCode::AttemptsExhausted
                | ErrorCode::Unavailable
                | ErrorCode::QueueFull
                | ErrorCode::ShuttingDown,
            ..
        } => {
            return EvaluatorError::Again(warpgauge_service::error_chain(&error));
        }
        ServiceError::Exec(ExecError::Invalid(problems))
            if problems.iter().any(|one| one.code == FailureCode::UnmetRequirements) =>
        {
            UNMET
        }
        ServiceError::Exec(ExecError::Invalid(_)) => "invalid_contract",
        ServiceError::IdempotencyConflict { .. } => "idempotency_conflict",
        ServiceError::Exec(ExecError::NotOffered(_)) => UNMET,
        ServiceError::JobFailed { code: ErrorCode::Interrupted, .. } => {
            return FileRejection::new(ErrorCode::Interrupted.as_str(), INTERRUPTED).into();
        }
        _ => "job_failed",
    };
    FileRejection::new(code, CliError::from(error).render()).into()
}

struct Remote {
    client: Client,
}

impl Evaluator for Remote {
    fn evaluate(
        &self,
        request: &EvaluateRequest,
        key: &str,
    ) -> Result<EvaluateResponse, EvaluatorError> {
        self.client.unattended().evaluate_keyed(request, key).map_err(of_client)
    }

    fn compile(&self, request: &CompileRequest) -> Result<CompileResponse, EvaluatorError> {
        Ok(self.client.compile(request).map_err(of_client)?.value)
    }
}

fn of_client(error: ClientError) -> EvaluatorError {
    let code = match &error {
        ClientError::Refused { problems, .. }
            if problems.iter().any(|code| *code == FailureCode::UnmetRequirements.to_string()) =>
        {
            UNMET
        }
        ClientError::Refused { status: 400 | 413 | 415 | 422, .. } => "invalid_contract",
        ClientError::Refused { status: 409, .. } => "idempotency_conflict",
        ClientError::Refused { status: 500, .. } => "job_failed",
        ClientError::Internal(_) => "internal",
        // The server is unreachable or full, or its URL or the key is wrong. The file is not the
        // cause.
        _ => return EvaluatorError::Again(CliError::from(error).render()),
    };
    FileRejection::new(code, error.to_string()).into()
}
