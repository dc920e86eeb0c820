//! Compilations and profile plans. They create no jobs, and nothing about them is stored.

use std::sync::Arc;

use futures_util::FutureExt;

use super::admission::Admission;
use super::inputs::NamedInputs;
use super::submission::{Caller, ServiceFuture};
use super::tensors::Copies;
use warpgauge_contract::{CompileRequest, EvaluateRequest};
use warpgauge_executor::Executor;
use warpgauge_report::{CompileResponse, ProfilePlan};
use warpgauge_turns::Owner;

/// Compiles kernels and plans profiles, without running a kernel or creating a job.
pub trait CompileService: Send + Sync {
    /// Returns the cost of the requested profile: counters, passes and time. No kernel runs.
    fn profile_plan<'a>(
        &'a self,
        request: EvaluateRequest,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ProfilePlan>;

    /// Compiles a kernel without running it.
    fn compile<'a>(
        &'a self,
        request: CompileRequest,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CompileResponse>;
}

/// Compiles kernels and plans profiles.
pub(super) struct Compiler {
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
    inputs: Arc<NamedInputs>,
}

impl Compiler {
    /// Creates a compiler that uses this executor. Compilations need permits, like evaluations.
    pub(super) fn new(
        executor: Arc<dyn Executor>,
        admission: Arc<Admission>,
        inputs: Arc<NamedInputs>,
    ) -> Self {
        Self { executor, admission, inputs }
    }
}

impl CompileService for Compiler {
    fn profile_plan<'a>(
        &'a self,
        request: EvaluateRequest,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ProfilePlan> {
        async move {
            let (owner, mut left) = (&caller.owner, self.inputs.max_bytes());
            let request =
                self.inputs.evaluation_with(request, owner, &mut left, Copies::ThroughHost);
            Ok(self.executor.profile_plan(request.await?).await?)
        }
        .boxed()
    }

    fn compile<'a>(
        &'a self,
        request: CompileRequest,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CompileResponse> {
        async move {
            let _admitted = self.admission.admit(&caller.owner)?;
            let request = self.inputs.compilation_with(request, &caller.owner).await?;
            Ok(self.executor.compile(request, Owner::named(&caller.owner)).await?)
        }
        .boxed()
    }
}
