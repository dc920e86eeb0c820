//! Lowers `mov`, including the packing and unpacking of vectors.

use super::Reason;
use super::func::Lower;
use super::mods::Mods;
use super::names::{V, class};
use crate::ir::{Class, Cmp, I2, Op};
use crate::ptx::{Instr, Operand, Type};

impl<'a> Lower<'_, '_, '_, 'a> {
    pub(super) fn mov(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        self.operands(i, 2)?;
        match (self.arg(i, 0)?, self.arg(i, 1)?) {
            (Operand::Vector(to), from) => self.unpack(to, from, ty),
            (to, Operand::Vector(from)) => self.pack(to, from, ty),
            (to, from) if ty == Type::B128 => {
                let (d, a) = (self.pair(to)?, self.pair(from)?);
                self.push(Op::Mov64, &[d[0]], &[a[0]], 0);
                self.push(Op::Mov64, &[d[1]], &[a[1]], 0);
                Ok(())
            }
            (to, Operand::Name("%is_explicit_cluster")) if ty == Type::Pred => {
                // The result is always false, because a launch with clusters is rejected.
                let (zero, d) = ((Class::W32, self.kernel.k32(0)), self.dest(to, ty)?);
                self.push(Op::Cmp32(Cmp::Ne), &[d], &[zero, zero], 0);
                Ok(())
            }
            (to, from) => {
                let a = self.source(from, ty)?;
                let d = self.dest(to, ty)?;
                let op = match class(ty) {
                    Class::P => Op::MovP,
                    Class::W32 => Op::Mov32,
                    Class::W64 => Op::Mov64,
                };
                self.push(op, &[d], &[a], 0);
                Ok(())
            }
        }
    }

    /// Returns the two halves of a 128-bit register.
    fn pair(&mut self, operand: &Operand<'a>) -> Reason<[V; 2]> {
        if let Operand::Name(name) = operand
            && let Some((Type::B128, (c, n))) = self.register(name)
        {
            return Ok([(c, n), (c, n + 1)]);
        }
        Err("it is not a 128-bit register".into())
    }

    /// Returns the type of each part of a value of type `ty` that is split into `n` parts.
    fn part_type(ty: Type, n: usize) -> Reason<Type> {
        Ok(match (ty.bits(), n) {
            (128, 2) => Type::B64,
            (128, 4) | (64, 2) => Type::B32,
            (64, 4) | (32, 2) => Type::B16,
            (32, 4) | (16, 2) => Type::B8,
            (bits, n) => return Err(format!("{bits} bits cannot be split into {n} parts").into()),
        })
    }

    fn unpack(&mut self, to: &[Operand<'a>], from: &Operand<'a>, ty: Type) -> Reason<()> {
        let part = Self::part_type(ty, to.len())?;
        if ty == Type::B128 {
            let [low, high] = self.pair(from)?;
            let half = to.len() / 2;
            for (v, operands) in [(low, &to[..half]), (high, &to[half..])] {
                match operands {
                    [one] => {
                        let d = self.dest(one, Type::B64)?;
                        self.push(Op::Mov64, &[d], &[v], 0);
                    }
                    operands => self.split64(operands, v)?,
                }
            }
            return Ok(());
        }
        let a = self.source(from, ty)?;
        match (ty.bits(), part) {
            (64, Type::B32) => self.split64(to, a),
            (64, _) => {
                let (low, high) = (self.temp(Class::W32), self.temp(Class::W32));
                self.push(Op::Unpack64, &[low, high], &[a], 0);
                self.split32(&to[..2], low, Type::B16)?;
                self.split32(&to[2..], high, Type::B16)
            }
            _ => self.split32(to, a, part),
        }
    }

    fn split64(&mut self, to: &[Operand<'a>], a: V) -> Reason<()> {
        let (d, e) = (self.dest(&to[0], Type::B32)?, self.dest(&to[1], Type::B32)?);
        self.push(Op::Unpack64, &[d, e], &[a], 0);
        Ok(())
    }

    /// Splits a 32-bit register into parts. Uses temporaries, since a destination may be the
    /// register itself.
    fn split32(&mut self, to: &[Operand<'a>], a: V, part: Type) -> Reason<()> {
        let mut parts = Vec::new();
        for n in 0..to.len() as u32 {
            let t = self.temp(Class::W32);
            let shift = (Class::W32, self.kernel.k32(n * part.bits()));
            self.push(Op::I32(I2::ShrU), &[t], &[a, shift], 0);
            parts.push(t);
        }
        let mask = (Class::W32, self.kernel.k32((1 << part.bits()) - 1));
        for (operand, t) in to.iter().zip(parts) {
            let d = self.dest(operand, part)?;
            self.push(Op::I32(I2::And), &[d], &[t, mask], 0);
        }
        Ok(())
    }

    fn pack(&mut self, to: &Operand<'a>, from: &[Operand<'a>], ty: Type) -> Reason<()> {
        let part = Self::part_type(ty, from.len())?;
        let parts = from.iter().map(|o| self.source(o, part)).collect::<Reason<Vec<V>>>()?;
        if ty == Type::B128 {
            let d = self.pair(to)?;
            let half = parts.len() / 2;
            let mut halves = Vec::new();
            for chunk in parts.chunks(half) {
                halves.push(if let [a, b] = chunk {
                    let t = self.temp(Class::W64);
                    self.push(Op::Pack64, &[t], &[*a, *b], 0);
                    t
                } else {
                    chunk[0]
                });
            }
            for (d, h) in d.into_iter().zip(halves) {
                self.push(Op::Mov64, &[d], &[h], 0);
            }
            return Ok(());
        }
        let d = self.dest(to, ty)?;
        match (ty.bits(), part) {
            (64, Type::B32) => {
                self.push(Op::Pack64, &[d], &[parts[0], parts[1]], 0);
            }
            (64, _) => {
                let low = self.join(&parts[..2], part);
                let high = self.join(&parts[2..], part);
                self.push(Op::Pack64, &[d], &[low, high], 0);
            }
            _ => {
                let v = self.join(&parts, part);
                self.push(Op::Mov32, &[d], &[v], 0);
            }
        }
        Ok(())
    }

    /// Joins parts to a value of 32 bits. The first part becomes the lowest bits.
    fn join(&mut self, parts: &[V], part: Type) -> V {
        let mut acc = parts[0];
        for (n, p) in parts.iter().enumerate().skip(1) {
            let (shifted, next) = (self.temp(Class::W32), self.temp(Class::W32));
            let shift = (Class::W32, self.kernel.k32(n as u32 * part.bits()));
            self.push(Op::I32(I2::Shl), &[shifted], &[*p, shift], 0);
            self.push(Op::I32(I2::Or), &[next], &[acc, shifted], 0);
            acc = next;
        }
        acc
    }
}
