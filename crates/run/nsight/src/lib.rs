//! NVIDIA's tools: where they are, and running them round a worker.
//!
//! [`discover`] looks for programs and asks each for its version; [`Tools`] keeps what was found.
//! [`ncu`], [`nsys`] and [`sanitizer`] run one job under a tool and hand what it wrote to the parsers
//! of [`warpgauge_metrics`]. [`counters`] tells who may read the hardware's counters here.
//!
//! A tool is a foreign program with bugs of its own: each run has a private directory, a time limit
//! and bounds, and whatever goes wrong is a [`Unavailable`](warpgauge_model::Unavailable) with a code and a remedy, never an error of
//! the evaluation.

#![forbid(unsafe_code)]

pub mod counters;
mod discover;
pub mod ncu;
mod ncu_values;
pub mod nsys;
mod nsys_view;
mod run;
pub mod sanitizer;
mod watched;

pub use discover::{FoundTool, FoundTools, ToolName, ToolSearch, Tools};
pub use run::{ToolFile, own_worker};
