//! Access to the driver and to NVRTC. This is the only crate that uses cudarc, and it contains the
//! only `unsafe` code for devices.
//!
//! [`loader`] selects and opens NVIDIA's driver or the emulator, and returns a [`Driver`].
//! Everything that belongs to the context — [`Module`], [`DeviceBuffer`], [`PinnedBuffer`],
//! [`Stream`], [`Event`] — stays on the thread that opened it and frees itself.
//!
//! Entry points are looked up by name in the library that cudarc opened, with a plain `c_int` as
//! return type. cudarc's own bindings return a Rust enum, for which a code of a newer driver would
//! be undefined behaviour, and panic if a symbol is missing.

mod api;
mod array;
mod blocking_kernel;
mod content;
mod context;
pub mod cupti;
pub mod elf;
mod emulator;
mod error;
mod gather;
mod gpm;
mod image;
pub mod inspection;
mod launch;
pub mod libraries;
mod link;
pub mod loader;
pub mod locked;
mod mapped;
mod measured;
mod memory;
mod module;
mod nvml;
mod pinned;
mod reserve;
mod shared;
mod snapshot;
mod stamps;
mod stdio;
mod stream;
pub mod support;
mod tensor_map;
mod texture;
mod wipe;

pub use array::{DeviceArray, SurfaceObject};
pub use blocking_kernel::BlockingKernel;
pub use content::{RangeContent, RangeContents};
pub use context::{Context, Driver};
pub use emulator::{EmulatedVariable, EmulatedVariables, EmulatorControl};
pub use error::{DeviceError, error_code, is_sticky};
pub use gpm::{ACTIVITY, GpmError, GpmReading, GpmValue};
pub use launch::{LaunchShape, Params, PreparedLaunch};
pub use link::link_ptx;
pub use loader::{DriverChoice, LoadError};
pub use mapped::MappedFile;
pub use measured::MeasuredErrors;
pub use memory::DeviceBuffer;
pub use module::{KernelFunction, Module};
pub use nvml::{GpuHealth, GpuMonitor, GpuSettings};
pub use pinned::{PendingCopy, PinnedBuffer, PinnedPool, Staging};
pub use shared::MemoryHandle;
pub use snapshot::{VariableRange, VariableSnapshot};
pub use stamps::{ClockReading, Stamp, Stamps, clock_between};
pub use stdio::flush_c_streams;
pub use stream::{Event, EventPool, Stream};
pub use tensor_map::{TENSOR_MAP_BYTES, encode_tensor_map};
pub use texture::TextureObject;
pub use wipe::SharedWipe;

pub mod nvrtc;
