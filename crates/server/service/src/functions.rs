//! Runs functions that callers send. Calls create no jobs, and nothing about them is stored.

use std::sync::Arc;

use futures_util::FutureExt;

use super::admission::Admission;
use super::submission::ServiceFuture;
use warpgauge_contract::functions::{FunctionCall, FunctionOutcome, FunctionPlaces};
use warpgauge_executor::Executor;

/// Runs callers' functions. The HTTP API checks the caller's permission first.
pub trait FunctionService: Send + Sync {
    /// Returns the devices on which functions can run.
    fn function_places(&self) -> FunctionPlaces;

    /// Runs one function call. Dropping the future stops the call.
    fn call_function(&self, call: FunctionCall) -> ServiceFuture<'_, FunctionOutcome>;
}

/// Runs functions on an executor.
pub(super) struct Functions {
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
}

impl Functions {
    /// Creates the function service on this executor. Calls need permits, like evaluations.
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
