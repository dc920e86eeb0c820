//! Element types that kernels of some types do not support.

use crate::{KernelFamily, KernelType};
use warpgauge_tensor::Dtype;

/// Returns a remedy if kernels of this type do not support tensors of this element type, and `None` if they do.
pub(super) fn remedy(kernel: KernelType, dtype: Dtype) -> Option<String> {
    if kernel == KernelType::Triton && dtype.is_complex() {
        return Some(format!(
            "Triton has no {dtype}: give the parts, a tensor of {} with a last dimension of 2",
            dtype.part()
        ));
    }
    if kernel.family() == KernelFamily::Torch && matches!(dtype, Dtype::Int4x2 | Dtype::Uint4x2) {
        return Some(format!("PyTorch has no {dtype}: give the bytes, a tensor of uint8"));
    }
    (kernel.family() == KernelFamily::Library && dtype.is_complex())
        .then(|| format!("library functions do not compute with {dtype}; use a real type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complex_tensors_are_for_kernels_whose_language_has_them() {
        for dtype in [Dtype::Complex64, Dtype::Complex128] {
            let message = remedy(KernelType::Triton, dtype).unwrap();
            assert!(message.contains(dtype.part().name()), "{message}");
            assert!(remedy(KernelType::Library, dtype).is_some());
            assert_eq!(remedy(KernelType::Cuda, dtype), None);
            assert_eq!(remedy(KernelType::Torch, dtype), None);
        }
        assert_eq!(remedy(KernelType::Triton, Dtype::Float32), None);
        assert!(remedy(KernelType::Torch, Dtype::Int4x2).unwrap().contains("uint8"));
        assert_eq!(remedy(KernelType::Torch, Dtype::Float4E2m1x2), None);
    }
}
