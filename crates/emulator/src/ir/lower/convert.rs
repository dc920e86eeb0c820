//! Lowers `cvt`, `setp`, `set`, `selp` and `slct`.

use super::float::fp;
use super::func::Lower;
use super::mods::Mods;
use super::names::{V, class};
use super::{Reason, gap};
use crate::arith::soft::Round;
use crate::ir::{Class, Cmp, Cvt, FCmp, Op};
use crate::ptx::{Instr, Operand, Type};

/// Operation that combines a predicate with the result of a comparison.
#[derive(Clone, Copy)]
enum Combine {
    And,
    Or,
    Xor,
}

fn int_cmp(name: &str, signed: bool) -> Option<Cmp> {
    Some(match (name, signed) {
        ("eq", _) => Cmp::Eq,
        ("ne", _) => Cmp::Ne,
        ("lt", true) => Cmp::LtS,
        ("le", true) => Cmp::LeS,
        ("gt", true) => Cmp::GtS,
        ("ge", true) => Cmp::GeS,
        ("lt" | "lo", _) => Cmp::LtU,
        ("le" | "ls", _) => Cmp::LeU,
        ("gt" | "hi", _) => Cmp::GtU,
        ("ge" | "hs", _) => Cmp::GeU,
        _ => return None,
    })
}

fn float_cmp(name: &str) -> Option<FCmp> {
    Some(match name {
        "eq" => FCmp::Eq,
        "ne" => FCmp::Ne,
        "lt" => FCmp::Lt,
        "le" => FCmp::Le,
        "gt" => FCmp::Gt,
        "ge" => FCmp::Ge,
        "equ" => FCmp::Equ,
        "neu" => FCmp::Neu,
        "ltu" => FCmp::Ltu,
        "leu" => FCmp::Leu,
        "gtu" => FCmp::Gtu,
        "geu" => FCmp::Geu,
        "num" => FCmp::Num,
        "nan" => FCmp::Nan,
        _ => return None,
    })
}

const CMPS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
    "geu", "num", "nan",
];

fn packed(ty: Type) -> bool {
    matches!(ty, Type::F16x2 | Type::Bf16x2)
}

impl<'a> Lower<'_, '_, '_, 'a> {
    fn comparison(&mut self, m: &mut Mods<'_>) -> Reason<(&'static str, Option<Combine>, bool)> {
        let Some(name) = CMPS.iter().copied().find(|c| m.take(c)) else {
            return Err("it has no comparison".into());
        };
        let combine =
            m.one_of(&[("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)]);
        Ok((name, combine, m.take("ftz")))
    }

    fn compare_op(&self, name: &str, ty: Type, ftz: bool) -> Reason<Op> {
        let unknown = || format!("comparison `.{name}` is not defined for this type");
        if ty.float() || packed(ty) {
            let cmp = float_cmp(name).ok_or_else(unknown)?;
            return Ok(Op::FCmp { fp: fp(ty)?, cmp, ftz });
        }
        let cmp = int_cmp(name, ty.signed()).ok_or_else(unknown)?;
        Ok(match ty.bits() {
            16 => Op::Cmp16(cmp),
            32 => Op::Cmp32(cmp),
            64 => Op::Cmp64(cmp),
            _ => return Err("it has no supported type".into()),
        })
    }

    /// Emits the comparison: one predicate, or two for a packed type.
    fn compare(&mut self, i: &Instr<'a>, op: Op, ty: Type, d: &[V]) -> Reason<()> {
        let ab: [V; 2] = self.sources(i, 1, ty)?;
        self.push(op, d, &ab, 0);
        Ok(())
    }

    fn combine(&mut self, how: Combine, d: V, a: V, b: V) {
        let op = match how {
            Combine::And => Op::AndP,
            Combine::Or => Op::OrP,
            Combine::Xor => Op::XorP,
        };
        self.push(op, &[d], &[a, b], 0);
    }

    pub(super) fn setp(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let (name, combine, ftz) = self.comparison(m)?;
        let ty = m.ty()?;
        let op = self.compare_op(name, ty, ftz)?;
        self.operands(i, 3 + usize::from(combine.is_some()))?;
        let (p, q) = match self.arg(i, 0)? {
            Operand::Pair(p, q) => {
                let p = if *p == "_" { Operand::Sink } else { Operand::Name(p) };
                let q = if *q == "_" { Operand::Sink } else { Operand::Name(q) };
                (self.dest(&p, Type::Pred)?, Some(self.dest(&q, Type::Pred)?))
            }
            other => (self.dest(other, Type::Pred)?, None),
        };
        if packed(ty) {
            let Some(q) = q else {
                return Err("the destination must be a pair of predicates".into());
            };
            let (x, y) = match combine {
                Some(_) => (self.temp(Class::P), self.temp(Class::P)),
                None => (p, q),
            };
            self.compare(i, op, ty, &[x, y])?;
            if let Some(how) = combine {
                let c = self.source(self.arg(i, 3)?, Type::Pred)?;
                self.combine(how, p, x, c);
                self.combine(how, q, y, c);
            }
            return Ok(());
        }
        let (Some(how), q) = (combine, q) else {
            self.compare(i, op, ty, &[p])?;
            if let Some(q) = q {
                self.push(Op::NotP, &[q], &[p], 0);
            }
            return Ok(());
        };
        let (t, c) = (self.temp(Class::P), self.source(self.arg(i, 3)?, Type::Pred)?);
        self.compare(i, op, ty, &[t])?;
        if let Some(q) = q {
            // q may name the register of c or of p's operand, so both results are computed before
            // one is written.
            let (n, r) = (self.temp(Class::P), self.temp(Class::P));
            self.push(Op::NotP, &[n], &[t], 0);
            self.combine(how, r, n, c);
            self.combine(how, p, t, c);
            self.push(Op::MovP, &[q], &[r], 0);
        } else {
            self.combine(how, p, t, c);
        }
        Ok(())
    }

    pub(super) fn set(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let (name, combine, ftz) = self.comparison(m)?;
        let (to, ty) = (m.ty()?, m.ty()?);
        let op = self.compare_op(name, ty, ftz)?;
        self.operands(i, 3 + usize::from(combine.is_some()))?;
        let c = match combine {
            Some(_) => Some(self.source(self.arg(i, 3)?, Type::Pred)?),
            None => None,
        };
        let (t, u) = (self.temp(Class::P), self.temp(Class::P));
        let both = [t, u];
        let used = if packed(ty) { &both[..] } else { &both[..1] };
        self.compare(i, op, ty, used)?;
        if let (Some(how), Some(c)) = (combine, c) {
            used.iter().for_each(|p| self.combine(how, *p, *p, c));
        }
        let d = self.dest(self.arg(i, 0)?, to)?;
        let one = match to {
            Type::F16 | Type::F16x2 => 0x3c00,
            Type::Bf16 | Type::Bf16x2 => 0x3f80,
            Type::F32 => 0x3f80_0000,
            _ if packed(ty) => 0xffff,
            _ if to.bits() == 16 => 0xffff,
            _ => u32::MAX,
        };
        if class(to) != Class::W32 {
            return Err("`set` has a result of 32 bits or less".into());
        }
        let (one, zero) = ((Class::W32, self.kernel.k32(one)), (Class::W32, self.kernel.k32(0)));
        if !packed(ty) {
            self.push(Op::Sel32, &[d], &[one, zero, t], 0);
            return Ok(());
        }
        let high = self.temp(Class::W32);
        self.push(Op::Sel32, &[high], &[one, zero, u], 0);
        let shifted = self.temp(Class::W32);
        let sixteen = (Class::W32, self.kernel.k32(16));
        self.push(Op::I32(crate::ir::I2::Shl), &[shifted], &[high, sixteen], 0);
        let low = self.temp(Class::W32);
        self.push(Op::Sel32, &[low], &[one, zero, t], 0);
        self.push(Op::I32(crate::ir::I2::Or), &[d], &[low, shifted], 0);
        Ok(())
    }

    pub(super) fn selp(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 4)?;
        let [a, b] = self.sources(i, 1, ty)?;
        let p = self.source(self.arg(i, 3)?, Type::Pred)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        let op = match class(ty) {
            Class::W64 => Op::Sel64,
            Class::W32 => Op::Sel32,
            Class::P => return Err("it has no supported type".into()),
        };
        self.push(op, &[d], &[a, b, p], 0);
        Ok(())
    }

    pub(super) fn slct(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ftz = m.take("ftz");
        let (ty, by) = (m.ty()?, m.ty()?);
        self.operands(i, 4)?;
        let [a, b] = self.sources(i, 1, ty)?;
        let c = self.source(self.arg(i, 3)?, by)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        let op = Op::Slct { wide: class(ty) == Class::W64, float: by == Type::F32, ftz };
        self.push(op, &[d], &[a, b, c], 0);
        Ok(())
    }

    pub(super) fn cvt(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        if m.take("pack") {
            return Err(gap("`cvt.pack` is not supported"));
        }
        let integral = m.one_of(&[
            ("rni", Round::Rn),
            ("rzi", Round::Rz),
            ("rmi", Round::Rm),
            ("rpi", Round::Rp),
        ]);
        let mut mode = m.mode();
        let satfinite = m.take("satfinite");
        if let Some(r) = integral {
            mode.round = r;
        }
        let (to, from) = (m.ty()?, m.ty()?);
        if i.operands.len() == 3 {
            let fits = matches!(to, Type::F16x2 | Type::Bf16x2 | Type::E4m3x2 | Type::E5m2x2);
            if !fits || from != Type::F32 {
                return Err(gap("this packed conversion is not supported"));
            }
            let ab: [V; 2] = self.sources(i, 1, from)?;
            let d = self.dest(self.arg(i, 0)?, to)?;
            self.push(Op::CvtPack { to, mode, satfinite }, &[d], &ab, 0);
            return Ok(());
        }
        self.operands(i, 2)?;
        if matches!(from, Type::E4m3x2 | Type::E5m2x2) && to == Type::F16x2 {
            let a = self.source(self.arg(i, 1)?, from)?;
            let d = self.dest(self.arg(i, 0)?, to)?;
            self.push(Op::CvtUnpack { from, relu: mode.relu }, &[d], &[a], 0);
            return Ok(());
        }
        let good = |t: Type| !matches!(t, Type::Pred | Type::B128) && !packed(t);
        let eight = matches!(to, Type::E4m3x2 | Type::E5m2x2) && from == Type::F16x2;
        if !eight && (!good(to) || !good(from) || from == Type::Tf32) {
            return Err(gap("this conversion is not supported"));
        }
        let is_int = |t: Type| !t.float() && !packed(t);
        if is_int(from) && mode.ftz {
            return Err("`.ftz` needs a floating-point operand".into());
        }
        let a = self.loose_source(self.arg(i, 1)?, from)?;
        let d = self.loose_dest(self.arg(i, 0)?, to)?;
        let cvt = Cvt { to, from, mode, integral: integral.is_some(), satfinite };
        self.push(Op::Cvt(cvt), &[d.0], &[a], 0);
        if to == Type::S16 && (d.1.is_some() || !self.is_16(self.arg(i, 0)?)) {
            // A wider register holds the value sign-extended.
            let mode = crate::ir::Mode::default();
            let wide = Cvt { to: Type::S32, from: to, mode, integral: false, satfinite: false };
            self.push(Op::Cvt(wide), &[d.0], &[d.0], 0);
        }
        if let Some(wide) = d.1 {
            self.widen(wide, d.0, to.signed());
        } else if to == Type::S8 && self.is_16(self.arg(i, 0)?) {
            let low = (Class::W32, self.kernel.k32(0xffff));
            self.push(Op::I32(crate::ir::I2::And), &[d.0], &[d.0, low], 0);
        }
        Ok(())
    }

    /// Returns an operand whose register may be wider than its type.
    pub(super) fn loose_source(&mut self, operand: &Operand<'a>, ty: Type) -> Reason<V> {
        if let Operand::Name(name) = operand
            && let Some((_, v)) = self.register(name)
            && v.0 == Class::W64
            && class(ty) == Class::W32
        {
            return self.narrow(v);
        }
        self.source(operand, ty)
    }

    /// Returns a destination whose register may be wider than its type. For a wider register, it
    /// returns a temporary register, and the register that receives the widened value.
    pub(super) fn loose_dest(&mut self, operand: &Operand<'a>, ty: Type) -> Reason<(V, Option<V>)> {
        if let Operand::Name(name) = operand
            && let Some((_, v)) = self.register(name)
            && v.0 == Class::W64
            && class(ty) == Class::W32
        {
            return Ok((self.temp(Class::W32), Some(v)));
        }
        Ok((self.dest(operand, ty)?, None))
    }

    /// Extends 32 bits to 64, by the sign or with zeros.
    fn widen(&mut self, d: V, a: V, signed: bool) {
        let from = if signed { Type::S32 } else { Type::U32 };
        let to = if signed { Type::S64 } else { Type::U64 };
        let mode = crate::ir::Mode::default();
        let cvt = Cvt { to, from, mode, integral: false, satfinite: false };
        self.push(Op::Cvt(cvt), &[d], &[a], 0);
    }
}
