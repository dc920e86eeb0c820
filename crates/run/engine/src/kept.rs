//! Records of an order's kernels, which are stored so that clients can request their code later.

use std::sync::Arc;

use warpgauge_compile::{CompileFailure, CompiledModule};
use warpgauge_contract::KernelCode;
pub(crate) use warpgauge_executor::{BuiltImage, KeptKernel};
use warpgauge_model::{CountedCode, LaunchCounts, Target};

/// Maximum size of the stage texts that are stored for one kernel, in bytes.
const MAX_STAGE_BYTES: usize = 4 << 20;

/// Returns the record of a kernel that compiled.
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

/// Adds the emulator's counts of each instruction to the record of a kernel. Returns `None` if there
/// are no counts.
pub(crate) fn counted(kernel: KeptKernel, counts: Option<&LaunchCounts>) -> Option<KeptKernel> {
    let counts = counts?;
    let counted = CountedCode::new(&counts.counts, &counts.instructions)?;
    Some(KeptKernel { counted: Some(counted), ..kernel })
}

/// Returns the record of a kernel that did not compile.
pub(crate) fn rejected(
    name: &str,
    code: &KernelCode,
    target: Target,
    lineinfo: bool,
    failure: &CompileFailure,
) -> KeptKernel {
    KeptKernel::new(name, code, target, lineinfo, failure.log.clone())
}

/// Returns the record of a whole program. It contains the compiler's messages but not the built
/// code.
pub(crate) fn program(code: &KernelCode, target: Target, log: String) -> KeptKernel {
    KeptKernel::new("program", code, target, false, log)
}

/// Selects compiler stages to store, from the last stage to the first, because users request the
/// last ones most. A stage that exceeds the size limit is compiled again on demand.
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
