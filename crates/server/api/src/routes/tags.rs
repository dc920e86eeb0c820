//! Groups of operations in the OpenAPI documents.

use poem_openapi::Tags;

/// Groups of operations.
#[derive(Tags)]
pub(crate) enum Tag {
    /// Compile, run, check and time kernels.
    Kernels,
    /// Multiply sparse matrices by vectors, with the fields of the Remote GPU Execution Service.
    Spmv,
    /// Share tensors between processes, with the fields of the GPU Tensor Server.
    Tensors,
    /// Run Python functions, and run them in loops on all devices.
    Functions,
    /// Detect changes that make kernels slower: suites, baselines and the history.
    Gate,
    /// Watch jobs and fetch their reports.
    Jobs,
    /// Read reports of profilers, and compare them.
    Reports,
    /// Describe the machine and its capabilities.
    Machine,
}
