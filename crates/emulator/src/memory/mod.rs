//! The single address space of all emulated devices.
//!
//! Device memory is memory of this process: an emulated device address is a real address, and a load is a
//! bounds check and a `mov`. Every access, by kernels and by the host side, is a relaxed atomic of the
//! accessed element ([`raw`]). Blocks may therefore race on an address, as GPU programs do, without
//! undefined behaviour of this program.
//!
//! A freed allocation stays mapped while a launch that started earlier holds a [`Table`] that
//! contains it. It stays reserved for some time after that, so that a use after free can be
//! identified.

mod cells;
mod error;
mod heap;
mod mapping;
pub(crate) mod raw;
mod shadow;
mod space;
mod table;
mod texture;

pub(crate) use cells::Cells;
pub use error::MemoryError;
pub(crate) use heap::Heap;
pub use space::{AllocKind, Allocation, Memory};
pub(crate) use table::{Region, Table};
pub use texture::{AddressMode, TexelObject, TexelType, Texels, Texture};
