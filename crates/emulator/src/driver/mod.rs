//! The CUDA driver API, as `libcuda.so.1` exports it, over this crate's executor.
//!
//! # Modules
//! Lowest first; none uses those below it in this list:
//! - `c`: the C boundary.
//! - `state`: what the driver keeps, and what its streams do.
//! - `api`: the exported functions.
//!
//! # Shape
//! Every exported function is declared with `api!` (`c::entry`), which catches panics, and works on
//! the one global `registry`: devices, memory, and tables of everything that has a handle. A
//! handle is a key into such a table and is never dereferenced, so a stale or wrong one is
//! `CUDA_ERROR_INVALID_HANDLE`; a device address is checked by [`Memory`](crate::memory::Memory).
//!
//! `context` holds the errors: after a fault every call on the context fails with it, until the
//! context is destroyed. `queue` is a stream's thread, `task` what it does, `event`, `capture`
//! and `graph` build on its tickets. `alloc` and `copy` are memory; `module`, `function`, `launch`
//! and `occupancy` are kernels. `ipc` is what processes share: `segment` has its files, `signal`
//! the events. `absent` lists what there is not.
//!
//! # Where it differs from a real driver
//! - Memory of all devices is one memory. Peer access is always there; `cuCtxEnablePeerAccess`
//!   only keeps its books. Device memory is readable by the host, which no program may rely on.
//! - The restrictions on unrelated calls during a capture in global mode are not enforced.
//! - Destroying a context waits for its work; a context that failed has none left.
//! - What one process exports and another has open stays as it is when the exporter releases it or
//!   ends. `cuIpcGetMemHandle` waits for kernels and copies that run.
//! - Priorities, cache preferences, carveouts, prefetching and advice are kept and have no effect.
//!
//! # Environment
//! Read by the first `cuInit`, which fails on a value that makes no sense:
//! - `WARPGAUGE_EMULATOR_DEVICES`: 1 to 16 devices; 1 by default.
//! - `WARPGAUGE_EMULATOR_CC`: compute capability 75, 80, 86, 87, 89 or 90; 90 by default.
//! - `WARPGAUGE_EMULATOR_MEMORY_MB`: memory of each device; by default half of the host's memory
//!   shared between the devices, at most 16 GiB each.
//! - `WARPGAUGE_EMULATOR_TIMEOUT_MS`: after this time a kernel is stopped with
//!   `CUDA_ERROR_LAUNCH_TIMEOUT`; no limit by default.
//! - `WARPGAUGE_EMULATOR_IPC_DIR`: the directory of memory and events that processes share, an
//!   absolute path; `state::segment` says what it must be. By default one of the user's own.
//!
//! # Beside the driver API
//! The runtime API, which `runtime` exports over this module. And functions to look up by symbol; their presence tells the emulator from a real driver:
//! - `const char *wgEmulatorVersion(void)`
//! - `CUresult wgEmulatorSetSanitize(unsigned on)`: from the next launch on, list wrong accesses
//!   and go on, instead of stopping at the first, and look for what is no fault: races, reads of
//!   memory that nobody wrote (if it was allocated after this call), divergent barriers.
//! - `CUresult wgEmulatorSetReadOnly(CUdeviceptr address, unsigned on)`: kernels may not write to
//!   the allocation.
//! - `CUresult wgEmulatorSetCounting(unsigned on)`: memory counts, which cost time; on by default.
//! - `size_t wgEmulatorTakeReport(uint8_t *buffer, size_t room)`: the counts by kernel, findings,
//!   and messages (load errors, faults) since the last call, as JSON:
//!   `{"kernels":[{"name","launches","counts":{…}}],"findings":[{"check","kernel","block",
//!   "thread","address","bytes","file","line","message","count"}],
//!   "messages":[{"subject","text"}],"dropped":{"launches","findings","messages"}}`.
//! - `size_t wgEmulatorModuleVariables(CUmodule module, uint8_t *buffer, size_t room)`: all that the
//!   module keeps between launches, as JSON: `{"variables":[{"name","address","bytes","constant",
//!   "managed"}],"imports":["malloc"]}`; `imports` are functions that it declares and does not
//!   define.
//!
//! # Safety
//! The exported functions trust pointers as far as C makes everybody trust them (`c::entry`), and
//! nothing else. `unsafe` blocks say more where more is needed.

// The exported names are those of the C interface.
#![allow(non_snake_case)]

pub(crate) mod api;
pub(crate) mod c;
pub(crate) mod state;
