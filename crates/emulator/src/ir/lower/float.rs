//! Lowers floating-point arithmetic and functions.

use super::func::Lower;
use super::mods::Mods;
use super::names::V;
use super::{Reason, gap};
use crate::ir::{F1, F2, Fp, Mode, Op, Testp};
use crate::ptx::{Instr, Operand, Type};

/// Returns the format in registers of a floating-point type.
pub(super) fn fp(ty: Type) -> Reason<Fp> {
    Ok(match ty {
        Type::F16 => Fp::F16,
        Type::F16x2 => Fp::F16x2,
        Type::Bf16 => Fp::Bf16,
        Type::Bf16x2 => Fp::Bf16x2,
        Type::F32 => Fp::F32,
        Type::F64 => Fp::F64,
        _ => return Err("it does not support floating-point numbers of this type".into()),
    })
}

impl<'a> Lower<'_, '_, '_, 'a> {
    pub(super) fn float(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let mode = m.mode();
        match i.op {
            "add" => self.float2(i, m, F2::Add, mode),
            "sub" => self.float2(i, m, F2::Sub, mode),
            "mul" => self.float2(i, m, F2::Mul, mode),
            "div" => {
                // `.full` is accurate to 2 ulp for all operands. Here the result is correctly
                // rounded.
                m.take("full");
                let approx = m.take("approx");
                self.float2(i, m, if approx { F2::DivApprox } else { F2::Div }, mode)
            }
            "min" | "max" => self.float_min_max(i, m, mode),
            "neg" => self.float1(i, m, F1::Neg, mode),
            "abs" => self.float1(i, m, F1::Abs, mode),
            _ => self.fma(i, m, mode),
        }
    }

    /// Returns whether an assembler swaps the first two operands, which determines which of two
    /// NaNs is the result. A literal can only be the second operand. Zero is in a register and
    /// becomes the first operand.
    fn changes_places(&self, i: &Instr<'a>) -> Reason<bool> {
        let literal = |o: &Operand<'_>| match o {
            Operand::F64(v) => Some(*v == 0),
            Operand::F32(v) => Some(*v == 0),
            _ => None,
        };
        Ok(match (literal(self.arg(i, 1)?), literal(self.arg(i, 2)?)) {
            (Some(zero), None) => !zero,
            (None, Some(zero)) => zero,
            _ => false,
        })
    }

    fn float2(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, op: F2, mode: Mode) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 3)?;
        let mut ab: [V; 2] = self.sources(i, 1, ty)?;
        if matches!(op, F2::Add | F2::Mul) && self.changes_places(i)? {
            ab.swap(0, 1);
        }
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(Op::F2 { fp: fp(ty)?, op, mode }, &[d], &ab, 0);
        Ok(())
    }

    fn float1(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, op: F1, mode: Mode) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 2)?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(Op::F1 { fp: fp(ty)?, op, mode }, &[d], &[a], 0);
        Ok(())
    }

    fn float_min_max(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, mode: Mode) -> Reason<()> {
        let nan = m.take("NaN");
        let xor = m.take("xorsign");
        if xor && !m.take("abs") {
            return Err("`.xorsign` needs `.abs`".into());
        }
        if i.operands.len() == 4 {
            return Err(gap("minimum and maximum of three are not supported"));
        }
        let op = match (i.op, nan, xor) {
            ("min", false, false) => F2::Min,
            ("min", true, false) => F2::MinNan,
            ("min", false, true) => F2::MinXorAbs,
            ("min", true, true) => F2::MinNanXorAbs,
            (_, false, false) => F2::Max,
            (_, true, false) => F2::MaxNan,
            (_, false, true) => F2::MaxXorAbs,
            (_, true, true) => F2::MaxNanXorAbs,
        };
        self.float2(i, m, op, mode)
    }

    fn fma(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, mode: Mode) -> Reason<()> {
        if m.take("oob") {
            return Err(gap("`.oob` is not supported"));
        }
        let ty = m.ty()?;
        self.operands(i, 4)?;
        let mut abc: [V; 3] = self.sources(i, 1, ty)?;
        if self.changes_places(i)? {
            abc.swap(0, 1);
        }
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(Op::Fma { fp: fp(ty)?, mode }, &[d], &abc, 0);
        Ok(())
    }

    pub(super) fn float_function(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let mode = m.mode();
        let approx = m.take("approx");
        let op = match (i.op, approx) {
            ("copysign", _) => return self.copysign(i, m),
            ("testp", _) => return self.testp(i, m),
            ("sqrt", false) => F1::Sqrt,
            ("sqrt", true) => F1::SqrtApprox,
            ("rcp", false) => F1::Rcp,
            ("rcp", true) => F1::RcpApprox,
            ("rsqrt", _) => F1::RsqrtApprox,
            ("sin", _) => F1::Sin,
            ("cos", _) => F1::Cos,
            ("ex2", _) => F1::Ex2,
            ("lg2", _) => F1::Lg2,
            _ => F1::Tanh,
        };
        self.float1(i, m, op, mode)
    }

    /// Lowers `copysign`. PTX uses the sign of the first operand and the magnitude of the second.
    fn copysign(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        self.float2(i, m, F2::Copysign, Mode::default())
    }

    fn testp(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let class = m.one_of(&[
            ("finite", Testp::Finite),
            ("infinite", Testp::Infinite),
            ("number", Testp::Number),
            ("notanumber", Testp::NotANumber),
            ("normal", Testp::Normal),
            ("subnormal", Testp::Subnormal),
        ]);
        let Some(class) = class else {
            return Err("`testp` needs a class".into());
        };
        let ty = m.ty()?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let d = self.dest(self.arg(i, 0)?, Type::Pred)?;
        self.push(Op::Testp { fp: fp(ty)?, class }, &[d], &[a], 0);
        Ok(())
    }
}
