//! Kernels of an order that are kept for those who ask for their code later.

use std::sync::Arc;

use warpgauge_compile::{CompileFailure, CompiledModule};
use warpgauge_contract::KernelCode;
pub(crate) use warpgauge_executor::{BuiltImage, KeptKernel};
use warpgauge_model::Target;

/// Most bytes of all texts of one kernel's stages that are kept.
const MAX_STAGE_BYTES: usize = 4 << 20;

/// A kernel that compiled.
pub(crate) fn built(
    name: &str,
    code: &KernelCode,
    target: Target,
    lineinfo: bool,
    artifact: &CompiledModule,
) -> KeptKernel {
    let built = BuiltImage {
        image: Arc::clone(&artifact.image),
        format: artifact.format,
        stages: bounded_stages(artifact),
    };
    let log = artifact.log.clone();
    KeptKernel { built: Some(built), ..KeptKernel::new(name, code, target, lineinfo, log) }
}

/// A kernel that did not.
pub(crate) fn rejected(
    name: &str,
    code: &KernelCode,
    target: Target,
    lineinfo: bool,
    failure: &CompileFailure,
) -> KeptKernel {
    KeptKernel::new(name, code, target, lineinfo, failure.log.clone())
}

/// A whole program: of what was built, the compiler's messages alone are kept.
pub(crate) fn program(code: &KernelCode, target: Target, log: String) -> KeptKernel {
    KeptKernel::new("program", code, target, false, log)
}

/// The last stages first, which people ask for most; what has no room is compiled again on demand.
fn bounded_stages(artifact: &CompiledModule) -> Vec<(String, String)> {
    let mut room = MAX_STAGE_BYTES;
    let mut kept = Vec::new();
    for (language, text) in artifact.stages.iter().rev() {
        let is_image = text.as_bytes() == &artifact.image[..];
        if !is_image && text.len() <= room {
            room -= text.len();
            kept.push((language.clone(), text.clone()));
        }
    }
    kept
}
