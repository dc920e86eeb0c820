//! All holders of a server, and the tensors in them.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use uuid::Uuid;
use warpgauge_model::FailureCode;

use crate::holder::{Holder, HolderError, Question, Startup};
use crate::protocol::{CHUNK_BYTES, Exported, FILL_BYTES, FromHolder, ToHolder};
use crate::registry::{Freed, Held, Limits, Place, Registry};

/// How often what nobody uses any more is looked for.
const UPKEEP: Duration = Duration::from_secs(1);

/// What holders need.
#[derive(Debug, Clone)]
pub struct HolderConfig {
    /// The executable that has the hidden subcommand.
    pub program: PathBuf,
    /// Devices there are, by CUDA ordinal.
    pub devices: Vec<u32>,
    /// The library that stands for the driver, if the devices are emulated.
    pub emulator: Option<PathBuf>,
    /// A directory of this server alone.
    pub run_dir: PathBuf,
    /// One in which files are memory; no other user may enter it.
    pub shared_dir: PathBuf,
    /// Bounds.
    pub limits: Limits,
}

/// The holders, started one by one when they are needed.
pub struct Holders {
    registry: Arc<Registry>,
    holders: Arc<HashMap<Place, Arc<Holder>>>,
    devices: Vec<u32>,
    emulator: Option<PathBuf>,
    run_dir: PathBuf,
    upkeep: AbortHandle,
    /// Where memory is given back.
    runtime: Handle,
}

impl Drop for Holders {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

impl Holders {
    /// Must be called within a runtime. Starts nothing yet.
    pub fn new(config: HolderConfig) -> Self {
        let registry = Arc::new(Registry::new(config.limits));
        let devices = config.devices.iter().map(|ordinal| Place::Device(*ordinal));
        let holders = devices.chain([Place::Host]).map(|place| {
            let startup = Startup {
                program: config.program.clone(),
                emulator: config.emulator.clone(),
                directory: match place {
                    Place::Host => config.shared_dir.clone(),
                    Place::Device(_) => config.run_dir.clone(),
                },
            };
            (place, Arc::new(Holder::new(place, startup, Arc::clone(&registry))))
        });
        let holders: Arc<HashMap<_, _>> = Arc::new(holders.collect());
        let (books, all) = (Arc::clone(&registry), Arc::clone(&holders));
        let upkeep = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(UPKEEP);
            loop {
                ticks.tick().await;
                free(&all, books.sweep(Instant::now())).await;
            }
        });
        let HolderConfig { devices, emulator, run_dir, .. } = config;
        let (upkeep, runtime) = (upkeep.abort_handle(), Handle::current());
        Self { registry, holders, devices, emulator, run_dir, upkeep, runtime }
    }

    /// The books.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Devices there are, by CUDA ordinal.
    pub fn devices(&self) -> &[u32] {
        &self.devices
    }

    /// Where holders of devices may write; the emulated device has shared memory there.
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// The library that stands for the driver, if the devices are emulated.
    pub fn emulator(&self) -> Option<&Path> {
        self.emulator.as_deref()
    }

    fn holder(&self, place: Place) -> Result<&Arc<Holder>, HolderError> {
        let reason = || "there is no such device".to_owned();
        self.holders.get(&place).ok_or_else(|| HolderError::Start { place, reason: reason() })
    }

    /// Allocates room for a tensor, all zeros; the generation of the process that has it.
    pub async fn create(&self, place: Place, id: Uuid, bytes: u64) -> Result<u64, HolderError> {
        let (_, generation) =
            self.holder(place)?.ask(None, ToHolder::Create { id, bytes }.into()).await?;
        Ok(generation)
    }

    /// A copy of a tensor in new memory beside it, as `id`.
    pub async fn copy(&self, held: &Held, id: Uuid) -> Result<(), HolderError> {
        let request = ToHolder::Copy { from: held.id, id, bytes: held.tensor.bytes };
        self.ask(held, request).await.map(drop)
    }

    /// Copies so many bytes of a file, from `from` on, to the beginning of a tensor.
    pub async fn fill(
        &self,
        at: Freed,
        file: &Arc<File>,
        from: u64,
        bytes: u64,
    ) -> Result<(), HolderError> {
        let holder = self.holder(at.place)?;
        for offset in (0..bytes).step_by(FILL_BYTES as usize) {
            let what = ToHolder::Fill {
                id: at.id,
                offset,
                from: from.saturating_add(offset),
                bytes: (bytes - offset).min(FILL_BYTES),
            };
            holder.ask(Some(at.generation), Question::with(what, file)).await?;
        }
        Ok(())
    }

    /// Reads so many bytes from `offset` on, at most [`CHUNK_BYTES`].
    pub async fn read(&self, held: &Held, offset: u64) -> Result<Vec<u8>, HolderError> {
        let bytes = held.tensor.bytes.saturating_sub(offset).min(CHUNK_BYTES as u64);
        let request = ToHolder::Read { id: held.id, offset, bytes };
        match self.ask(held, request).await? {
            FromHolder::Data(data) if data.len() as u64 == bytes => Ok(data),
            other => Err(out_of_turn(&other)),
        }
    }

    /// What leads others to a tensor, and where `event` is set to an event that goes with it.
    pub async fn export(&self, held: &Held, event: bool) -> Result<Exported, HolderError> {
        match self.ask(held, ToHolder::Export { id: held.id, event }).await? {
            FromHolder::Exported(exported) => Ok(exported),
            other => Err(out_of_turn(&other)),
        }
    }

    async fn ask(&self, held: &Held, request: ToHolder) -> Result<FromHolder, HolderError> {
        let holder = self.holder(held.tensor.place)?;
        Ok(holder.ask(Some(held.generation), request.into()).await?.0)
    }

    /// Gives memory back.
    pub async fn free(&self, freed: impl IntoIterator<Item = Freed>) {
        free(&self.holders, freed).await;
    }

    /// The same, without waiting for it, on any thread.
    pub fn free_later(&self, freed: impl IntoIterator<Item = Freed>) {
        let freed: Vec<Freed> = freed.into_iter().collect();
        if !freed.is_empty() {
            let holders = Arc::clone(&self.holders);
            // Once the runtime is ending so are the holders, and all that they hold with them.
            self.runtime.spawn(async move { free(&holders, freed).await });
        }
    }

    /// Ends all of them, and with them all tensors.
    pub async fn end(&self) {
        self.upkeep.abort();
        for holder in self.holders.values() {
            holder.end().await;
        }
    }
}

async fn free(holders: &HashMap<Place, Arc<Holder>>, freed: impl IntoIterator<Item = Freed>) {
    for Freed { place, generation, id } in freed {
        let Some(holder) = holders.get(&place) else { continue };
        // With a dead holder its memory is free.
        if let Err(error) = holder.ask(Some(generation), ToHolder::Free { id }.into()).await {
            tracing::debug!(%place, %id, %error, "a tensor is not freed");
        }
    }
}

fn out_of_turn(answer: &FromHolder) -> HolderError {
    let kind = match answer {
        FromHolder::Data(_) => "data",
        FromHolder::Exported(_) => "a handle",
        FromHolder::Ready { .. } | FromHolder::Done | FromHolder::Failed { .. } => "no content",
    };
    HolderError::Refused {
        code: FailureCode::InternalError,
        message: format!("the holder answered with {kind} where something else was asked for"),
    }
}
