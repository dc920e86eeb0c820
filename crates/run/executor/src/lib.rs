//! The seam between the service, which keeps jobs, and what carries them out.
//!
//! The service gives an [`Executor`] a [`WorkOrder`] and follows its [`Progress`]. It sees no device, no worker
//! process and no compiler. An executor sees no store, and knows an owner by an opaque number. Orders and
//! outcomes can travel to another machine.

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
