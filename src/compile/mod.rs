//! Source to artifact: NVRTC, nvcc, or passthrough, in a killable sandboxed child, cached by content.

mod artifact;

pub use artifact::{
    Artifact, CType, CompileTimings, Diagnostic, ImageFormat, KernelInfo, Param, Resources,
    Severity, Target,
};
