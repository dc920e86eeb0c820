//! Lowers integer and bit instructions.

use super::func::Lower;
use super::mods::Mods;
use super::names::{V, class};
use super::{Reason, gap};
use crate::ir::{Carry, Class, I1, I2, I3, Op};
use crate::ptx::{Instr, Operand, Type};

/// Returns the operation for the width of `ty`.
fn sized2(ty: Type, op: I2) -> Reason<Op> {
    Ok(match ty.bits() {
        16 => Op::I16(op),
        32 => Op::I32(op),
        64 => Op::I64(op),
        n => return Err(format!("{n}-bit integers are not supported here").into()),
    })
}

fn sized1(ty: Type, op: I1) -> Reason<Op> {
    Ok(match ty.bits() {
        16 => Op::I16x1(op),
        32 => Op::I32x1(op),
        64 => Op::I64x1(op),
        n => return Err(format!("{n}-bit integers are not supported here").into()),
    })
}

fn sized3(ty: Type, op: I3) -> Reason<Op> {
    Ok(match ty.bits() {
        16 => Op::I16x3(op),
        32 => Op::I32x3(op),
        64 => Op::I64x3(op),
        n => return Err(format!("{n}-bit integers are not supported here").into()),
    })
}

impl<'a> Lower<'_, '_, '_, 'a> {
    /// Returns operands `from..from + N` as values of type `ty`.
    pub(super) fn sources<const N: usize>(
        &mut self,
        i: &Instr<'a>,
        from: usize,
        ty: Type,
    ) -> Reason<[V; N]> {
        let mut out = [(Class::W32, 0); N];
        for (n, slot) in out.iter_mut().enumerate() {
            *slot = self.source(self.arg(i, from + n)?, ty)?;
        }
        Ok(out)
    }

    pub(super) fn int2(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, s: I2, u: I2) -> Reason<()> {
        let packed = [("s16x2", I2::Add16x2), ("u16x2", I2::Add16x2)];
        if s == I2::Add && m.one_of(&packed).is_some() {
            return self.plain2(i, Type::B32, Op::I32(I2::Add16x2));
        }
        let ty = m.ty()?;
        self.plain2(i, ty, sized2(ty, if ty.signed() { s } else { u })?)
    }

    fn plain2(&mut self, i: &Instr<'a>, ty: Type, op: Op) -> Reason<()> {
        self.operands(i, 3)?;
        let ab: [V; 2] = self.sources(i, 1, ty)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(op, &[d], &ab, 0);
        Ok(())
    }

    pub(super) fn int1(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, s: I1, u: I1) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 2)?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(sized1(ty, if ty.signed() { s } else { u })?, &[d], &[a], 0);
        Ok(())
    }

    /// Lowers an operation whose result has 32 bits regardless of the width of its operand.
    pub(super) fn count_bits(
        &mut self,
        i: &Instr<'a>,
        m: &mut Mods<'_>,
        s: I1,
        u: I1,
    ) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 2)?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let d = self.dest(self.arg(i, 0)?, Type::U32)?;
        self.push(sized1(ty, if ty.signed() { s } else { u })?, &[d], &[a], 0);
        Ok(())
    }

    pub(super) fn min_max(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let min = i.op == "min";
        if m.take("s16x2") {
            let op = if min { I2::MinS16x2 } else { I2::MaxS16x2 };
            self.plain2(i, Type::B32, Op::I32(op))?;
            if m.take("relu") {
                let d = self.dest(self.arg(i, 0)?, Type::B32)?;
                let zero = (Class::W32, self.kernel.k32(0));
                self.push(Op::I32(I2::MaxS16x2), &[d], &[d, zero], 0);
            }
            return Ok(());
        }
        if m.take("u16x2") {
            let op = if min { I2::MinU16x2 } else { I2::MaxU16x2 };
            return self.plain2(i, Type::B32, Op::I32(op));
        }
        match (min, m.take("relu")) {
            (true, false) => self.int2(i, m, I2::MinS, I2::MinU),
            (false, false) => self.int2(i, m, I2::MaxS, I2::MaxU),
            (true, true) => self.int2(i, m, I2::MinRelu, I2::MinRelu),
            (false, true) => self.int2(i, m, I2::MaxRelu, I2::MaxRelu),
        }
    }

    pub(super) fn logic(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, op: I2) -> Reason<()> {
        let ty = m.ty()?;
        if ty != Type::Pred {
            return self.plain2(i, ty, sized2(ty, op)?);
        }
        let op = match op {
            I2::And => Op::AndP,
            I2::Or => Op::OrP,
            _ => Op::XorP,
        };
        self.plain2(i, ty, op)
    }

    pub(super) fn not(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        if !i.has("pred") {
            return self.int1(i, m, I1::Not, I1::Not);
        }
        let ty = m.ty()?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(Op::NotP, &[d], &[a], 0);
        Ok(())
    }

    pub(super) fn shift(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 3)?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let b = self.source(self.arg(i, 2)?, Type::U32)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        let op = match (i.op, ty.signed()) {
            ("shl", _) => I2::Shl,
            (_, true) => I2::ShrS,
            (_, false) => I2::ShrU,
        };
        self.push(sized2(ty, op)?, &[d], &[a, b], 0);
        Ok(())
    }

    fn part(m: &mut Mods<'_>) -> Reason<&'static str> {
        m.one_of(&[("lo", "lo"), ("hi", "hi"), ("wide", "wide")])
            .ok_or_else(|| "`.lo`, `.hi` or `.wide` is missing".into())
    }

    pub(super) fn mul(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        match Self::part(m)? {
            "lo" => self.int2(i, m, I2::Mul, I2::Mul),
            "hi" => self.int2(i, m, I2::MulHiS, I2::MulHiU),
            _ => self.wide(i, m, false),
        }
    }

    fn wide(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, add: bool) -> Reason<()> {
        let ty = m.ty()?;
        let signed = ty.signed();
        let (to, op) = match ty.bits() {
            16 => (Type::B32, Op::MulWide16 { signed, add }),
            32 => (Type::B64, Op::MulWide { signed, add }),
            n => return Err(format!("`.wide` of {n} bits is not supported").into()),
        };
        self.operands(i, 3 + usize::from(add))?;
        let [a, b] = self.sources(i, 1, ty)?;
        let mut uses = vec![a, b];
        if add {
            uses.push(self.source(self.arg(i, 3)?, to)?);
        }
        let d = self.dest(self.arg(i, 0)?, to)?;
        self.push(op, &[d], &uses, 0);
        Ok(())
    }

    fn plain3(&mut self, i: &Instr<'a>, ty: Type, op: I3) -> Reason<()> {
        self.operands(i, 4)?;
        let abc: [V; 3] = self.sources(i, 1, ty)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(sized3(ty, op)?, &[d], &abc, 0);
        Ok(())
    }

    pub(super) fn mad(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let part = Self::part(m)?;
        if part == "wide" {
            return self.wide(i, m, true);
        }
        let sat = m.take("sat");
        let ty = m.ty()?;
        let op = match (part, ty.signed(), sat) {
            ("lo", _, false) => I3::Mad,
            ("hi", true, false) => I3::MadHiS,
            ("hi", false, false) => I3::MadHiU,
            ("hi", true, true) if ty == Type::S32 => I3::MadHiSatS,
            _ => return Err("`.sat` is valid only for `mad.hi.s32`".into()),
        };
        self.plain3(i, ty, op)
    }

    pub(super) fn mul24(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let high = Self::part(m)? == "hi";
        let ty = m.ty()?;
        if i.op == "mul24" {
            let op = match (high, ty.signed()) {
                (false, true) => I2::Mul24S,
                (false, false) => I2::Mul24U,
                (true, true) => I2::Mul24HiS,
                (true, false) => I2::Mul24HiU,
            };
            return self.plain2(i, ty, sized2(ty, op)?);
        }
        if m.take("sat") {
            return self.mad24_sat(i, ty, high);
        }
        let op = match (high, ty.signed()) {
            (false, true) => I3::Mad24S,
            (false, false) => I3::Mad24U,
            (true, true) => I3::Mad24HiS,
            (true, false) => I3::Mad24HiU,
        };
        self.plain3(i, ty, op)
    }

    /// Lowers `mad24.hi.sat.s32`, which saturates the sum and not the product.
    fn mad24_sat(&mut self, i: &Instr<'a>, ty: Type, high: bool) -> Reason<()> {
        if !high || ty != Type::S32 {
            return Err("`.sat` is valid only with `.hi.s32`".into());
        }
        self.operands(i, 4)?;
        let [a, b, c]: [V; 3] = self.sources(i, 1, ty)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        let product = self.temp(Class::W32);
        self.push(Op::I32(I2::Mul24HiS), &[product], &[a, b], 0);
        self.push(Op::I32(I2::AddSat), &[d], &[product, c], 0);
        Ok(())
    }

    pub(super) fn sad(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        self.plain3(i, ty, if ty.signed() { I3::SadS } else { I3::SadU })
    }

    pub(super) fn carry(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let out = m.take("cc");
        let takes = i.op.ends_with('c');
        let op = match i.op.trim_end_matches('c') {
            "add" => Carry::Add,
            "sub" | "su" if takes => Carry::Subc,
            "sub" | "su" => Carry::Sub,
            _ if Self::part(m)? == "lo" => Carry::MadLo,
            _ if i.types().any(Type::signed) => Carry::MadHiS,
            _ => Carry::MadHiU,
        };
        let ty = m.ty()?;
        let factors = matches!(op, Carry::MadLo | Carry::MadHiS | Carry::MadHiU);
        self.operands(i, if factors { 4 } else { 3 })?;
        let no: V = (Class::P, crate::ir::K);
        let flag = match self.carry {
            Some(f) => f,
            None => {
                let f = self.temp(Class::P);
                self.carry = Some(f);
                f
            }
        };
        let [a, b] = self.sources(i, 1, ty)?;
        let c = if factors { self.source(self.arg(i, 3)?, ty)? } else { a };
        let d = self.dest(self.arg(i, 0)?, ty)?;
        let e = if out { flag } else { self.temp(Class::P) };
        let op = if ty.bits() == 64 { Op::Carry64(op) } else { Op::Carry32(op) };
        self.push(op, &[d, e], &[a, b, c, if takes { flag } else { no }], 0);
        Ok(())
    }

    pub(super) fn bit_field(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        if i.op == "bfe" {
            self.operands(i, 4)?;
            let a = self.source(self.arg(i, 1)?, ty)?;
            let [b, c] = self.sources(i, 2, Type::U32)?;
            let d = self.dest(self.arg(i, 0)?, ty)?;
            let op = if ty.signed() { I3::BfeS } else { I3::BfeU };
            self.push(sized3(ty, op)?, &[d], &[a, b, c], 0);
            return Ok(());
        }
        self.operands(i, 5)?;
        let [a, b] = self.sources(i, 1, ty)?;
        let [c, s] = self.sources(i, 3, Type::U32)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(sized3(ty, I3::Bfi)?, &[d], &[a, b, c, s], 0);
        Ok(())
    }

    pub(super) fn bit_mask(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let clamp = m.take("clamp");
        if !clamp && !m.take("wrap") {
            return Err("`.clamp` or `.wrap` is missing".into());
        }
        let ty = m.ty()?;
        let op = match (i.op, ty.signed(), clamp) {
            ("bmsk", _, true) => I2::BmskClamp,
            ("bmsk", _, false) => I2::BmskWrap,
            (_, true, true) => I2::SzextSClamp,
            (_, true, false) => I2::SzextSWrap,
            (_, false, true) => I2::SzextUClamp,
            (_, false, false) => I2::SzextUWrap,
        };
        self.plain2(i, ty, sized2(ty, op)?)
    }

    pub(super) fn lop3(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 5)?;
        let abc: [V; 3] = self.sources(i, 1, ty)?;
        let Operand::Int(table) = self.arg(i, 4)? else {
            return Err("the table of `lop3` must be a number".into());
        };
        let table = *table as i64 & 0xff;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(Op::I32x3(I3::Lop3), &[d], &abc, table);
        Ok(())
    }

    pub(super) fn prmt(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        let op = m
            .one_of(&[
                ("f4e", I3::PrmtF4e),
                ("b4e", I3::PrmtB4e),
                ("rc8", I3::PrmtRc8),
                ("ecl", I3::PrmtEcl),
                ("ecr", I3::PrmtEcr),
                ("rc16", I3::PrmtRc16),
            ])
            .unwrap_or(I3::Prmt);
        self.plain3(i, ty, op)
    }

    pub(super) fn funnel(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let left = m.take("l");
        if !left && !m.take("r") {
            return Err("`.l` or `.r` is missing".into());
        }
        let clamp = m.take("clamp");
        if !clamp && !m.take("wrap") {
            return Err("`.clamp` or `.wrap` is missing".into());
        }
        let ty = m.ty()?;
        let op = match (left, clamp) {
            (true, true) => I3::ShfLClamp,
            (true, false) => I3::ShfLWrap,
            (false, true) => I3::ShfRClamp,
            (false, false) => I3::ShfRWrap,
        };
        self.plain3(i, ty, op)
    }

    pub(super) fn dot(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let high = m.take("hi");
        m.take("lo");
        let (a, b) = (m.ty()?, m.ty()?);
        let op = match (i.op, high, a.signed(), b.signed()) {
            ("dp4a", _, true, true) => I3::Dp4aSS,
            ("dp4a", _, true, false) => I3::Dp4aSU,
            ("dp4a", _, false, true) => I3::Dp4aUS,
            ("dp4a", _, false, false) => I3::Dp4aUU,
            (_, false, true, true) => I3::Dp2aLoSS,
            (_, false, true, false) => I3::Dp2aLoSU,
            (_, false, false, true) => I3::Dp2aLoUS,
            (_, false, false, false) => I3::Dp2aLoUU,
            (_, true, true, true) => I3::Dp2aHiSS,
            (_, true, true, false) => I3::Dp2aHiSU,
            (_, true, false, true) => I3::Dp2aHiUS,
            (_, true, false, false) => I3::Dp2aHiUU,
        };
        self.plain3(i, Type::B32, op)
    }

    /// Lowers `vabsdiff4` in the form that the CUDA headers use: on all bytes, unsigned.
    pub(super) fn differences(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        if [m.ty()?, m.ty()?, m.ty()?] != [Type::U32; 3] {
            return Err(gap("only unsigned bytes are supported"));
        }
        self.plain3(i, Type::B32, if m.take("add") { I3::Absdiff4Add } else { I3::Absdiff4 })
    }

    pub(super) fn fns(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        if class(ty) != Class::W32 {
            return Err("`fns` requires a 32-bit type".into());
        }
        self.plain3(i, ty, I3::Fns)
    }
}
