//! Bounds the decoded size of the tensor data of a request, which the length of compressed data
//! does not show.

use crate::error::Mistakes;
use crate::{ContractLimits, EvaluateRequest, TensorSpec};
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Compress, TensorData, shape};

/// Checks the decoded size of compressed data in the whole request. The limit on bodies bounds
/// uncompressed data.
pub(super) fn check(request: &EvaluateRequest, limits: &ContractLimits, mistakes: &mut Mistakes) {
    let bytes = sum(request, |data| data.compress != Compress::None);
    mistakes.require(
        bytes <= limits.max_decoded_bytes,
        "kernel.io.args",
        FailureCode::TooMuchData,
        || {
            format!(
                "the compressed tensor data decodes to {bytes} bytes, inputs and expected outputs \
             together; at most {} are accepted (limits.max_decoded_bytes). Generate inputs \
             (`init`), or compute the expected outputs with a reference kernel \
             (`expected.….kernel`)",
                limits.max_decoded_bytes
            )
        },
    );
}

impl EvaluateRequest {
    /// Returns the disk space of all decoded tensor data and of kept outputs, bytes. Data on a
    /// device takes none.
    pub fn decoded_bytes(&self) -> u64 {
        let args = self.kernel.io.iter().flat_map(|io| &io.args);
        let kept = args.filter(|arg| self.keep_outputs.contains_key(&arg.name));
        let kept = kept.filter_map(|arg| arg.tensor_spec.as_ref()).map(bytes);
        let unpacked = sum(self, |data| data.data_b64.on_device().is_none());
        kept.fold(unpacked, u64::saturating_add)
    }
}

/// Returns the total size of the tensors whose data `meant` selects, bytes. Decoding produces no
/// more than that.
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

/// Returns the size of a tensor, bytes; 0 for an invalid shape, which another check reports.
fn bytes(spec: &TensorSpec) -> u64 {
    shape::bytes(&spec.shape, spec.dtype).unwrap_or(0)
}
