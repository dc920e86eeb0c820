//! Groups of operations.

use poem_openapi::Tags;

/// Groups of operations.
#[derive(Tags)]
pub(crate) enum Tag {
    /// Compile, run, check and time kernels.
    Kernels,
    /// Sparse matrix times vector, in the shape of the Remote GPU Execution Service.
    Spmv,
    /// Share tensors between processes, in the shape of the GPU Tensor Server.
    Tensors,
    /// Run functions, and loops of them on all devices.
    Functions,
    /// Does a change make kernels slower? Suites, baselines and the history.
    Gate,
    /// Watch jobs and fetch their reports.
    Jobs,
    /// What this machine is and can do.
    Machine,
}
