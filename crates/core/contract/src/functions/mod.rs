//! Calls of functions that callers send: wire types, and their container.
//!
//! A container is the length of its head (four bytes, little endian), the head (JSON), and the
//! rest. The server reads the heads. The rest of a call, the function with its data, is for the
//! process that runs it. The rest of an answer, the records of that process, is for the caller.

mod call;
mod container;
mod outcome;
mod places;

pub use call::{CallHead, FORMAT, FunctionCall, HeadProblem};
pub use container::{ContainerError, MAX_HEAD_BYTES, packed, unpacked};
pub use outcome::{CallStatus, FunctionOutcome, OutcomeHead};
pub use places::{FunctionLimits, FunctionPlaces, Place, PlaceKind};
