//! Lowers asynchronous copies, barrier objects, and instructions for the stack.

use super::func::Lower;
use super::memory::hint;
use super::mods::Mods;
use super::names::{V, class};
use super::{Reason, gap};
use crate::ir::{Class, Mbar, Op};
use crate::ptx::{Instr, Operand, Space, Type};

impl<'a> Lower<'_, '_, '_, 'a> {
    pub(super) fn cp_async(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        if !m.take("async") {
            return Err(gap("this form of `cp` is not supported by the emulator"));
        }
        if m.take("bulk") {
            return Err(gap("bulk copies (TMA) are not supported by the emulator"));
        }
        if m.take("commit_group") {
            self.push(Op::CpCommit, &[], &[], 0);
            return Ok(());
        }
        if m.take("wait_all") {
            self.push(Op::CpWait { all: true }, &[], &[], 0);
            return Ok(());
        }
        if m.take("wait_group") {
            let Operand::Int(keep @ 0..=0x7fff_ffff) = self.arg(i, 0)? else {
                return Err("the number of groups must be an integer literal".into());
            };
            self.push(Op::CpWait { all: false }, &[], &[], *keep as i64);
            return Ok(());
        }
        if m.take("mbarrier") {
            m.drop_if(|s| matches!(s, "arrive" | "shared" | "shared::cta" | "b64"));
            let counts = !m.take("noinc");
            let at = self.address(self.arg(i, 0)?, Space::Shared)?;
            let op = Op::Mbar(Mbar::AsyncArrive);
            let base = self.wide_base(at.base);
            self.push(op, &[], &[base], at.offset);
            if let Some(inst) = self.last() {
                inst.e = u32::from(counts);
            }
            return Ok(());
        }
        m.drop_if(|s| s.starts_with("shared") || s == "global");
        m.drop_if(hint);
        let policy = self.cache_policy(i, i.operands.len().saturating_sub(1))?;
        let zfill = i.operands.len() - policy == 4;
        let dst = self.address(self.arg(i, 0)?, Space::Shared)?;
        let src = self.address(self.arg(i, 1)?, Space::Global)?;
        let bytes = match self.arg(i, 2)? {
            Operand::Int(n @ (4 | 8 | 16)) => *n as u8,
            _ => return Err("`cp.async` copies 4, 8 or 16 bytes".into()),
        };
        let (to, from) = (self.wide_base(dst.base), self.wide_base(src.base));
        let to = self.offset_base(to, dst.offset);
        let size = if zfill {
            match self.arg(i, 3)? {
                Operand::Name(n) if matches!(self.register(n), Some((Type::Pred, _))) => {
                    return Err(gap("`cp.async` with a predicate is not supported"));
                }
                other => self.source(other, Type::U32)?,
            }
        } else {
            (Class::W32, self.kernel.k32(u32::from(bytes)))
        };
        self.push(Op::CpAsync { bytes, src_size: zfill }, &[], &[to, from, size], src.offset);
        Ok(())
    }

    /// Returns a base register converted to 64 bits.
    pub(super) fn wide_base(&mut self, base: V) -> V {
        if base.0 == Class::W64 {
            return base;
        }
        let (d, zero) = (self.temp(Class::W64), (Class::W32, self.kernel.k32(0)));
        self.push(Op::Pack64, &[d], &[base, zero], 0);
        d
    }

    /// Returns a register that holds a base register plus a constant.
    pub(super) fn offset_base(&mut self, base: V, offset: i64) -> V {
        if offset == 0 {
            return base;
        }
        let (d, k) = (self.temp(Class::W64), (Class::W64, self.kernel.k64(offset as u64)));
        self.push(Op::I64(crate::ir::I2::Add), &[d], &[base, k], 0);
        d
    }

    pub(super) fn stack(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let ty = m.ty()?;
        if class(ty) != Class::W64 {
            return Err("only the 64-bit form is supported".into());
        }
        match i.op {
            "alloca" => {
                let size = self.source(self.arg(i, 1)?, ty)?;
                let align = match i.operands.get(2) {
                    Some(Operand::Int(n @ 1..=4096)) => *n as i64,
                    None => 16,
                    Some(_) => return Err("the alignment must be a number up to 4096".into()),
                };
                let d = self.dest(self.arg(i, 0)?, ty)?;
                self.push(Op::Alloca, &[d], &[size], align);
            }
            "stacksave" => {
                let d = self.dest(self.arg(i, 0)?, ty)?;
                self.push(Op::StackSave, &[d], &[], 0);
            }
            _ => {
                let a = self.source(self.arg(i, 0)?, ty)?;
                self.push(Op::StackRestore, &[], &[a], 0);
            }
        }
        Ok(())
    }

    pub(super) fn mbarrier(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let names = [
            ("init", Mbar::Init),
            ("inval", Mbar::Inval),
            ("arrive_drop", Mbar::ArriveDrop),
            ("arrive", Mbar::Arrive),
            ("test_wait", Mbar::TestWait),
            ("try_wait", Mbar::TryWait),
            ("pending_count", Mbar::PendingCount),
        ];
        let Some(mut kind) = m.one_of(&names) else {
            return Err(gap("this `mbarrier` operation is not supported by the emulator"));
        };
        if m.take("expect_tx") || m.take("noComplete") {
            return Err(gap("transaction counts of `mbarrier` are not supported"));
        }
        let parity = m.take("parity");
        m.drop_if(|s| s.starts_with("shared") || s == "b64" || s == "noinc");
        m.drop_if(|s| matches!(s, "relaxed" | "acquire" | "release" | "cta" | "cluster"));
        kind = match (kind, parity) {
            (Mbar::TestWait, true) => Mbar::TestWaitParity,
            (Mbar::TryWait, true) => Mbar::TryWaitParity,
            (k, _) => k,
        };
        self.emit_mbarrier(i, kind)
    }

    fn emit_mbarrier(&mut self, i: &Instr<'a>, kind: Mbar) -> Reason<()> {
        let one = (Class::W32, self.kernel.k32(1));
        let bare = matches!(i.operands.first(), Some(Operand::Address { .. }));
        let (d, at) = match kind {
            Mbar::Init | Mbar::Inval => (None, 0),
            Mbar::Arrive | Mbar::ArriveDrop if bare => (Some(self.temp(Class::W64)), 0),
            Mbar::Arrive | Mbar::ArriveDrop => (Some(self.dest(self.arg(i, 0)?, Type::B64)?), 1),
            Mbar::PendingCount => {
                let d = self.dest(self.arg(i, 0)?, Type::B32)?;
                let a = self.source(self.arg(i, 1)?, Type::B64)?;
                self.push(Op::Mbar(kind), &[d], &[a], 0);
                return Ok(());
            }
            _ => (Some(self.dest(self.arg(i, 0)?, Type::Pred)?), 1),
        };
        let address = self.address(self.arg(i, at)?, Space::Shared)?;
        let base = self.wide_base(address.base);
        let extra = match (kind, i.operands.get(at + 1)) {
            (Mbar::TestWait | Mbar::TryWait, Some(o)) => self.source(o, Type::B64)?,
            (_, Some(o)) => self.source(o, Type::U32)?,
            (_, None) => one,
        };
        let d = d.as_slice();
        // A 64-bit state and a 32-bit count are separate operands.
        let uses = if extra.0 == Class::W64 { vec![base, one, extra] } else { vec![base, extra] };
        self.push(Op::Mbar(kind), d, &uses, address.offset);
        Ok(())
    }
}
