//! A job's memory on the device.
//!
//! - `buffers`: allocating, filling and restoring buffers
//! - `content`: sources of a buffer's content
//! - `input_changes`: checks that inputs are unchanged
//! - `residue`: data to remove after a job
//! - `tools`: objects for filling, reading and comparing
//! - `variables`: variables of modules
//! - `write_batch`: launches of built-in kernels that write all buffers together

pub(crate) mod buffers;
pub(crate) mod content;
pub(crate) mod input_changes;
pub(crate) mod residue;
pub(crate) mod tools;
pub(crate) mod variables;
pub(crate) mod write_batch;
