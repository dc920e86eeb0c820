//! The CUDA runtime API, as `libcudart.so` exports it, implemented on the driver module.
//!
//! A program compiled with nvcc is linked with `-cudart none` and with this library in place of the
//! CUDA runtime. It then runs without a GPU. The symbols and layouts are those of the headers for
//! CUDA 12 and CUDA 13. Unsupported functions have no symbols, so a program that uses one cannot be
//! linked.
//!
//! # Modules
//! - `call`: the wrapper of every exported function, and a thread's device, context and last error.
//! - `fatbin`, `unit`, `registration`: the data that compilers embed in a program, and its
//!   registration.
//! - `launch`, `function`: kernels.
//! - `memory`, `copy`, `fill`, `symbol`, `pool`, `ipc`: memory and variables.
//! - `array`, `array_copy`: CUDA arrays, textures and surfaces.
//! - `device`, `properties`: devices.
//! - `stream`, `event`, `graph`: the order of work.
//! - `error`, `library`, `entry_point`: names of errors, libraries, driver functions.
//! - `exit`: the report that is written when a program ends.
//!
//! # Shape
//! Functions take the arguments of the C interface and call driver functions, whose codes are
//! mostly the same as the runtime's. `error` contains the codes that differ. A thread's device is
//! that of its current context in the driver. A thread without a context gets the primary context
//! of its device from the first function that requires one. The runtime identifies a kernel by the
//! address of the host function that the compiler generated for it, and a variable by the address
//! of its shadow. The PTX of a fat binary is loaded into a context when any part of it is first
//! used there.
//!
//! # Differences from a real runtime
//! - The PTX in a fat binary must be neither compressed (`nvcc --no-compress`) nor relocatable
//!   (`-rdc=true`): the library can neither decompress nor link it.
//! - A `__managed__` variable is one variable on the first device that uses it. Another device has
//!   a separate copy.
//! - The code and variables of a closed shared library stay loaded until their context ends.
//! - There are no mipmaps, cube maps, thread block clusters, graphics or external memory.
//! - Graph functions whose symbols differ in meaning between CUDA 12 and CUDA 13 are absent. Hints
//!   (`cudaMemPrefetchAsync`, `cudaMemAdvise`) are present despite this.
//!
//! # Environment
//! In addition to the variables of the driver module:
//! - `WARPGAUGE_EMULATOR_REPORT_FD`: the number of an open file descriptor. When a program that has
//!   used a device ends normally, it waits for the remaining work of its devices. It then writes
//!   the output of `wgEmulatorTakeReport` there. Errors are ignored, and the descriptor stays open.
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
