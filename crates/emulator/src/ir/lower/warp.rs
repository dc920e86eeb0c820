//! Lowers instructions that combine the lanes of a warp.

use super::func::Lower;
use super::mods::Mods;
use super::names::V;
use super::{Reason, gap};
use crate::ir::{Class, Op, Redux, Shfl, Vote};
use crate::ptx::{Instr, Operand, Type};

impl<'a> Lower<'_, '_, '_, 'a> {
    /// Returns the destinations of `d` or `d|p`. Without `p`, the second is a register that is
    /// never read.
    fn dest_pair(&mut self, operand: &Operand<'a>, ty: Type) -> Reason<[V; 2]> {
        match operand {
            Operand::Pair(d, p) => {
                let d = if *d == "_" { Operand::Sink } else { Operand::Name(d) };
                let p = if *p == "_" { Operand::Sink } else { Operand::Name(p) };
                Ok([self.dest(&d, ty)?, self.dest(&p, Type::Pred)?])
            }
            other => Ok([self.dest(other, ty)?, self.temp(Class::P)]),
        }
    }

    pub(super) fn shfl(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let sync = m.take("sync");
        let how = m.one_of(&[
            ("up", Shfl::Up),
            ("down", Shfl::Down),
            ("bfly", Shfl::Bfly),
            ("idx", Shfl::Idx),
        ]);
        let Some(how) = how else {
            return Err("it needs `.up`, `.down`, `.bfly` or `.idx`".into());
        };
        let ty = m.ty()?;
        self.operands(i, if sync { 5 } else { 4 })?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let [b, c] = self.sources(i, 2, Type::B32)?;
        let mask = self.member_mask(i, 4, sync)?;
        let de = self.dest_pair(self.arg(i, 0)?, ty)?;
        self.push(Op::Shfl(how), &de, &[a, b, c, mask], 0);
        Ok(())
    }

    /// Returns operand `n`, or the mask of active lanes for older forms without that operand.
    fn member_mask(&mut self, i: &Instr<'a>, n: usize, sync: bool) -> Reason<V> {
        if sync {
            return self.source(self.arg(i, n)?, Type::B32);
        }
        let d = self.temp(Class::W32);
        self.push(Op::Activemask, &[d], &[], 0);
        Ok(d)
    }

    pub(super) fn vote(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let sync = m.take("sync");
        let how = m.one_of(&[
            ("all", Vote::All),
            ("any", Vote::Any),
            ("uni", Vote::Uni),
            ("ballot", Vote::Ballot),
        ]);
        let Some(how) = how else {
            return Err("it has no mode".into());
        };
        let ty = m.ty()?;
        self.operands(i, if sync { 3 } else { 2 })?;
        let p = self.source(self.arg(i, 1)?, Type::Pred)?;
        let mask = self.member_mask(i, 2, sync)?;
        if (how == Vote::Ballot) == (ty == Type::Pred) {
            return Err("the result has the wrong type".into());
        }
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(Op::Vote(how), &[d], &[p, mask], 0);
        Ok(())
    }

    pub(super) fn match_(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let all = m.take("all");
        if !all && !m.take("any") {
            return Err("`.any` or `.all` is missing".into());
        }
        m.take("sync");
        let ty = m.ty()?;
        self.operands(i, 3)?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let mask = self.source(self.arg(i, 2)?, Type::B32)?;
        let de = self.dest_pair(self.arg(i, 0)?, Type::B32)?;
        self.push(Op::Match { all, wide: a.0 == Class::W64 }, &de, &[a, mask], 0);
        Ok(())
    }

    pub(super) fn redux(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.take("sync");
        let names = ["add", "min", "max", "and", "or", "xor"];
        let Some(name) = names.iter().copied().find(|n| m.take(n)) else {
            return Err("it has no operation".into());
        };
        let ty = m.ty()?;
        let op = match (name, ty) {
            ("add", Type::U32 | Type::S32) => Redux::Add,
            ("min", Type::S32) => Redux::MinS,
            ("max", Type::S32) => Redux::MaxS,
            ("min", Type::U32) => Redux::MinU,
            ("max", Type::U32) => Redux::MaxU,
            ("and", Type::B32) => Redux::And,
            ("or", Type::B32) => Redux::Or,
            ("xor", Type::B32) => Redux::Xor,
            ("min" | "max", Type::F32) => {
                return Err(gap("`redux` of floating-point numbers is not supported"));
            }
            _ => return Err("this `redux` is not defined for this type".into()),
        };
        self.operands(i, 3)?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let mask = self.source(self.arg(i, 2)?, Type::B32)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        self.push(Op::Redux(op), &[d], &[a, mask], 0);
        Ok(())
    }

    pub(super) fn activemask(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.take("sync");
        if i.op == "activemask" {
            m.ty()?;
            let d = self.dest(self.arg(i, 0)?, Type::B32)?;
            self.push(Op::Activemask, &[d], &[], 0);
            return Ok(());
        }
        self.operands(i, 2)?;
        let mask = self.source(self.arg(i, 1)?, Type::B32)?;
        let de = self.dest_pair(self.arg(i, 0)?, Type::B32)?;
        self.push(Op::Elect, &de, &[mask], 0);
        Ok(())
    }
}
