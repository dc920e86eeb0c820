//! Sums that several rows use, mainly the floating-point operations of each chip.

use super::names::{
    BF16, DADD, DFMA, DMUL, FADD, FADD2, FFMA, FFMA2, FMUL, FMUL2, FP4, FP8, FP8_DENSE, FP8_SPARSE,
    FP8_TO_16, FP8_TO_32, FP16, FP16_TO_16, FP16_TO_32, FP46_TO_16, FP46_TO_32, FP64, HADD, HFMA,
    HMUL, NARROW_TO_16, NARROW_TO_32, TF32, TIME, TURING,
};
use crate::catalogue::Terms;

pub(super) const SINGLE: Terms = &[(FADD, 1.0), (FMUL, 1.0), (FFMA, 2.0)];
/// The big Blackwell chips have instructions on pairs of f32.
pub(super) const SINGLE_PAIRS: Terms =
    &[(FADD, 1.0), (FMUL, 1.0), (FFMA, 2.0), (FADD2, 2.0), (FMUL2, 2.0), (FFMA2, 4.0)];
pub(super) const DOUBLE: Terms = &[(DADD, 1.0), (DMUL, 1.0), (DFMA, 2.0)];
/// The counters do not distinguish single f16 instructions from packed ones, which are the
/// majority.
pub(super) const HALF: Terms = &[(HADD, 2.0), (HMUL, 2.0), (HFMA, 4.0)];

pub(super) const TENSOR_70: Terms = &[(FP16_TO_16, 1.0), (FP16_TO_32, 1.0)];
pub(super) const TENSOR_75: Terms = &[(FP16_TO_16, 1.0), (TURING, 1.0)];
pub(super) const TENSOR_80: Terms =
    &[(FP16_TO_16, 1.0), (FP16_TO_32, 1.0), (BF16, 1.0), (TF32, 1.0), (FP64, 1.0)];
pub(super) const TENSOR_89: Terms = &join::<6>(&[TENSOR_80, &[(FP8, 1.0)]]);
pub(super) const TENSOR_90: Terms =
    &[(FP16, 1.0), (BF16, 1.0), (TF32, 1.0), (FP64, 1.0), (FP8, 1.0)];
/// The terms that Nsight Compute's own sections use.
pub(super) const TENSOR_90_BY_SPARSITY: Terms =
    &[(FP16, 1.0), (BF16, 1.0), (TF32, 1.0), (FP64, 1.0), (FP8_DENSE, 1.0), (FP8_SPARSE, 1.0)];
pub(super) const TENSOR_100: Terms =
    &join::<8>(&[TENSOR_80, &[(FP4, 1.0), (NARROW_TO_16, 1.0), (NARROW_TO_32, 1.0)]]);
pub(super) const TENSOR_120: Terms = &join::<10>(&[
    TENSOR_80,
    &[(FP4, 1.0), (FP46_TO_16, 1.0), (FP46_TO_32, 1.0), (FP8_TO_16, 1.0), (FP8_TO_32, 1.0)],
]);

/// Chips before Volta have no tensor cores.
pub(super) const FLOPS_60: Terms = &join::<9>(&[SINGLE, DOUBLE, HALF]);
pub(super) const FLOPS_70: Terms = &join::<11>(&[SINGLE, DOUBLE, HALF, TENSOR_70]);
pub(super) const FLOPS_75: Terms = &join::<11>(&[SINGLE, DOUBLE, HALF, TENSOR_75]);
pub(super) const FLOPS_80: Terms = &join::<14>(&[SINGLE, DOUBLE, HALF, TENSOR_80]);
pub(super) const FLOPS_89: Terms = &join::<15>(&[SINGLE, DOUBLE, HALF, TENSOR_89]);
pub(super) const FLOPS_90: Terms = &join::<14>(&[SINGLE, DOUBLE, HALF, TENSOR_90]);
pub(super) const FLOPS_90_BY_SPARSITY: Terms =
    &join::<15>(&[SINGLE, DOUBLE, HALF, TENSOR_90_BY_SPARSITY]);
pub(super) const FLOPS_100: Terms = &join::<20>(&[SINGLE_PAIRS, DOUBLE, HALF, TENSOR_100]);
pub(super) const FLOPS_110: Terms = &join::<17>(&[SINGLE, DOUBLE, HALF, TENSOR_100]);
pub(super) const FLOPS_120: Terms = &join::<19>(&[SINGLE, DOUBLE, HALF, TENSOR_120]);

pub(super) const DRAM_BYTES: Terms = &[("dram__bytes.sum", 1.0)];
pub(super) const DRAM_READ_AND_WRITTEN: Terms =
    &[("dram__bytes_read.sum", 1.0), ("dram__bytes_write.sum", 1.0)];
pub(super) const DURATION: Terms = &[(TIME, 1.0)];

/// Concatenates the terms of sums. The compiler checks that they are exactly `N`.
const fn join<const N: usize>(sums: &[Terms]) -> [(&'static str, f64); N] {
    let mut all = [("", 0.0); N];
    let mut next = 0;
    let mut sum = 0;
    while sum < sums.len() {
        let mut index = 0;
        while index < sums[sum].len() {
            all[next] = sums[sum][index];
            next += 1;
            index += 1;
        }
        sum += 1;
    }
    assert!(next == N);
    all
}
