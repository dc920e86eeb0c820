//! The CUDA driver API, as `libcuda.so.1` exports it, on top of this crate's executor.
//!
//! # Modules
//! Lowest level first. No module uses one of a higher level:
//! - `c`: the C boundary.
//! - `state`: the driver's objects, and the execution of its streams.
//! - `api`: the exported functions.
//!
//! # Shape
//! Every exported function is declared with `api!` (`c::entry`), which catches panics. It works on
//! the single global `registry`: devices, memory, and tables of everything that has a handle. A
//! handle is a key into such a table and is never dereferenced, so a stale or invalid handle causes
//! `CUDA_ERROR_INVALID_HANDLE`. [`Memory`](crate::memory::Memory) checks device addresses.
//!
//! `context` holds the errors: after a fault every call on the context returns that error, until
//! the context is destroyed. `queue` contains a stream's thread, `task` a unit of its work;
//! `event`, `capture` and `graph` use its tickets. `alloc` and `copy` handle memory; `module`,
//! `function`, `launch` and `occupancy` handle kernels. `ipc` handles memory and events that
//! processes share: `segment` its files, `signal` its events. `absent` lists unsupported functions.
//!
//! # Differences from a real driver
//! - All devices share one memory. Peer access is always possible; `cuCtxEnablePeerAccess` only
//!   records it. The host can read device memory, but programs must not rely on that.
//! - The restrictions on unrelated calls during a capture in global mode are not enforced.
//! - Destroying a context waits for its work. A context that has failed skips its remaining work.
//! - Memory that one process exports and another has opened stays unchanged when the exporter
//!   releases it or ends. `cuIpcGetMemHandle` waits for running kernels and copies.
//! - Priorities, cache preferences, carveouts, prefetching and advice are stored and have no effect.
//!
//! # Environment
//! The first `cuInit` reads these variables, except for the two that the first launch reads. An
//! invalid value is an error of `cuInit`; at the first launch it is reported and ignored:
//! - `WARPGAUGE_EMULATOR_DEVICES`: 1 to 16 devices; 1 by default.
//! - `WARPGAUGE_EMULATOR_CC`: compute capability 75, 80, 86, 87, 89 or 90; 90 by default.
//! - `WARPGAUGE_EMULATOR_MEMORY_MB`: memory of each device; by default half of the host's memory shared
//!   between the devices, at most 16 GiB each.
//! - `WARPGAUGE_EMULATOR_TIMEOUT_MS`: after this time a kernel is stopped with
//!   `CUDA_ERROR_LAUNCH_TIMEOUT`; no limit by default. The first launch reads it.
//! - `WARPGAUGE_EMULATOR_ORDER`: seed of the order in which blocks start; 0 means the order of
//!   their indices, a random seed is the default. The first launch reads it.
//! - `WARPGAUGE_EMULATOR_IPC_DIR`: absolute path of the directory of memory and events that
//!   processes share; `state::segment` describes the requirements. The default is a directory of
//!   the user.
//! - `WARPGAUGE_EMULATOR_IPC_OTHER_DIR`: absolute path of a second such directory, in which files
//!   are only opened; none by default.
//!
//! # In addition to the driver API
//! The library also exports the runtime API, which `runtime` implements on top of this module, and
//! the following functions. A program looks them up by symbol; their presence distinguishes the
//! emulator from a real driver:
//! - `const char *wgEmulatorVersion(void)`
//! - `CUresult wgEmulatorSetSanitize(unsigned on)`: from the next launch on, records invalid
//!   accesses and continues, instead of stopping at the first. Also detects problems that are not
//!   faults: races, reads of uninitialised memory (allocated after this call), divergent barriers,
//!   undefined masks.
//! - `CUresult wgEmulatorSetReadOnly(CUdeviceptr address, unsigned on)`: makes the allocation
//!   read-only for kernels.
//! - `CUresult wgEmulatorSetCounting(unsigned on)`: switches the counts of memory traffic, which
//!   slow launches down; on by default.
//! - `size_t wgEmulatorTakeReport(uint8_t *buffer, size_t room)`: the counts by kernel, findings,
//!   and messages (load errors, faults) since the last call, as JSON:
//!   `{"kernels":[{"name","launches","counts":{…}}],"findings":[{"check","kernel","block",
//!   "thread","address","bytes","file","line","message","count"}],
//!   "messages":[{"subject","text"}],"dropped":{"launches","findings","messages"}}`.
//! - `size_t wgEmulatorModuleVariables(CUmodule module, uint8_t *buffer, size_t room)`: all state
//!   that the module keeps between launches, as JSON:
//!   `{"variables":[{"name","address","bytes","constant", "managed"}],"imports":["malloc"]}`.
//!   `imports` are functions that the module declares but does not define.
//!
//! # Safety
//! The exported functions trust pointers only as far as C requires (`c::entry`). `unsafe` blocks
//! give further arguments where necessary.

// The exported names are those of the C interface.
#![allow(non_snake_case)]

pub(crate) mod api;
pub(crate) mod c;
pub(crate) mod state;
