//! Tensors on the host: element types, shapes, seeded content and encodings. The main types are
//! [`Dtype`], [`Blob`] and [`TensorData`].

#![forbid(unsafe_code)]

mod apart;
mod base64_stream;
mod blob;
mod blocks;
mod content;
mod dtype;
pub mod element;
pub mod encoding;
pub mod float8;
mod generator;
mod init;
mod normal;
mod nudge;
mod on_device;
mod ordered;
mod parts;
mod philox;
mod schema;
pub mod shape;

pub use apart::{put_back, set_apart};
pub use base64_stream::{Base64Error, encode as base64};
pub use blob::{Blob, BlobError, PayloadForm};
pub use blocks::{BlockedDimension, MAX_BLOCK_DIMENSIONS, ScaleBlocks, ScaleLayout, ScaleShape};
pub use content::{
    ColumnRange, Compress, DataFormat, InitKind, OffsetsInit, OutputEncoding, PairInit, TensorData,
    TensorInit,
};
pub use dtype::Dtype;
pub use generator::{
    ElementGenerator, GlobalScale, InitError, MAX_COLUMNS, MAX_VALUES, QuantizedValues, ScaleRange,
    ZeroPoints,
};
pub use init::{fill, fill_parallel};
pub use normal::{inverse_normal_cdf, standard_normal};
pub use nudge::{can_nudge, nudge};
pub use on_device::OnDevice;
pub use parts::{real_view, shape_of_parts, unpacked};
pub use philox::{Philox, fnv1a64};
