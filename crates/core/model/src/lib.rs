//! Basic types that all crates share: devices, compilation targets, images, kernel resources, error
//! codes, reasons for missing data, and kinds and states of jobs. No I/O, and no dependency on
//! another crate of this workspace.

#![forbid(unsafe_code)]

pub mod byte_string;
mod cause;
mod codes;
mod conditions;
mod device;
mod device_state;
mod diagnostic;
mod error_code;
mod failure;
pub mod gate_page;
mod hidden;
mod host;
mod image;
mod instructions;
mod job;
mod library;
mod observed;
mod requirements;
mod resources;
mod spelling;
mod target;
mod tensor_map;
mod texels;
mod texture;
mod timings;
mod unavailable;

pub use cause::Cause;
pub use conditions::{CacheState, PresetName, Regime, Work};
pub use device::{DeviceInfo, DeviceKind, SmLimits};
pub use device_state::DeviceState;
pub use diagnostic::{Diagnostic, Severity};
pub use error_code::ErrorCode;
pub use failure::{FailureCode, FailureStage};
pub use hidden::is_hidden;
pub use host::HostPattern;
pub use image::{Image, ImageFormat};
pub use instructions::{
    CountedCode, CountedInstruction, InstructionCounts, MAX_COUNTED_INSTRUCTIONS,
};
pub use job::{JobKind, JobStage, JobState, PartialStatistics};
pub use library::Library;
pub use observed::{LaunchCounts, MonitorFacts, MonitorWindow};
pub use requirements::{COMMON_LANGUAGES, DeviceOffer, ExecutorCapabilities, Requirements};
pub use resources::{FunctionFacts, Resources};
pub use spelling::{edit_distance, nearest};
pub use target::Target;
pub use tensor_map::{MapElement, MapSwizzle, TensorMap};
pub use texels::{TexelElement, TexelGrid, TexelReader};
pub use texture::{TEXTURE_ALIGNMENT, TextureAddress, TextureFilter, TextureLayout, TextureRead};
pub use timings::WorkerTimings;
pub use unavailable::Unavailable;
