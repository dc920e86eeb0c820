//! The contract: what a caller sends. Wire types and their validation; no I/O.

mod check;
mod compare;
mod content;
mod error;
pub mod expr;
mod limits;
mod parse;
mod resolve;
mod scalar;
mod scalar_or_text;
mod settings;
mod sweep;
mod types;

pub use check::{TOO_MUCH_DATA, validate, validate_kernel};
pub use compare::{
    CUSTOM_NAME, Candidate, CompareRequest, DecisionSpec, MAX_CANDIDATES, REFERENCE_NAME,
    validate_compare,
};
pub use content::{Compress, DataFormat, InitKind, TensorData, TensorInit, TensorSpec};
pub use error::ContractError;
pub use limits::Limits;
pub(crate) use parse::from_value;
pub use parse::{BodyFormat, ParseError, parse};
pub use resolve::{ResolvedLaunch, resolve_launch, resolve_launch_at};
pub use scalar::ScalarValue;
pub use settings::{
    CacheState, InputChoice, Isolation, MeasureSpec, OutputEncoding, PresetName, ProfileSpec,
    ReturnOutputs, Sanitize, Tolerance, Work,
};
pub use sweep::{AxisValue, SweepAxis, SweepPlan, SweepRequest};
pub use types::{
    ArgKind, ArgSpec, Backend, Dim3, EvaluateRequest, Expected, Extent, IoContract, KernelCode,
    KernelMetadata, KernelType, Launch, Role,
};
