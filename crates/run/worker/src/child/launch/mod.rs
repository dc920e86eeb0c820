//! A program, loaded and bound to buffers.
//!
//! - `arrays`: CUDA arrays that hold memory during a run
//! - `kernel`: the launch of one kernel
//! - `library_call`: functions of NVIDIA's libraries in place of kernels
//! - `program`: modules, launches, and the variables that they restore
//! - `step_memory`: memory that the steps of a list share, in addition to the buffers
//! - `steps`: lists of launches
//! - `structures`: arguments that are structures with pointers
//! - `tensor_maps`: arguments that are tensor maps
//! - `textures`: arguments that are texture objects over buffers

mod arrays;
mod kernel;
pub(crate) mod library_call;
pub(crate) mod program;
mod step_memory;
mod steps;
mod structures;
pub(crate) mod tensor_maps;
mod textures;
