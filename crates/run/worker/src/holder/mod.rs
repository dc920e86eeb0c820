//! The processes that hold shared tensors: one for each device, and one for the host's memory.
//! [`child`] is such a process; [`Holders`] is the server's side.

pub mod child;
mod holders;
mod process;
mod protocol;

pub use holders::Holders;
