//! Compilations and profile plans: no jobs, and nothing is kept of them.

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

/// Looks at kernels without running them. Leaves no job.
pub trait CompileService: Send + Sync {
    /// What the profile that a request asks for would take; nothing is run.
    fn profile_plan<'a>(
        &'a self,
        request: EvaluateRequest,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ProfilePlan>;

    /// Compiles only.
    fn compile<'a>(
        &'a self,
        request: CompileRequest,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CompileResponse>;
}

/// Compiles, and plans profiles.
pub(super) struct Compiler {
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
    inputs: Arc<NamedInputs>,
}

impl Compiler {
    /// A compiler behind this executor. Compilations are admitted as evaluations are.
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
