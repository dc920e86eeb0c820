//! The CUDA driver API, as `libcuda.so.1` exports it, on top of this crate's executor.
//!
//! # Modules
//! Lowest first; none uses those below it in this list:
//! - `c`: the C boundary.
//! - `state`: the driver's objects, and the execution of its streams.
//! - `api`: the exported functions.
//!
//! # Shape
//! Every exported function is declared with `api!` (`c::entry`), which catches panics, and works on the
//! one global `registry`: devices, memory, and tables of everything that has a handle. A handle is a key
//! into such a table and is never dereferenced, so a stale or wrong one is `CUDA_ERROR_INVALID_HANDLE`; a
//! device address is checked by [`Memory`](crate::memory::Memory).
//!
//! `context` holds the errors: after a fault every call on the context fails with it, until the context
//! is destroyed. `queue` is a stream's thread, `task` a unit of its work; `event`, `capture` and `graph`
//! build on its tickets. `alloc` and `copy` are memory; `module`, `function`, `launch` and `occupancy`
//! are kernels. `ipc` is memory and events that processes share: `segment` has the files, `signal` the
//! events. `absent` lists unsupported functions.
//!
//! # Differences from a real driver
//! - All devices share one memory. Peer access is always possible; `cuCtxEnablePeerAccess` only records
//!   it. The host can read device memory, which no program may rely on.
//! - The restrictions on unrelated calls during a capture in global mode are not enforced.
//! - Destroying a context waits for its work; a context that failed has none left.
//! - Memory that one process exports and another has open stays unchanged when the exporter releases it
//!   or ends. `cuIpcGetMemHandle` waits for running kernels and copies.
//! - Priorities, cache preferences, carveouts, prefetching and advice are stored and have no effect.
//!
//! # Environment
//! The first `cuInit` reads these variables, and fails on an invalid value:
//! - `WARPGAUGE_EMULATOR_DEVICES`: 1 to 16 devices; 1 by default.
//! - `WARPGAUGE_EMULATOR_CC`: compute capability 75, 80, 86, 87, 89 or 90; 90 by default.
//! - `WARPGAUGE_EMULATOR_MEMORY_MB`: memory of each device; by default half of the host's memory shared
//!   between the devices, at most 16 GiB each.
//! - `WARPGAUGE_EMULATOR_TIMEOUT_MS`: after this time a kernel is stopped with
//!   `CUDA_ERROR_LAUNCH_TIMEOUT`; no limit by default.
//! - `WARPGAUGE_EMULATOR_IPC_DIR`: the directory of memory and events that processes share, an absolute
//!   path; `state::segment` has the requirements. The default is a directory of the user.
//!
//! # Besides the driver API
//! The runtime API, which `runtime` exports on top of this module, and functions to look up by symbol,
//! whose presence distinguishes the emulator from a real driver:
//! - `const char *wgEmulatorVersion(void)`
//! - `CUresult wgEmulatorSetSanitize(unsigned on)`: from the next launch on, records wrong accesses and
//!   continues, instead of stopping at the first. Also looks for problems that are no faults: races,
//!   reads of uninitialised memory (allocated after this call), divergent barriers.
//! - `CUresult wgEmulatorSetReadOnly(CUdeviceptr address, unsigned on)`: kernels may not write to the
//!   allocation.
//! - `CUresult wgEmulatorSetCounting(unsigned on)`: memory counts, which take time; on by default.
//! - `size_t wgEmulatorTakeReport(uint8_t *buffer, size_t room)`: the counts by kernel, findings, and
//!   messages (load errors, faults) since the last call, as JSON:
//!   `{"kernels":[{"name","launches","counts":{…}}],"findings":[{"check","kernel","block",
//!   "thread","address","bytes","file","line","message","count"}],
//!   "messages":[{"subject","text"}],"dropped":{"launches","findings","messages"}}`.
//! - `size_t wgEmulatorModuleVariables(CUmodule module, uint8_t *buffer, size_t room)`: all state that
//!   the module keeps between launches, as JSON: `{"variables":[{"name","address","bytes","constant",
//!   "managed"}],"imports":["malloc"]}`; `imports` are functions that it declares and does not define.
//!
//! # Safety
//! The exported functions trust pointers only as far as C requires (`c::entry`). `unsafe` blocks give
//! further arguments where they need them.

// The exported names are those of the C interface.
#![allow(non_snake_case)]

pub(crate) mod api;
pub(crate) mod c;
pub(crate) mod state;
