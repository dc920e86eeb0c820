//! A job's memory on the device.
//!
//! - `buffers`: allocating, filling and restoring buffers
//! - `content`: where a buffer's content comes from
//! - `input_changes`: whether inputs are as they were written
//! - `residue`: what has to be removed after a job
//! - `tools`: what filling, reading and comparing need
//! - `variables`: variables of modules
//! - `write_batch`: few launches of ours that write all buffers

pub(crate) mod buffers;
pub(crate) mod content;
pub(crate) mod input_changes;
pub(crate) mod residue;
pub(crate) mod tools;
pub(crate) mod variables;
pub(crate) mod write_batch;
