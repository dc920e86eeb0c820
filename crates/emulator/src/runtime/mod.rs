//! The CUDA runtime API, as `libcudart.so` exports it, over the driver module.
//!
//! A program that nvcc compiled is linked with `-cudart none` and with this library in place of the CUDA
//! runtime. It then runs without a GPU. The symbols and layouts are those of the headers for CUDA 12 and
//! CUDA 13. The library has no symbols for missing functions. A program that needs one cannot be linked.
//!
//! # Modules
//! - `call`: the wrapper of every exported function; a thread's device, context and last error.
//! - `fatbin`, `unit`, `registration`: what compilers put into a program, and its registration.
//! - `launch`, `function`: kernels.
//! - `memory`, `copy`, `fill`, `symbol`, `pool`, `ipc`: memory and variables.
//! - `array`, `array_copy`: CUDA arrays, textures and surfaces.
//! - `device`, `properties`: devices.
//! - `stream`, `event`, `graph`: the order of work.
//! - `error`, `library`, `entry_point`: names of errors, libraries, driver functions.
//! - `exit`: the report that is written when a program ends.
//!
//! # Shape
//! Functions take the arguments of the C interface and call the driver's functions, whose codes are
//! mostly the runtime's. `error` has the codes that differ. A thread's device is that of its current
//! context in the driver. A thread without a context gets the primary context of its device from the
//! first function that needs one. The runtime identifies a kernel by the address of the function that the
//! compiler made for the host, and a variable by that of its shadow. The PTX of a fat binary is loaded
//! into a context when some part of it is first used there.
//!
//! # Where it differs from a real runtime
//! - The PTX in a fat binary must be neither compressed (`nvcc --no-compress`) nor relocatable
//!   (`-rdc=true`): nothing here unpacks or links.
//! - A `__managed__` variable is one variable on the first device that uses it. Another device has its
//!   own copy.
//! - The code and variables of a closed library stay loaded until their context ends.
//! - There are no mipmaps, cube maps, thread block clusters, graphics or external memory.
//! - Functions of graphs whose symbols differ in meaning between CUDA 12 and CUDA 13 are absent, except
//!   for hints (`cudaMemPrefetchAsync`, `cudaMemAdvise`).
//!
//! # Environment
//! In addition to those of the driver module:
//! - `WARPGAUGE_EMULATOR_REPORT_FD`: the number of an open descriptor. When a program that has used a
//!   device ends normally, it waits for the remaining work of its devices. It then writes the output of
//!   `wgEmulatorTakeReport` there. Errors are ignored, and the descriptor stays open.
//!
//! # Safety
//! As in the driver module, pointers are trusted as far as a C interface requires.

// The exported names are those of the C interface.
#![allow(non_snake_case)]

mod array;
mod array_copy;
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
