//! Tensors that callers upload and open from other processes. For each device, a separate process
//! holds them. The main type is [`SharedTensors`].

mod content;
mod keep;
mod named;
mod on_device;
mod pin;
mod put;
mod views;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use uuid::Uuid;

pub use content::TensorContent;
pub(crate) use keep::{KeepsOutputs, KeptTensor, wanted};
pub(crate) use on_device::Copies;
use on_device::DeviceCopies;
pub use put::{TensorOptions, TensorSource, TensorUpload};

use crate::error::{Problem, ServiceError};
use crate::run_dir::RunDir;
use crate::settings::{self, ProcessRole};
use crate::submission::{Caller, ServiceFuture};
use crate::turns;
use warpgauge_config::Config;
use warpgauge_executor::Executor;
use warpgauge_model::{DeviceKind, ErrorCode, FailureCode};
use warpgauge_shared_tensors::{
    GoneReason, HolderError, HolderSettings, LeaseReply, RegistryLimits, SharedTensor,
    TensorDeleted, TensorHandle, TensorHolders, TensorList, TensorLookupError, TransferFormat,
};
use warpgauge_turns::Pool;

/// File system that resides in memory on most machines.
const IN_MEMORY: &str = "/dev/shm";

/// Access to shared tensors of callers. A caller sees only its tensors.
pub trait TensorService: Send + Sync {
    /// Reads a tensor from an upload, and stores it in a holder process.
    fn put_tensor<'a>(
        &'a self,
        upload: TensorUpload,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, SharedTensor>;

    /// Returns the caller's tensors, oldest first.
    fn tensors<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, TensorList>;

    /// Returns the description of a tensor.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchTensor`], or [`ServiceError::TensorGone`] if the tensor existed.
    fn tensor<'a>(&'a self, id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, SharedTensor>;

    /// Returns the content of a tensor as a file.
    ///
    /// # Errors
    /// The errors of [`Self::tensor`].
    fn tensor_content<'a>(
        &'a self,
        id: &'a str,
        format: TransferFormat,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, TensorContent>;

    /// Returns a handle with which other processes open the tensor, and a lease.
    ///
    /// # Errors
    /// The errors of [`Self::tensor`]; [`ServiceError::Forbidden`] if the caller lacks the
    /// permission.
    fn open_tensor<'a>(
        &'a self,
        id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, TensorHandle>;

    /// Deletes a tensor. Its memory remains while other processes have the tensor open.
    ///
    /// # Errors
    /// The errors of [`Self::tensor`].
    fn delete_tensor<'a>(
        &'a self,
        id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, TensorDeleted>;

    /// Renews a lease.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchLease`].
    fn renew_lease<'a>(&'a self, id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, LeaseReply>;

    /// Releases a lease.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchLease`].
    fn release_lease<'a>(
        &'a self,
        id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, LeaseReply>;
}

/// Function that prepares the processes that hold shared tensors. Its error names the missing
/// resource of the machine.
pub type PrepareHolders = fn(HolderSettings) -> Result<Arc<dyn TensorHolders>, String>;

/// Maximum number of requests whose tensors are copied at the same time, for all callers. The
/// copies take disk space even before the requests are admitted.
const AT_ONCE: usize = 2;

/// Shared tensors, and copies of them for requests.
pub(super) struct SharedTensors {
    holders: Arc<dyn TensorHolders>,
    executor: Arc<dyn Executor>,
    role: ProcessRole,
    contract_limits: warpgauge_contract::ContractLimits,
    /// Maximum size of an uploaded tensor, bytes.
    max_upload_bytes: u64,
    /// Permits for copying tensors into requests.
    turns: Pool,
    copies: Arc<DeviceCopies>,
    /// Directory for tensors in host memory. It is dropped after the holders.
    _shared_dir: Option<RunDir>,
}

impl SharedTensors {
    /// Prepares holder processes for the devices of this executor. Their sockets are in `run_dir`.
    ///
    /// # Errors
    /// Describes a missing resource of the machine.
    pub(super) fn new(
        config: &Config,
        role: ProcessRole,
        executor: Arc<dyn Executor>,
        run_dir: &RunDir,
        prepare_holders: PrepareHolders,
    ) -> Result<Self, ServiceError> {
        let (settings, shared_dir) = holder_settings(config, role, executor.as_ref(), run_dir)?;
        let holders = prepare_holders(settings).map_err(ServiceError::unavailable)?;
        let copies = DeviceCopies::new(Arc::clone(&holders), Arc::clone(&executor));
        let limits = &config.limits;
        Ok(Self {
            holders,
            executor,
            role,
            contract_limits: settings::limits(config),
            max_upload_bytes: match config.tensors.max_bytes_per_key {
                0 => limits.max_tensor_bytes,
                of_key => limits.max_tensor_bytes.min(of_key),
            },
            turns: turns::pool(AT_ONCE, config),
            copies: Arc::new(copies),
            _shared_dir: shared_dir,
        })
    }

    /// Ends the processes that hold tensors.
    pub(super) async fn end(&self) {
        self.holders.end().await;
    }
}

impl TensorService for SharedTensors {
    fn put_tensor<'a>(
        &'a self,
        upload: TensorUpload,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, SharedTensor> {
        put::put(self, upload, caller).boxed()
    }

    fn tensors<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, TensorList> {
        async move {
            let (all, held_bytes) = self.holders.registry().list(&caller.owner, Instant::now());
            let tensors: Vec<SharedTensor> =
                all.iter().map(|held| views::tensor(held, "Tensor is available")).collect();
            Ok(TensorList { count: tensors.len(), tensors, held_bytes })
        }
        .boxed()
    }

    fn tensor<'a>(&'a self, id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, SharedTensor> {
        async move {
            let registry = self.holders.registry();
            let found = registry.find(parsed(id)?, &caller.owner, Instant::now());
            Ok(views::tensor(&found.map_err(|why| unknown(id, why))?, "Tensor is available"))
        }
        .boxed()
    }

    fn tensor_content<'a>(
        &'a self,
        id: &'a str,
        format: TransferFormat,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, TensorContent> {
        content::content(&self.holders, id, format, caller).boxed()
    }

    fn open_tensor<'a>(
        &'a self,
        id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, TensorHandle> {
        async move {
            if !caller.handles {
                return Err(ServiceError::Forbidden(
                    "this key may not open tensors, which gives write access: add it to \
                     server.handle_keys (WARPGAUGE_HANDLE_KEYS), or copy the content from \
                     /tensors/{id}/data"
                        .to_owned(),
                ));
            }
            let holders = &self.holders;
            let leased = holders.registry().lease(parsed(id)?, &caller.owner, Instant::now());
            let (lease, held) = leased.map_err(|why| unknown(id, why))?;
            let exported = match holders.export(&held, true).await {
                Ok(exported) => exported,
                Err(error) => {
                    if let Some((_, freed)) = holders.registry().release(lease, &caller.owner) {
                        holders.free(freed.into_iter().collect()).await;
                    }
                    return Err(of_held(id, error));
                }
            };
            let device_uuid = views::device_uuid(self.executor.as_ref(), held.tensor.place);
            Ok(views::handle(self.holders.as_ref(), &held, lease, exported, device_uuid))
        }
        .boxed()
    }

    fn delete_tensor<'a>(
        &'a self,
        id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, TensorDeleted> {
        async move {
            let holders = &self.holders;
            let deleted = holders.registry().delete(parsed(id)?, &caller.owner);
            let (leases, freed) = deleted.map_err(|why| unknown(id, why))?;
            holders.free(freed.into_iter().collect()).await;
            let message = match leases {
                0 => format!("Tensor {id} deleted successfully"),
                open => format!(
                    "Tensor {id} deleted successfully; its memory remains until {open} leases have ended"
                ),
            };
            Ok(TensorDeleted { tensor_id: id.to_owned(), message, leases })
        }
        .boxed()
    }

    fn renew_lease<'a>(&'a self, id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, LeaseReply> {
        async move {
            let registry = self.holders.registry();
            let renewed = parsed_lease(id)
                .and_then(|lease| registry.renew(lease, &caller.owner, Instant::now()));
            let tensor = renewed.ok_or_else(|| ServiceError::NoSuchLease(short(id)))?;
            let lease_s = registry.limits().lease.as_secs_f64();
            Ok(LeaseReply { lease_id: id.to_owned(), tensor_id: tensor.to_string(), lease_s })
        }
        .boxed()
    }

    fn release_lease<'a>(
        &'a self,
        id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, LeaseReply> {
        async move {
            let holders = &self.holders;
            let released =
                parsed_lease(id).and_then(|lease| holders.registry().release(lease, &caller.owner));
            let (tensor, freed) = released.ok_or_else(|| ServiceError::NoSuchLease(short(id)))?;
            holders.free(freed.into_iter().collect()).await;
            let (lease_id, tensor_id) = (id.to_owned(), tensor.to_string());
            Ok(LeaseReply { lease_id, tensor_id, lease_s: 0.0 })
        }
        .boxed()
    }
}

/// Returns the settings for the processes that hold tensors. Also returns the directory for tensors
/// in host memory, if it is separate from the run directory.
fn holder_settings(
    config: &Config,
    role: ProcessRole,
    executor: &dyn Executor,
    run_dir: &RunDir,
) -> Result<(HolderSettings, Option<RunDir>), ServiceError> {
    let shared_dir = match role {
        ProcessRole::Server => shared_dir(&config.tensors.shared_dir)?,
        // Commands hold no tensors.
        ProcessRole::Command => None,
    };
    let devices = executor.offer().devices;
    let given = Path::new(&config.devices.emulator);
    let settings = HolderSettings {
        devices: devices.iter().map(|device| device.info.ordinal).collect(),
        emulated: devices.iter().any(|device| device.info.kind == DeviceKind::Emulator),
        emulator: Some(given.to_owned()).filter(|path| path != Path::new("")),
        run_dir: run_dir.path().to_owned(),
        shared_dir: shared_dir.as_ref().unwrap_or(run_dir).path().to_owned(),
        limits: limits(config),
    };
    Ok((settings, shared_dir))
}

fn limits(config: &Config) -> RegistryLimits {
    let tensors = &config.tensors;
    let ttl = Duration::from_secs_f64(tensors.ttl_s);
    RegistryLimits {
        max_bytes_per_owner: tensors.max_bytes_per_key,
        max_count_per_owner: tensors.max_count_per_key,
        max_bytes: tensors.max_bytes,
        ttl: Some(ttl).filter(|ttl| !ttl.is_zero()),
        lease: Duration::from_secs_f64(tensors.lease_s),
    }
}

/// Creates a private directory on a file system that resides in memory. Returns `None` if the
/// default file system cannot be used.
fn shared_dir(given: &str) -> Result<Option<RunDir>, ServiceError> {
    let parent = match given {
        "" => {
            let user = rustix::process::geteuid().as_raw();
            PathBuf::from(IN_MEMORY).join(format!("warpgauge-{user}"))
        }
        given => PathBuf::from(given),
    };
    match RunDir::enter(&parent) {
        Ok(directory) => Ok(Some(directory)),
        Err(error) if given.is_empty() => {
            tracing::warn!(
                path = %parent.display(), %error,
                "tensors in host memory are files in the run directory; tensors.shared_dir sets \
                 another"
            );
            Ok(None)
        }
        Err(error) => Err(ServiceError::unavailable(format!(
            "cannot use tensors.shared_dir = {given:?}: {error}; name a directory that only this user can \
             write to"
        ))),
    }
}

/// Parses a tensor's id from a path. If the id is invalid, the tensor does not exist.
fn parsed(id: &str) -> Result<Uuid, ServiceError> {
    Uuid::try_parse(id).map_err(|_| ServiceError::NoSuchTensor(short(id)))
}

fn parsed_lease(id: &str) -> Option<Uuid> {
    Uuid::try_parse(id).ok()
}

fn short(id: &str) -> String {
    id.chars().take(64).collect()
}

fn unknown(id: &str, why: TensorLookupError) -> ServiceError {
    let id = short(id);
    let gone = |code, reason: &str| ServiceError::TensorGone {
        id: id.clone(),
        code,
        reason: reason.to_owned(),
    };
    match why {
        TensorLookupError::Never => ServiceError::NoSuchTensor(id),
        TensorLookupError::Gone(GoneReason::HolderDied) => holder_died(&id),
        TensorLookupError::Gone(GoneReason::Expired) => gone(
            ErrorCode::TensorGone,
            "no process used it in time (tensors.ttl_s, or `ttl_s` of its upload); upload it again",
        ),
        TensorLookupError::Gone(GoneReason::Evicted) => gone(
            ErrorCode::TensorGone,
            "it was evicted for a tensor that was uploaded with `evict`; upload it again",
        ),
        TensorLookupError::TooManyLeases => ServiceError::QuotaExceeded {
            message: format!("tensor {id} has its maximum number of leases"),
            retry_after: Duration::from_secs(1),
        },
    }
}

fn holder_died(id: &str) -> ServiceError {
    ServiceError::TensorGone {
        id: id.to_owned(),
        code: ErrorCode::HolderDied,
        reason: "the process that held it has died; upload it again, which starts a new process"
            .to_owned(),
    }
}

/// Converts a holder's error that concerns an existing tensor.
fn of_held(id: &str, error: HolderError) -> ServiceError {
    match error {
        HolderError::Died { .. } => holder_died(&short(id)),
        // The tensor was freed between two requests to the holder.
        HolderError::Refused { code: FailureCode::NotFound, .. } => {
            ServiceError::NoSuchTensor(short(id))
        }
        other => ServiceError::unavailable(other.to_string()),
    }
}

fn invalid(path: &str, code: FailureCode, message: impl Into<String>) -> ServiceError {
    let (path, message) = (path.to_owned(), message.into());
    ServiceError::invalid(vec![Problem { path, code, message }])
}
