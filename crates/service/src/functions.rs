//! Functions that callers send to be run: no jobs, and nothing is kept of them.

use futures_util::FutureExt;

use super::start::LocalService;
use super::submission::Answer;
use warpgauge_functions::{FunctionCall, FunctionOutcome, FunctionPlaces};

/// Runs functions of callers. Who may have some run is decided above.
pub trait FunctionService: Send + Sync {
    /// Where functions can run.
    fn function_places(&self) -> FunctionPlaces;

    /// Runs one call. Dropping the future ends it.
    fn call_function(&self, call: FunctionCall) -> Answer<'_, FunctionOutcome>;
}

impl FunctionService for LocalService {
    fn function_places(&self) -> FunctionPlaces {
        self.shared.executor.function_places()
    }

    fn call_function(&self, call: FunctionCall) -> Answer<'_, FunctionOutcome> {
        async move {
            let _admitted = self.shared.admit(&call.owner)?;
            Ok(self.shared.executor.call_function(call).await?)
        }
        .boxed()
    }
}
