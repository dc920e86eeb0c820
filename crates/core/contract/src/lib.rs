//! The contract: the requests of callers. Wire types and their validation, without I/O.

#![forbid(unsafe_code)]

mod check;
mod checked;
mod compare;
mod compare_as;
mod compatible;
mod compile;
mod content;
mod dependent;
mod error;
pub mod expr;
pub mod functions;
mod keep;
mod kernel_type;
mod languages;
mod launches;
mod legacy;
mod library;
mod limits;
mod named;
mod parse;
mod resolve;
mod scalar;
mod scalar_or_text;
pub mod schema;
mod settings;
mod shapes;
mod shared;
mod surface;
mod sweep;
mod texels;
mod texture;
mod triton;
mod types;

pub use check::MAX_FILES;
pub use check::program::check_comparable;
pub use check::{validate, validate_kernel};
pub use checked::{Checked, Rules};
pub use compare::{
    CUSTOM_NAME, Candidate, CompareRequest, DecisionSpec, MAX_CANDIDATE_NAME_BYTES, MAX_CANDIDATES,
    REFERENCE_NAME, validate_compare,
};
pub use compare_as::{CompareAs, ScalesOf};
pub use compatible::{Compatible, RequestWarning};
pub use compile::CompileRequest;
pub use content::TensorSpec;
pub use dependent::settled_init;
pub use error::ContractError;
pub use keep::KeepOutput;
pub use kernel_type::{CodeForm, FILE_EXTENSIONS, KernelFamily, KernelRuntime, KernelType};
pub use languages::UsesLanguages;
pub use launches::{
    CopyStep, FieldPath, LaunchStep, Line, MAX_FIELDS, MAX_STEPS, PointerEntry, ResolvedProgram,
    ResolvedStep, StepArgument, StructureField, ValueError, composed_value, lines_of,
    resolve_program,
};
pub use legacy::LegacyCompareRequest;
pub use library::{LibraryFunction, ResolvedCall, resolve_call};
pub use limits::ContractLimits;
pub use named::{
    KeptMatrix, MAX_MATRICES, MatrixNames, MatrixOrigin, MatrixPart, MatrixUsed, NamesMatrices,
};
pub use parse::from_value;
pub use parse::{
    BodyFormat, ParseError, compatible_from_value, parse, parse_arrays, parse_compatible,
    with_suggestion,
};
pub use resolve::{Names, ResolvedLaunch, resolve_launch, resolve_launch_at};
pub use scalar::ScalarValue;
pub use settings::{
    InputChoice, Isolation, MeasureSpec, ProfileSpec, ReturnOutputs, Sanitize, Tolerance,
};
pub use shared::{
    CopiedTensor, MAX_TENSORS, NamedTensor, NamesTensors, TensorNames, TensorOrigin, TensorUsed,
};
pub use surface::SurfaceSpec;
pub use sweep::{AxisValue, SweepAxis, SweepPlan, SweepRequest, axes_in};
pub use texture::TextureSpec;
pub use types::{
    ArgKind, ArgSpec, Backend, Dim3, EvaluateRequest, Expected, Extent, IoContract, KernelCode,
    KernelMetadata, Launch, Padding, Role, TensorDescriptor,
};
