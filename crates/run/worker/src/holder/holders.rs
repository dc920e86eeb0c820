//! The processes that hold a server's shared tensors, and the tensors.

use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fleet::HELD_DIR;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use uuid::Uuid;
use warpgauge_device::loader::find_emulator;
use warpgauge_model::FailureCode;
use warpgauge_shared_tensors::{
    CHUNK_BYTES, ExportedTensor, FreedMemory, HeldTensor, HolderError, HolderFuture,
    HolderSettings, TensorHolders, TensorLocation, TensorRegistry,
};

use crate::holder::process::{Holder, Question, Startup};
use crate::holder::protocol::{FILL_BYTES, FromHolder, ToHolder};

/// Interval between searches for expired tensors.
const UPKEEP: Duration = Duration::from_secs(1);

/// The holders of a server. Each process is started at its first use.
pub struct Holders {
    registry: Arc<TensorRegistry>,
    holders: Arc<HashMap<TensorLocation, Arc<Holder>>>,
    devices: Vec<u32>,
    emulator: Option<PathBuf>,
    run_dir: PathBuf,
    upkeep: AbortHandle,
    /// Runtime in which memory is freed later.
    runtime: Handle,
}

impl Drop for Holders {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

impl Holders {
    /// Prepares the holders without starting a process. Must be called within a runtime.
    ///
    /// # Errors
    /// Returns why the program's path is unknown or the directory cannot be created.
    pub fn new(settings: HolderSettings) -> Result<Self, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot find the path of this program: {error}"))?;
        let run_dir = own_dir(&settings.run_dir)?;
        let HolderSettings { devices, shared_dir, limits, emulated, .. } = settings;
        let emulator = emulated.then(|| find_emulator(settings.emulator.as_deref())).flatten();
        let registry = Arc::new(TensorRegistry::new(limits));
        let places = devices.iter().map(|ordinal| TensorLocation::Device(*ordinal));
        let holders = places.chain([TensorLocation::Host]).map(|place| {
            let directory = match place {
                TensorLocation::Host => shared_dir.clone(),
                TensorLocation::Device(_) => run_dir.clone(),
            };
            let (program, emulator) = (program.clone(), emulator.clone());
            let startup = Startup { program, emulator, directory };
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
        let (upkeep, runtime) = (upkeep.abort_handle(), Handle::current());
        Ok(Self { registry, holders, devices, emulator, run_dir, upkeep, runtime })
    }

    fn holder(&self, place: TensorLocation) -> Result<&Arc<Holder>, HolderError> {
        let reason = || "there is no such device".to_owned();
        self.holders.get(&place).ok_or_else(|| HolderError::Start { place, reason: reason() })
    }

    async fn ask(&self, held: &HeldTensor, request: ToHolder) -> Result<FromHolder, HolderError> {
        let holder = self.holder(held.tensor.place)?;
        Ok(holder.ask(Some(held.generation), request.into()).await?.0)
    }
}

impl TensorHolders for Holders {
    fn registry(&self) -> &TensorRegistry {
        &self.registry
    }

    fn devices(&self) -> &[u32] {
        &self.devices
    }

    fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    fn emulator(&self) -> Option<&Path> {
        self.emulator.as_deref()
    }

    fn create(&self, place: TensorLocation, id: Uuid, bytes: u64) -> HolderFuture<'_, u64> {
        async move {
            let question = ToHolder::Create { id, bytes }.into();
            let (_, generation) = self.holder(place)?.ask(None, question).await?;
            Ok(generation)
        }
        .boxed()
    }

    fn copy<'a>(&'a self, held: &'a HeldTensor, id: Uuid) -> HolderFuture<'a, ()> {
        let request = ToHolder::Copy { from: held.id, id, bytes: held.tensor.bytes };
        async move { self.ask(held, request).await.map(drop) }.boxed()
    }

    fn fill<'a>(
        &'a self,
        at: FreedMemory,
        file: &'a Arc<File>,
        from: u64,
        bytes: u64,
    ) -> HolderFuture<'a, ()> {
        async move {
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
        .boxed()
    }

    fn read<'a>(&'a self, held: &'a HeldTensor, offset: u64) -> HolderFuture<'a, Vec<u8>> {
        async move {
            let bytes = held.tensor.bytes.saturating_sub(offset).min(CHUNK_BYTES as u64);
            let request = ToHolder::Read { id: held.id, offset, bytes };
            match self.ask(held, request).await? {
                FromHolder::Data(data) if data.len() as u64 == bytes => Ok(data),
                other => Err(out_of_turn(&other)),
            }
        }
        .boxed()
    }

    fn export<'a>(&'a self, held: &'a HeldTensor, event: bool) -> HolderFuture<'a, ExportedTensor> {
        async move {
            match self.ask(held, ToHolder::Export { id: held.id, event }).await? {
                FromHolder::Exported(exported) => Ok(exported),
                other => Err(out_of_turn(&other)),
            }
        }
        .boxed()
    }

    fn free(&self, freed: Vec<FreedMemory>) -> BoxFuture<'_, ()> {
        async move { free(&self.holders, freed).await }.boxed()
    }

    fn free_later(&self, freed: Vec<FreedMemory>) {
        if !freed.is_empty() {
            let holders = Arc::clone(&self.holders);
            // Once the runtime ends, the holders end too, and all their memory is freed.
            self.runtime.spawn(async move { free(&holders, freed).await });
        }
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        async move {
            self.upkeep.abort();
            for holder in self.holders.values() {
                holder.end().await;
            }
        }
        .boxed()
    }
}

/// Creates the directory that holders of devices write to. Processes that run kernels use another
/// directory.
fn own_dir(run_dir: &Path) -> Result<PathBuf, String> {
    let path = run_dir.join(HELD_DIR);
    let made = DirBuilder::new().mode(0o700).create(&path);
    made.map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    Ok(path)
}

async fn free(
    holders: &HashMap<TensorLocation, Arc<Holder>>,
    freed: impl IntoIterator<Item = FreedMemory>,
) {
    for FreedMemory { place, generation, id } in freed {
        let Some(holder) = holders.get(&place) else { continue };
        // The memory of a dead holder is already free.
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
        message: format!("the holder answered with {kind} instead of the requested content"),
    }
}
