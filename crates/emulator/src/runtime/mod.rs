//! The CUDA runtime API, as `libcudart.so` exports it, over the driver module.
//!
//! A program that nvcc compiled is linked with `-cudart none` and this library in the place of the
//! CUDA runtime, and then runs where there is no GPU. The symbols and layouts are those of the
//! headers of CUDA 12 and 13. What is missing here is no symbol of the library, so that a program
//! which needs it is refused when it is linked.
//!
//! # Modules
//! - `call`: the wrapper of every exported function; a thread's device, context and last error.
//! - `fatbin`, `unit`, `registration`: what compilers put into a program, and how it says so.
//! - `launch`, `function`: kernels.
//! - `memory`, `copy`, `fill`, `symbol`, `pool`, `ipc`: memory and variables.
//! - `device`, `properties`: devices.
//! - `stream`, `event`, `graph`: the order of work.
//! - `error`, `library`, `entry_point`: names of errors, libraries, driver functions.
//! - `exit`: the report that a program leaves behind.
//!
//! # Shape
//! Functions take what the C interface has and call the driver's, whose codes are mostly the
//! runtime's; `error` has those that are not. A thread's device is that of its current context in
//! the driver; a thread without one is given the primary context of its device by the first
//! function that needs it. A kernel is known by the address of the function that the compiler made
//! for the host, a variable by that of its shadow. The PTX of a fat binary is loaded into a context
//! when something of it is first used there.
//!
//! # Where it differs from a real runtime
//! - The PTX in a fat binary must be neither compressed (`nvcc --no-compress`) nor relocatable
//!   (`-rdc=true`): nothing here unpacks or links.
//! - A `__managed__` variable is one variable on the first device that uses it; another device has
//!   a copy of its own.
//! - What a library that is closed again brought with it stays loaded until its context ends.
//! - There are no arrays, textures, surfaces, thread block clusters, graphics or external memory.
//! - Functions of graphs whose symbols mean one thing in CUDA 12 and another in CUDA 13 are absent,
//!   but for those that are hints (`cudaMemPrefetchAsync`, `cudaMemAdvise`).
//!
//! # Environment
//! Beside what the driver module reads:
//! - `WARPGAUGE_EMULATOR_REPORT_FD`: the number of an open descriptor. A program that ends normally,
//!   and has used a device, waits for what its devices still do and writes there what
//!   `wgEmulatorTakeReport` tells. Errors are ignored, and the descriptor stays open.
//!
//! # Safety
//! As in the driver module: pointers are trusted as far as C makes everybody trust them.

// The exported names are those of the C interface.
#![allow(non_snake_case)]

mod call;
mod copy;
mod device;
mod entry_point;
mod error;
mod event;
mod exit;
mod fatbin;
mod fill;
mod function;
mod graph;
mod ipc;
mod launch;
mod library;
mod memory;
mod pool;
mod properties;
mod registration;
mod stream;
mod symbol;
mod unit;
