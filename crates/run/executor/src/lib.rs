//! The interface between the service, which manages jobs, and the executor, which runs them.
//!
//! The service gives an [`Executor`] a [`WorkOrder`] and follows its [`Progress`]. The service has
//! no access to devices, worker processes and compilers. An executor has no access to the store,
//! and knows an owner only as an opaque number. Orders and outcomes can be sent to another machine.

#![forbid(unsafe_code)]

mod error;
mod executor;
mod kept;
mod order;
mod progress;
mod sweep;

pub use error::{ExecError, Problem, chain, internal, invalid, logged};
pub use executor::{BuiltCode, CodeOrder, Executor, ExecutorFuture, Offer, OfferedDevice};
pub use kept::{BuiltImage, KeptKernel};
pub use order::{JobOutcome, JobWork, WorkOrder};
pub use progress::{Progress, ProgressEvent};
pub use sweep::{check_sweep, matrices_of_sweep, plan_sweep, tensors_of_sweep};
