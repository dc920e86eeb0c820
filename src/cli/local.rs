//! Starts the pipeline in this process, for all commands that can run without a server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::CliError;
use super::terminal::plain_line;
use warpgauge_config::Config;
use warpgauge_engine::LocalExecutor;
use warpgauge_model::DeviceKind;
use warpgauge_service::{
    LocalService, PrepareHolders, ProcessRole, ServiceError, Services, Storage, limits,
};
use warpgauge_worker::holder::Holders;

/// Stack size of a thread, bytes. Deserialising a stored comparison nests calls deeply: a debug
/// build needs more than 2 MiB.
const STACK_BYTES: usize = 8 << 20;

/// Number of threads for asynchronous work. They only supervise and wait, and each takes memory.
const RUNTIME_THREADS: usize = 2;

/// Maximum number of threads for blocking file access.
const BLOCKING_THREADS: usize = 16;

/// Finds devices and compilers, and starts workers. It must be called inside an async runtime.
///
/// # Errors
/// [`ServiceError::Unavailable`] if something that evaluations need is missing on this machine.
pub(super) async fn start(
    config: &Config,
    role: ProcessRole,
) -> Result<LocalService, ServiceError> {
    let storage = Storage::open(config).await?;
    let executor = LocalExecutor::start(config, limits(config), storage.run_dir()).await?;
    if role == ProcessRole::Server {
        executor.keep_warm();
    }
    let prepare_holders: PrepareHolders = |settings| Ok(Arc::new(Holders::new(settings)?));
    LocalService::start(config, role, storage, executor, prepare_holders).await
}

/// Returns the async runtime for `serve` and for local evaluations.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("warpgauge")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|source| CliError::System { operation: "start the runtime", source })
}

/// The pipeline in this process. It handles several requests, one after another.
pub(super) struct Session {
    runtime: tokio::runtime::Runtime,
    service: LocalService,
    /// Resolves on SIGINT. All requests share this future, so that a signal between two requests is
    /// not lost.
    interrupted: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Session {
    pub(super) fn start(config: &Config) -> Result<Self, CliError> {
        let data = config.data_dir();
        // The store's own message is for callers of a server, and leaves the path out.
        if data.metadata().is_ok_and(|found| !found.is_dir()) {
            return Err(CliError::Unavailable(format!(
                "the data directory {} is a file; name a directory in WARPGAUGE_DATA_DIR (`storage.data_dir`)",
                plain_line(&data.display().to_string())
            )));
        }
        let runtime = runtime()?;
        let service = runtime.block_on(start(config, ProcessRole::Command))?;
        let interrupted = Box::pin(async {
            // If no handler can be installed, SIGINT ends the process.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        Ok(Self { runtime, service, interrupted })
    }

    /// Returns whether the emulator was chosen because there is no GPU.
    pub(super) fn stands_in_for_a_gpu(&self, config: &Config) -> bool {
        let devices = self.service.services().machine.status().devices;
        config.devices.selection.trim() == "auto"
            && !devices.is_empty()
            && devices.iter().all(|view| view.device.kind == DeviceKind::Emulator)
    }

    /// Runs `work`. SIGINT drops it, which cancels the request.
    pub(super) fn call<T, F, W>(&mut self, work: F) -> Result<T, CliError>
    where
        F: FnOnce(Services) -> W,
        W: Future<Output = Result<T, CliError>>,
    {
        let Self { runtime, service, interrupted } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = interrupted => Err(CliError::Interrupted),
                outcome = work(service.services().clone()) => outcome,
            }
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.runtime.block_on(self.service.shutdown(Duration::ZERO));
    }
}

/// Starts the pipeline and runs `work` on it. SIGINT drops `work`, which cancels the request.
pub(super) fn with_service<T, F, W>(config: &Config, work: F) -> Result<T, CliError>
where
    F: FnOnce(Services) -> W,
    W: Future<Output = Result<T, CliError>>,
{
    runtime()?.block_on(async {
        let service = start(config, ProcessRole::Command).await?;
        let outcome = tokio::select! {
            outcome = work(service.services().clone()) => outcome,
            _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
        };
        service.shutdown(Duration::ZERO).await;
        outcome
    })
}
