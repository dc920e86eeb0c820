//! warpgauge evaluates GPU kernels: it compiles them, checks them, times them honestly and explains
//! the result.
//!
//! One way through, each stage a module that imports only what stands above it in this list:
//!
//! `contract` → `tensor` → `compile` → `worker` → `measure` → `validate` → `profile` → `tools` →
//! `report` → `gate` → `history` → `pipeline`
//!
//! [`pipeline`] alone knows the order of the stages; [`api`] and [`cli`] alone know HTTP and the
//! terminal; [`device`] alone touches CUDA and contains the crate's only `unsafe` code.

mod byte_string;
mod xml;

pub mod contained;
pub mod environment;
pub mod private;
pub mod telemetry;

pub mod tensor;

pub mod contract;

pub mod compile;

pub mod measure;
pub mod validate;

pub mod device;
pub mod queue;
pub mod sandbox;
pub mod worker;

pub mod bind;
pub mod profile;
pub mod report;
pub mod tools;

pub mod gate;
pub mod history;

pub mod config;
pub mod store;

pub mod pipeline;
pub mod webhook;

pub mod exit;

pub mod api;
pub mod cli;
