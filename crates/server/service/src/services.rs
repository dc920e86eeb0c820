//! The parts of the service.

use std::sync::Arc;

use super::artifacts::ArtifactService;
use super::compile::CompileService;
use super::functions::FunctionService;
use super::gate::GateService;
use super::jobs::{EvaluationService, JobService};
use super::machine::MachineService;
use super::matrices::MatrixService;
use super::tensors::TensorService;

/// The parts of the service, which the HTTP API and the local command line use. Clones share the
/// parts.
#[derive(Clone)]
pub struct Services {
    /// Accepts evaluations.
    pub evaluations: Arc<dyn EvaluationService>,
    /// Accepted jobs.
    pub jobs: Arc<dyn JobService>,
    /// Artifacts of jobs.
    pub artifacts: Arc<dyn ArtifactService>,
    /// Compilations and profile plans.
    pub compiler: Arc<dyn CompileService>,
    /// Suites, baselines and the history.
    pub gate: Arc<dyn GateService>,
    /// Sparse matrices.
    pub matrices: Arc<dyn MatrixService>,
    /// Shared tensors.
    pub tensors: Arc<dyn TensorService>,
    /// Functions of callers.
    pub functions: Arc<dyn FunctionService>,
    /// The machine and this process.
    pub machine: Arc<dyn MachineService>,
}
