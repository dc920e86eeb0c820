//! The library's single global state: devices, memory, and the tables of all handles.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::array::Array;
use super::context::Context;
use super::device::{DeviceInfo, Settings};
use super::event::Event;
use super::graph::{Exec, Graph, NodeId};
use super::ledger::Ledger;
use super::library::{Kernel, Library};
use super::module::{FunctionEntry, ModuleEntry};
use super::pool::Pool;
use super::report::Reports;
use super::segment::Directory;
use super::stream::Stream;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::memory::Memory;

/// A table of objects by handle. Handles are never reused, so a stale one is always detected.
pub struct Table<T> {
    rows: RwLock<HashMap<Handle, Arc<T>>>,
}

/// The next unused handle. Handles are far above the small constants that have a meaning in the
/// API: stream 1 is the legacy default stream, stream 2 the per-thread default stream.
static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
const STEP: usize = 0x10;

/// Returns a handle that has not been used before.
pub fn fresh() -> Handle {
    NEXT.fetch_add(STEP, Ordering::Relaxed)
}

impl<T> Table<T> {
    fn new() -> Self {
        Table { rows: RwLock::new(HashMap::new()) }
    }

    pub fn insert(&self, value: Arc<T>) -> Handle {
        let handle = fresh();
        self.insert_as(handle, value);
        handle
    }

    pub fn insert_as(&self, handle: Handle, value: Arc<T>) {
        self.rows.write().unwrap_or_else(PoisonError::into_inner).insert(handle, value);
    }

    /// Returns the object of a handle, or `INVALID_HANDLE` if the handle is unknown.
    pub fn get(&self, handle: Handle) -> Res<Arc<T>> {
        self.find(handle).ok_or(Code::INVALID_HANDLE)
    }

    pub fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    pub fn remove(&self, handle: Handle) -> Res<Arc<T>> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        rows.remove(&handle).ok_or(Code::INVALID_HANDLE)
    }

    /// Returns all objects of the table.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Removes all objects for which `doomed` returns true. They are dropped after the lock is
    /// released, because dropping one may access this table again.
    pub fn purge(&self, doomed: impl Fn(&T) -> bool) {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<Handle> =
            rows.iter().filter(|(_, value)| doomed(value)).map(|(&key, _)| key).collect();
        let removed: Vec<_> = keys.iter().filter_map(|key| rows.remove(key)).collect();
        drop(rows);
        drop(removed);
    }
}

/// The state that all exported functions share.
pub struct Registry {
    pub memory: Arc<Memory>,
    pub devices: Vec<DeviceInfo>,
    pub ledger: Ledger,
    pub reports: Reports,
    pub segments: Directory,
    pub arrays: Table<Array>,
    pub contexts: Table<Context>,
    pub streams: Table<Stream>,
    pub events: Table<Event>,
    pub modules: Table<ModuleEntry>,
    pub functions: Table<FunctionEntry>,
    pub libraries: Table<Library>,
    pub kernels: Table<Kernel>,
    pub graphs: Table<Graph>,
    pub nodes: Table<NodeId>,
    pub execs: Table<Exec>,
    pub pools: Table<Pool>,
}

static REGISTRY: OnceLock<Result<Registry, String>> = OnceLock::new();
static INITIALISED: AtomicBool = AtomicBool::new(false);

fn build() -> Result<Registry, String> {
    let registry = Registry {
        memory: Arc::new(Memory::new()),
        devices: DeviceInfo::all(&Settings::from_environment()?),
        ledger: Ledger::default(),
        reports: Reports::default(),
        segments: Directory::from_environment()?,
        arrays: Table::new(),
        contexts: Table::new(),
        streams: Table::new(),
        events: Table::new(),
        modules: Table::new(),
        functions: Table::new(),
        libraries: Table::new(),
        kernels: Table::new(),
        graphs: Table::new(),
        nodes: Table::new(),
        execs: Table::new(),
        pools: Table::new(),
    };
    for device in &registry.devices {
        registry.pools.insert_as(device.default_pool, Arc::new(Pool::of(device.ordinal)));
    }
    Ok(registry)
}

/// Implements `cuInit`: the first call creates the state.
pub fn initialise() -> Res {
    match REGISTRY.get_or_init(build) {
        Ok(_) => {
            INITIALISED.store(true, Ordering::Release);
            Ok(())
        }
        Err(message) => {
            eprintln!("warpgauge emulator: {message}");
            Err(Code::INVALID_VALUE)
        }
    }
}

/// Returns the global state, or an error before `cuInit`.
pub fn registry() -> Res<&'static Registry> {
    if !INITIALISED.load(Ordering::Acquire) {
        return Err(Code::NOT_INITIALIZED);
    }
    REGISTRY.get().and_then(|built| built.as_ref().ok()).ok_or(Code::NOT_INITIALIZED)
}

/// Returns the device with this ordinal.
pub fn device(ordinal: i32) -> Res<&'static DeviceInfo> {
    let devices = &registry()?.devices;
    usize::try_from(ordinal).ok().and_then(|at| devices.get(at)).ok_or(Code::INVALID_DEVICE)
}
