//! Tensors on the host: element types, shapes, seeded initialisation, encodings, comparison.

mod blob;
mod dtype;

pub use blob::Blob;
pub use dtype::Dtype;
