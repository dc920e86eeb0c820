//! A program, loaded and bound to buffers.
//!
//! - `library_call`: functions of NVIDIA's libraries in place of kernels
//! - `program`: modules, arguments, launches
//! - `tensor_maps`: arguments that are tensor maps

pub(crate) mod library_call;
pub(crate) mod program;
mod steps;
mod structures;
pub(crate) mod tensor_maps;
