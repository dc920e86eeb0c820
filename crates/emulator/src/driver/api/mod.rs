//! The exported functions. They check their arguments and work on `state`.

pub mod absent;
pub mod alloc;
pub mod array;
pub mod capture;
pub mod context;
pub mod device;
pub mod event;
pub mod graph;
pub mod ipc;
pub mod launch;
pub mod library;
pub mod memcpy;
pub mod module;
pub mod occupancy;
pub mod pointer;
pub mod pool;
pub mod procaddr;
pub mod report;
pub mod stream;
pub mod texture;
