//! Lowers loads, stores, atomics and address computations.

use super::func::Lower;
use super::mods::Mods;
use super::names::{Place, V, class};
use super::{Reason, gap};
use crate::ir::{Access, Class, Op, Rmw, Sreg};
use crate::ptx::{Instr, Operand, Space, Type};

/// A resolved address: the space, the base register, and the constant offset.
pub(super) struct Address {
    pub(super) space: Space,
    pub(super) base: V,
    pub(super) offset: i64,
}

const SPACES: [(&str, Space); 10] = [
    ("global", Space::Global),
    ("const", Space::Const),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("shared::cluster", Space::Shared),
    ("local", Space::Local),
    ("param", Space::Param),
    ("param::entry", Space::Param),
    ("param::func", Space::Param),
    ("generic", Space::Generic),
];

pub(super) fn hint(m: &str) -> bool {
    let plain = [
        "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "L1", "L2", "unified", "cta",
        "cluster", "gpu", "sys", "noftz",
    ];
    plain.contains(&m) || m.starts_with("L1::") || m.starts_with("L2::") || m.starts_with("level::")
}

/// Returns whether the access is strong (volatile, relaxed, acquire or release), and whether it is
/// atomic in the memory model.
fn strong(m: &mut Mods<'_>) -> (bool, bool) {
    let order = ["relaxed", "acquire", "release", "acq_rel"];
    let atomic = order.iter().fold(false, |any, o| m.take(o) | any);
    (m.take("volatile") | m.take("mmio") | atomic, atomic)
}

impl<'a> Lower<'_, '_, '_, 'a> {
    /// Returns the state space of an instruction, or `Generic` if it names no space.
    pub(super) fn space(m: &mut Mods<'_>) -> Space {
        m.one_of(&SPACES).unwrap_or(Space::Generic)
    }

    /// Reads the cache policy at operand `at`, which has no effect on results. Returns the number
    /// of operands read, 0 or 1.
    pub(super) fn cache_policy(&mut self, i: &Instr<'a>, at: usize) -> Reason<usize> {
        if !i.has("L2::cache_hint") {
            return Ok(0);
        }
        self.source(self.arg(i, at)?, Type::B64)?;
        Ok(1)
    }

    /// Lowers `createpolicy`. All policies are equal in the emulator.
    pub(super) fn create_policy(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.drop_if(|_| true);
        let d = self.dest(self.arg(i, 0)?, Type::B64)?;
        self.push(Op::Sreg64(Sreg::Zero), &[d], &[], 0);
        Ok(())
    }

    /// Resolves an address operand. In the result, the space `Param` means an offset in the frame,
    /// and `Reg` an offset in the kernel's parameters.
    pub(super) fn address(&mut self, operand: &Operand<'a>, space: Space) -> Reason<Address> {
        let Operand::Address { base, offset } = operand else {
            return Err("the operand is not an address".into());
        };
        let zero = (Class::W64, self.kernel.k64(0));
        let Some(name) = base else {
            return Ok(Address { space, base: zero, offset: *offset });
        };
        if let Some((_, v)) = self.register(name) {
            if v.0 == Class::P {
                return Err(format!("`{name}` is a predicate").into());
            }
            let space = match space {
                Space::Param if self.entry => Space::Generic,
                Space::Param => Space::Local,
                other => other,
            };
            return Ok(Address { space, base: v, offset: *offset });
        }
        let constant = |space, at: u64| {
            let offset = offset.wrapping_add(at as i64);
            Ok(Address { space, base: zero, offset })
        };
        match self.find_place(name)? {
            Place::Address(va) => constant(space, va),
            Place::Shared(at) => constant(Space::Shared, at.into()),
            Place::DynamicShared => {
                let base = (Class::W64, self.kernel.dynamic_shared(Class::W64, 0));
                Ok(Address { space: Space::Shared, base, offset: *offset })
            }
            Place::Frame(at, _) => constant(Space::Param, at.into()),
            Place::KernelParam(at) => constant(Space::Reg, at.into()),
            Place::Function(_) => Err(format!("`{name}` is a function").into()),
        }
    }

    pub(super) fn vector(m: &mut Mods<'_>) -> usize {
        m.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1)
    }

    /// Returns width and number of the elements of an access. A 128-bit element counts as two of 64
    /// bits.
    fn shape(ty: Type, vector: usize) -> Reason<(u8, u8)> {
        match ty {
            Type::Pred => Err("a predicate cannot be in memory".into()),
            Type::B128 => Ok((8, 2 * vector as u8)),
            _ if ty.bytes() as usize * vector > 32 => Err("the vector is too long".into()),
            _ => Ok((ty.bytes() as u8, vector as u8)),
        }
    }

    /// Returns the registers of a data operand. All of them are in one register file.
    pub(super) fn data(
        &mut self,
        operand: &Operand<'a>,
        ty: Type,
        n: usize,
        def: bool,
    ) -> Reason<Vec<V>> {
        let single = std::slice::from_ref(operand);
        let parts = if let Operand::Vector(parts) = operand { &parts[..] } else { single };
        if parts.len() != n {
            return Err(format!("{} data registers instead of {n}", parts.len()).into());
        }
        let mut out = Vec::new();
        // The first operand with a name determines the register file.
        let named = parts.iter().find_map(|p| match p {
            Operand::Name(name) => self.register(name).map(|(_, v)| v.0),
            _ => None,
        });
        let file = named.unwrap_or(class(ty));
        if file == Class::P || (file == Class::W32 && class(ty) == Class::W64) {
            return Err("a data register is too narrow".into());
        }
        let wide = class(ty) == Class::W32 && file == Class::W64;
        let as_ty = if wide { Type::B64 } else { ty };
        for p in parts {
            if ty == Type::B128 {
                out.extend(self.pair_of(p)?);
            } else if def {
                out.push(self.dest(p, as_ty)?);
            } else {
                out.push(self.source(p, as_ty)?);
            }
        }
        Ok(out)
    }

    /// Returns whether the registers of an operand are declared with 16 bits.
    pub(super) fn is_16(&mut self, operand: &Operand<'a>) -> bool {
        match operand {
            Operand::Name(name) => self.register(name).is_some_and(|(t, _)| t.bits() == 16),
            Operand::Vector(parts) => parts.iter().any(|p| self.is_16(p)),
            _ => false,
        }
    }

    fn pair_of(&mut self, operand: &Operand<'a>) -> Reason<[V; 2]> {
        match operand {
            Operand::Name(name) => match self.register(name) {
                Some((Type::B128, (c, n))) => Ok([(c, n), (c, n + 1)]),
                _ => Err(format!("`{name}` is not a 128-bit register").into()),
            },
            _ => Err("a 128-bit register is needed".into()),
        }
    }

    pub(super) fn load(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let (strong, atomic) = strong(m);
        let space = Self::space(m);
        m.drop_if(hint);
        let n = Self::vector(m);
        let ty = m.ty()?;
        let policy = self.cache_policy(i, 2)?;
        self.operands(i, 2 + policy)?;
        let (width, count) = Self::shape(ty, n)?;
        let regs = self.data(self.arg(i, 0)?, ty, n, true)?;
        let at = self.address(self.arg(i, 1)?, space)?;
        let wide = regs[0].0 == Class::W64;
        let to16 = self.is_16(self.arg(i, 0)?);
        if at.space == Space::Reg {
            for (k, d) in regs.iter().enumerate() {
                let op = Op::LdParam { width, sext: ty.signed(), wide, to16 };
                self.push(op, &[*d], &[], at.offset + k as i64 * i64::from(width));
            }
            return Ok(());
        }
        let access = Access {
            space: at.space,
            width,
            count,
            sext: ty.signed(),
            wide,
            base64: at.base.0 == Class::W64,
            strong,
            atomic,
            to16,
        };
        self.emit_access(Op::Ld(access), &regs, at, true);
        Ok(())
    }

    /// Emits a load or store. The data registers are `d` or `b`, or a list whose index is `s`.
    fn emit_access(&mut self, op: Op, regs: &[V], at: Address, load: bool) {
        if let [one] = regs {
            let (defs, uses) =
                if load { (regs, vec![at.base]) } else { (&[][..], vec![at.base, *one]) };
            self.push(op, defs, &uses, at.offset);
            return;
        }
        self.push(op, &[], &[at.base], at.offset);
        let list = self.list(regs, load);
        if let Some(inst) = self.last() {
            inst.s = list;
        }
    }

    pub(super) fn store(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        if m.take("async") || m.take("bulk") {
            return Err(gap("asynchronous stores are not supported by the emulator"));
        }
        let (strong, atomic) = strong(m);
        let space = Self::space(m);
        m.drop_if(hint);
        let n = Self::vector(m);
        let ty = m.ty()?;
        let policy = self.cache_policy(i, 2)?;
        self.operands(i, 2 + policy)?;
        let (width, count) = Self::shape(ty, n)?;
        let at = self.address(self.arg(i, 0)?, space)?;
        if matches!(at.space, Space::Const | Space::Reg) {
            return Err("constants and kernel parameters cannot be written".into());
        }
        let regs = self.data(self.arg(i, 1)?, ty, n, false)?;
        let access = Access {
            space: at.space,
            width,
            count,
            sext: false,
            wide: regs[0].0 == Class::W64,
            base64: at.base.0 == Class::W64,
            strong,
            atomic,
            to16: false,
        };
        self.emit_access(Op::St(access), &regs, at, false);
        Ok(())
    }

    fn rmw(m: &mut Mods<'_>) -> Reason<(Rmw, Type)> {
        let names = ["and", "or", "xor", "exch", "cas", "add", "inc", "dec", "min", "max"];
        let Some(name) = names.iter().copied().find(|n| m.take(n)) else {
            return Err("this atomic operation is not supported".into());
        };
        let ty = m.ty()?;
        let op = match (name, ty) {
            ("and", _) => Rmw::And,
            ("or", _) => Rmw::Or,
            ("xor", _) => Rmw::Xor,
            ("exch", _) => Rmw::Exch,
            ("cas", _) => Rmw::Cas,
            ("inc", Type::U32) => Rmw::Inc,
            ("dec", Type::U32) => Rmw::Dec,
            ("add", Type::F32) => Rmw::AddF32,
            ("add", Type::F64) => Rmw::AddF64,
            ("add", Type::F16) => Rmw::AddF16,
            ("add", Type::Bf16) => Rmw::AddBf16,
            ("add", Type::F16x2) => Rmw::AddF16x2,
            ("add", Type::Bf16x2) => Rmw::AddBf16x2,
            ("add", t) if !t.float() => Rmw::Add,
            ("min", t) if t.signed() => Rmw::MinS,
            ("min", Type::U32 | Type::U64) => Rmw::MinU,
            ("max", t) if t.signed() => Rmw::MaxS,
            ("max", Type::U32 | Type::U64) => Rmw::MaxU,
            ("min" | "max", Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) => {
                return Err(gap("atomic minimum and maximum of half precision are not supported"));
            }
            _ => return Err("this atomic operation is not defined for this type".into()),
        };
        let narrow = matches!(op, Rmw::AddF16 | Rmw::AddBf16)
            || (matches!(op, Rmw::Cas | Rmw::Exch) && ty == Type::B16);
        if ty.bits() == 128 {
            return Err(gap("atomics on 128 bits are not supported"));
        }
        if ty.bits() < 32 && !narrow {
            return Err(format!("there are no atomics on {} bits", ty.bits()).into());
        }
        Ok((op, ty))
    }

    pub(super) fn atom(&mut self, i: &Instr<'a>, m: &mut Mods<'_>, result: bool) -> Reason<()> {
        if m.take("async") {
            return Err(gap("asynchronous reductions are not supported by the emulator"));
        }
        strong(m);
        let space = Self::space(m);
        m.drop_if(hint);
        let n = Self::vector(m);
        let (rmw, ty) = Self::rmw(m)?;
        let first = usize::from(result);
        let cas = rmw == Rmw::Cas;
        let count = first + 2 + usize::from(cas);
        let policy = self.cache_policy(i, count)?;
        self.operands(i, count + policy)?;
        let at = self.address(self.arg(i, first)?, space)?;
        if !matches!(at.space, Space::Generic | Space::Global | Space::Shared) {
            return Err("atomics require global or shared memory".into());
        }
        let access = Access {
            space: at.space,
            width: ty.bytes() as u8,
            count: 1,
            sext: false,
            wide: class(ty) == Class::W64,
            base64: at.base.0 == Class::W64,
            strong: true,
            atomic: true,
            to16: false,
        };
        let op = Op::Atom { rmw, access, result };
        if n > 1 {
            return self.vector_atom(i, op, ty, n, at, result);
        }
        let mut uses = vec![at.base, self.source(self.arg(i, first + 1)?, ty)?];
        if cas {
            uses.push(self.source(self.arg(i, first + 2)?, ty)?);
        }
        let d = if result { vec![self.dest(self.arg(i, 0)?, ty)?] } else { Vec::new() };
        self.push(op, &d, &uses, at.offset);
        Ok(())
    }

    /// Lowers a vector atomic to one atomic per element.
    fn vector_atom(
        &mut self,
        i: &Instr<'a>,
        op: Op,
        ty: Type,
        n: usize,
        at: Address,
        result: bool,
    ) -> Reason<()> {
        let values = self.data(self.arg(i, usize::from(result) + 1)?, ty, n, false)?;
        let dests = if result { self.data(self.arg(i, 0)?, ty, n, true)? } else { Vec::new() };
        // The first destinations must not overwrite operands that later elements still read.
        let temps: Vec<V> = dests.iter().map(|d| self.temp(d.0)).collect();
        for (k, value) in values.iter().enumerate() {
            let d = temps.get(k).map(std::slice::from_ref).unwrap_or_default();
            self.push(op, d, &[at.base, *value], at.offset + k as i64 * i64::from(ty.bytes()));
        }
        for (d, t) in dests.into_iter().zip(temps) {
            self.push(if d.0 == Class::W64 { Op::Mov64 } else { Op::Mov32 }, &[d], &[t], 0);
        }
        Ok(())
    }

    pub(super) fn cvta(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let to = m.take("to");
        let space = Self::space(m);
        let ty = m.ty()?;
        self.operands(i, 2)?;
        let a = self.source(self.arg(i, 1)?, ty)?;
        let d = self.dest(self.arg(i, 0)?, ty)?;
        let wide = class(ty) == Class::W64;
        if !wide {
            return Err("32-bit generic addresses are not supported".into());
        }
        self.push(Op::Cvta { space, to, wide }, &[d], &[a], 0);
        Ok(())
    }

    pub(super) fn isspacep(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let space = Self::space(m);
        self.operands(i, 2)?;
        let a = self.source(self.arg(i, 1)?, Type::B64)?;
        let d = self.dest(self.arg(i, 0)?, Type::Pred)?;
        self.push(Op::Isspacep(space), &[d], &[a], 0);
        Ok(())
    }
}
