//! Calls of functions that callers send: wire types, and the container that they travel in.
//!
//! A container is the length of its head (four bytes, little endian), the head (JSON), and the rest. The
//! server reads heads. The rest of a call, the function with its data, is for the process that runs it;
//! the rest of an answer, what that process wrote, for whoever asked.

mod call;
mod container;
mod outcome;
mod places;

pub use call::{CallHead, FORMAT, FunctionCall, HeadProblem};
pub use container::{ContainerError, MAX_HEAD_BYTES, packed, unpacked};
pub use outcome::{CallStatus, FunctionOutcome, OutcomeHead};
pub use places::{FunctionLimits, FunctionPlaces, Place, PlaceKind};
