//! Findings about a kernel other than its times: from NVIDIA's tools, the driver's monitoring and
//! the emulator.

pub(crate) mod analysed;
mod monitored;
mod nested;
pub(crate) mod nsight;
pub(crate) mod plan;
pub(crate) mod profiled;
pub(crate) mod sanitized;
pub(crate) mod timeline;
pub(crate) mod tool_runs;
