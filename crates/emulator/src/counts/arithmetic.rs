//! Counts the floating-point instructions that the hardware executes for a PTX instruction.
//!
//! Most correspond one to one. Division, roots and some approximations consist of several
//! instructions. The counts are those of the code that `ptxas` 13 generates for sm_90, on the path
//! for normal numbers of ordinary size. Rarely taken paths for other operands are not counted. The
//! counts were read from its output for single instructions.

use crate::ir::{Cvt, F1, F2, Fp, Op};
use crate::ptx::Type;

/// Numbers of hardware instructions by operation and format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Arithmetic {
    pub(super) fadd: u64,
    pub(super) fmul: u64,
    pub(super) ffma: u64,
    pub(super) dadd: u64,
    pub(super) dmul: u64,
    pub(super) dfma: u64,
    pub(super) hadd: u64,
    pub(super) hmul: u64,
    pub(super) hfma: u64,
    /// Operations on f16 and bf16 numbers: a fused multiply-add counts as two, and an instruction
    /// on a pair counts twice.
    pub(super) half_ops: u64,
}

const NONE: Arithmetic = Arithmetic {
    fadd: 0,
    fmul: 0,
    ffma: 0,
    dadd: 0,
    dmul: 0,
    dfma: 0,
    hadd: 0,
    hmul: 0,
    hfma: 0,
    half_ops: 0,
};

/// Returns the hardware instructions of an operation. Returns `None` if the operation executes no
/// floating-point addition or multiplication.
pub(super) fn of(op: &Op) -> Option<Arithmetic> {
    Some(match op {
        Op::F2 { fp, op: F2::Add | F2::Sub, .. } => match fp {
            Fp::F32 => Arithmetic { fadd: 1, ..NONE },
            Fp::F64 => Arithmetic { dadd: 1, ..NONE },
            // `HFMA2.BF16_V2`, with a multiplication by one.
            Fp::Bf16 | Fp::Bf16x2 => Arithmetic { hfma: 1, half_ops: elements(*fp), ..NONE },
            _ => Arithmetic { hadd: 1, half_ops: elements(*fp), ..NONE },
        },
        Op::F2 { fp, op: F2::Mul, .. } => match fp {
            Fp::F32 => Arithmetic { fmul: 1, ..NONE },
            Fp::F64 => Arithmetic { dmul: 1, ..NONE },
            _ => Arithmetic { hmul: 1, half_ops: elements(*fp), ..NONE },
        },
        Op::Fma { fp, .. } => match fp {
            Fp::F32 => Arithmetic { ffma: 1, ..NONE },
            Fp::F64 => Arithmetic { dfma: 1, ..NONE },
            _ => Arithmetic { hfma: 1, half_ops: 2 * elements(*fp), ..NONE },
        },
        Op::F2 { fp: Fp::F32, op: F2::Div, .. } => Arithmetic { ffma: 5, ..NONE },
        Op::F2 { fp: Fp::F64, op: F2::Div, .. } => {
            // The single-precision operation tests the range of the result.
            Arithmetic { dfma: 7, dmul: 1, ffma: 1, ..NONE }
        }
        Op::F2 { fp: Fp::F32, op: F2::DivApprox, .. } => Arithmetic { fmul: 1, ..NONE },
        Op::F1 { fp: Fp::F32, op, mode } => match op {
            F1::Rcp => Arithmetic { ffma: 2, fadd: 1, ..NONE },
            F1::Sqrt => Arithmetic { ffma: 2, fmul: 2, ..NONE },
            F1::RcpApprox if !mode.ftz => Arithmetic { fmul: 2, ..NONE },
            // The multiplication converts to revolutions, the unit of the hardware's functions.
            F1::Sin | F1::Cos => Arithmetic { fmul: 1, ..NONE },
            _ => return None,
        },
        Op::F1 { fp: Fp::F64, op, .. } => match op {
            F1::Rcp => Arithmetic { dfma: 5, ..NONE },
            F1::Sqrt => Arithmetic { dfma: 5, dmul: 3, ..NONE },
            _ => return None,
        },
        // `HADD2.F32`.
        Op::Cvt(Cvt { to: Type::F32, from: Type::F16, .. }) => Arithmetic { hadd: 1, ..NONE },
        _ => return None,
    })
}

fn elements(fp: Fp) -> u64 {
    if matches!(fp, Fp::F16x2 | Fp::Bf16x2) { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Mode;

    #[test]
    fn a_pair_is_one_instruction_and_two_operations() {
        let mode =
            Mode { round: crate::arith::soft::Round::Rn, ftz: false, sat: false, relu: false };
        let fma = of(&Op::Fma { fp: Fp::F16x2, mode }).unwrap();
        assert_eq!((fma.hfma, fma.half_ops), (1, 4));
        let div = of(&Op::F2 { fp: Fp::F32, op: F2::Div, mode }).unwrap();
        assert_eq!(div, Arithmetic { ffma: 5, ..NONE });
        assert_eq!(of(&Op::F2 { fp: Fp::F32, op: F2::Max, mode }), None);
    }
}
