//! How much tensor data a request brings: packed, it says little of what it becomes.

use crate::error::Mistakes;
use crate::{ContractLimits, EvaluateRequest, TensorSpec};
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Compress, TensorData, shape};

/// Checks what compressed data of the whole request may become. What is not compressed is as large as
/// the body that brought it.
pub(super) fn check(request: &EvaluateRequest, limits: &ContractLimits, mistakes: &mut Mistakes) {
    let bytes = sum(request, |data| data.compress != Compress::None);
    mistakes.require(bytes <= limits.max_decoded_bytes, "kernel.io.args", FailureCode::TooMuchData, || {
        format!(
            "the compressed tensor data become {bytes} bytes, inputs and expected outputs together; at \
             most {} are unpacked (limits.max_decoded_bytes). Generate inputs (`init`), or compute \
             what is expected with a reference kernel (`expected.….kernel`)",
            limits.max_decoded_bytes
        )
    });
}

impl EvaluateRequest {
    /// Bytes of its tensor data once all is unpacked, and of outputs that are kept: what they take on the
    /// disk. What stays on a device takes none.
    pub fn decoded_bytes(&self) -> u64 {
        let args = self.kernel.io.iter().flat_map(|io| &io.args);
        let kept = args.filter(|arg| self.keep_outputs.contains_key(&arg.name));
        let kept = kept.filter_map(|arg| arg.tensor_spec.as_ref()).map(bytes);
        let unpacked = sum(self, |data| data.data_b64.on_device().is_none());
        kept.fold(unpacked, u64::saturating_add)
    }
}

/// Bytes of the tensors whose data are meant. Never more than that is unpacked.
fn sum(request: &EvaluateRequest, meant: impl Fn(&TensorData) -> bool) -> u64 {
    let args = request.kernel.io.iter().flat_map(|io| &io.args);
    let mut sum = 0_u64;
    for arg in args {
        let Some(spec) = &arg.tensor_spec else { continue };
        let expected = request.expected.get(&arg.name).and_then(|expected| expected.data.as_ref());
        for _ in spec.data.iter().chain(expected).filter(|data| meant(data)) {
            sum = sum.saturating_add(bytes(spec));
        }
    }
    sum
}

/// Bytes of a tensor; 0 for a shape that is a mistake of its own.
fn bytes(spec: &TensorSpec) -> u64 {
    shape::bytes(&spec.shape, spec.dtype).unwrap_or(0)
}
