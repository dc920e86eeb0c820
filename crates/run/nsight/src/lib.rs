//! Finds NVIDIA's profiling tools, and runs workers under them.
//!
//! [`discover`] searches for programs and their versions; [`Tools`] keeps the result. [`ncu`], [`nsys`]
//! and [`sanitizer`] run one job under a tool and pass its output to the parsers of
//! [`warpgauge_metrics`]. [`read_report`] reads reports of any format, [`sqlite`] exports of Nsight Systems. [`counters`] determines who may read the hardware counters.
//!
//! A tool is foreign software with its own bugs. Each run therefore has a private directory, a time
//! limit and bounded output. Every failure is an [`Unavailable`](warpgauge_model::Unavailable) with
//! a code and a remedy, never an error of the evaluation.

#![forbid(unsafe_code)]

pub mod counters;
mod discover;
pub mod ncu;
mod ncu_values;
pub mod nsys;
mod nsys_view;
mod report_file;
mod run;
pub mod sanitizer;
pub mod sqlite;
mod watched;

pub use discover::{FoundTool, FoundTools, ToolName, ToolSearch, Tools};
pub use report_file::{ReportFileError, read_report};
pub use run::{ToolFile, own_worker};
