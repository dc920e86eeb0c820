//! Groups the parts of the service.

use std::sync::Arc;

use super::artifacts::ArtifactService;
use super::compile::CompileService;
use super::functions::FunctionService;
use super::gate::GateService;
use super::imports::ImportService;
use super::jobs::{EvaluationService, JobService};
use super::machine::MachineService;
use super::matrices::MatrixService;
use super::tensors::TensorService;

/// The parts of the service. The HTTP API and the local command line use them. Clones share the
/// same parts.
#[derive(Clone)]
pub struct Services {
    /// Accepts evaluations as jobs.
    pub evaluations: Arc<dyn EvaluationService>,
    /// Answers queries about accepted jobs.
    pub jobs: Arc<dyn JobService>,
    /// Returns artifacts of jobs.
    pub artifacts: Arc<dyn ArtifactService>,
    /// Compiles kernels and plans profiles.
    pub compiler: Arc<dyn CompileService>,
    /// Runs suites, and stores baselines and the history.
    pub gate: Arc<dyn GateService>,
    /// Reads reports of profilers.
    pub imports: Arc<dyn ImportService>,
    pub matrices: Arc<dyn MatrixService>,
    pub tensors: Arc<dyn TensorService>,
    /// Runs functions of callers.
    pub functions: Arc<dyn FunctionService>,
    /// Describes the machine and this process.
    pub machine: Arc<dyn MachineService>,
}
