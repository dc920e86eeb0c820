//! Functions that callers send to be run: no jobs, and nothing is kept of them.

use std::sync::Arc;

use futures_util::FutureExt;

use super::admission::Admission;
use super::submission::ServiceFuture;
use warpgauge_contract::functions::{FunctionCall, FunctionOutcome, FunctionPlaces};
use warpgauge_executor::Executor;

/// Runs functions of callers. Who may have some run is decided above.
pub trait FunctionService: Send + Sync {
    /// Where functions can run.
    fn function_places(&self) -> FunctionPlaces;

    /// Runs one call. Dropping the future ends it.
    fn call_function(&self, call: FunctionCall) -> ServiceFuture<'_, FunctionOutcome>;
}

/// Has an executor run functions.
pub(super) struct Functions {
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
}

impl Functions {
    /// Functions on this executor. Calls are admitted as evaluations are.
    pub(super) fn new(executor: Arc<dyn Executor>, admission: Arc<Admission>) -> Self {
        Self { executor, admission }
    }
}

impl FunctionService for Functions {
    fn function_places(&self) -> FunctionPlaces {
        self.executor.function_places()
    }

    fn call_function(&self, call: FunctionCall) -> ServiceFuture<'_, FunctionOutcome> {
        async move {
            let _admitted = self.admission.admit(&call.owner)?;
            Ok(self.executor.call_function(call).await?)
        }
        .boxed()
    }
}
