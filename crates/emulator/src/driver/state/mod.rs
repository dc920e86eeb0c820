//! The driver's objects in one registry: devices, contexts, streams, memory, kernels and graphs.
//!
//! The objects refer to one another, and all refer to the registry, so they form one group of
//! modules.

pub mod array;
pub mod attributes;
pub mod capture;
pub mod context;
pub mod copy;
pub mod device;
pub mod event;
pub mod function;
pub mod graph;
pub mod image;
pub mod jit;
pub mod launch;
pub mod ledger;
pub mod library;
pub mod limits;
pub mod module;
pub mod pages;
pub mod pool;
pub mod queue;
pub mod registry;
pub mod report;
pub mod segment;
pub mod signal;
pub mod stream;
pub mod task;
