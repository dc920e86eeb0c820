//! Lowers matrix instructions.
//!
//! Their fragments are lists of registers: the fields `d`, `a`, `b` and `c` of the instruction are
//! indices of lists, not registers.

use super::func::Lower;
use super::mods::Mods;
use super::names::V;
use super::{Reason, gap};
use crate::ir::{Class, Elem, Mma, Op, Wmma, WmmaKind};
use crate::ptx::{Instr, Operand, Space, Type};

const ELEMS: [(&str, Elem); 13] = [
    ("f16", Elem::F16),
    ("bf16", Elem::Bf16),
    ("tf32", Elem::Tf32),
    ("f64", Elem::F64),
    ("s8", Elem::S8),
    ("u8", Elem::U8),
    ("s4", Elem::S4),
    ("u4", Elem::U4),
    ("b1", Elem::B1Xor),
    ("e4m3", Elem::E4m3),
    ("e5m2", Elem::E5m2),
    ("f32", Elem::F32),
    ("s32", Elem::S32),
];

/// Parses a shape, for example `m16n8k16`.
fn shape(name: &str) -> Option<(u8, u8, u16)> {
    let (m, rest) = name.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

/// Returns the number of registers in each lane for `elements` elements of a warp. The registers
/// have 32 bits, or 64 bits for f64.
fn registers(e: Elem, elements: u32) -> usize {
    let bits = e.bits().max(32);
    if e == Elem::F64 {
        (elements / 32) as usize
    } else {
        (elements * e.bits() / 32 / bits) as usize
    }
}

impl<'a> Lower<'_, '_, '_, 'a> {
    fn take_shape(m: &mut Mods<'_>) -> Reason<(u8, u8, u16)> {
        let found = m.rest().find_map(|(_, s)| Some((s, shape(s)?)));
        let Some((name, shape)) = found else {
            return Err("it has no shape".into());
        };
        m.take(name);
        Ok(shape)
    }

    /// Takes the element types from the modifiers, in order.
    fn elems(m: &mut Mods<'_>) -> Vec<Elem> {
        let mut out = Vec::new();
        let names: Vec<&str> = m.rest().map(|(_, s)| s).collect();
        for name in names {
            if let Some((_, e)) = ELEMS.iter().find(|(n, _)| *n == name) {
                m.take(name);
                out.push(*e);
            }
        }
        out
    }

    /// Returns the registers of a fragment.
    fn fragment(&mut self, o: &Operand<'a>, elem: Elem, def: bool) -> Reason<Vec<V>> {
        let single = std::slice::from_ref(o);
        let parts = if let Operand::Vector(parts) = o { &parts[..] } else { single };
        let ty = if elem == Elem::F64 { Type::B64 } else { Type::B32 };
        let one = |s: &mut Self, p| if def { s.dest(p, ty) } else { s.source(p, ty) };
        parts.iter().map(|p| one(self, p)).collect()
    }

    pub(super) fn ldmatrix(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let load = i.op == "ldmatrix";
        m.drop_if(|s| matches!(s, "sync" | "aligned" | "b16"));
        if !m.take("m8n8") {
            let text = "only the shape m8n8 of 16-bit elements is supported";
            let other = ["m16n16", "m8n16", "m16n8"].iter().any(|shape| m.take(shape));
            return Err(if other { gap(text) } else { text.into() });
        }
        let count = m.one_of(&[("x1", 1u8), ("x2", 2), ("x4", 4)]).unwrap_or(1);
        let trans = m.take("trans");
        let space = match Self::space(m) {
            Space::Generic => Space::Generic,
            Space::Shared => Space::Shared,
            _ => return Err("matrices are loaded from shared memory".into()),
        };
        self.operands(i, 2)?;
        let (regs, address) = if load { (0, 1) } else { (1, 0) };
        let regs = self.fragment(self.arg(i, regs)?, Elem::F16, load)?;
        if regs.len() != count as usize {
            return Err(format!("{} registers instead of {count}", regs.len()).into());
        }
        let at = self.address(self.arg(i, address)?, space)?;
        let base = self.wide_base(at.base);
        let op = if load {
            Op::Ldmatrix { count, trans, space: at.space }
        } else {
            Op::Stmatrix { count, trans, space: at.space }
        };
        self.push(op, &[], &[base], at.offset);
        let list = self.list(&regs, load);
        if let Some(inst) = self.last() {
            inst.s = list;
        }
        Ok(())
    }

    /// Emits a product from lists of D, A, B and C. Returns an error if their lengths do not match
    /// the shape.
    fn product(&mut self, i: &Instr<'a>, op: Op, elems: [Elem; 4], sizes: [u32; 4]) -> Reason<()> {
        self.operands(i, 4)?;
        let mut regs = Vec::new();
        for (n, elem) in elems.into_iter().enumerate() {
            let list = self.fragment(self.arg(i, n)?, elem, n == 0)?;
            let want = registers(elem, sizes[n]);
            // The f16 fragments of `wmma` hold every element more than once.
            let good = list.len() == want || (matches!(op, Op::Wmma(_)) && list.len() > want);
            if !good || list.is_empty() {
                return Err(
                    format!("operand {n} has {} registers instead of {want}", list.len()).into()
                );
            }
            regs.push(list);
        }
        self.push(op, &[], &[], 0);
        let lists: Vec<u32> = (0..4).map(|n| self.list(&regs[n], n == 0)).collect();
        if let Some(inst) = self.last() {
            (inst.d, inst.a, inst.b, inst.c) = (lists[0], lists[1], lists[2], lists[3]);
        }
        Ok(())
    }

    pub(super) fn mma(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.drop_if(|s| matches!(s, "sync" | "aligned"));
        let (rows, cols, depth) = Self::take_shape(m)?;
        if !m.take("row") || !m.take("col") {
            return Err(gap("only `.row.col` is supported"));
        }
        let satfinite = m.take("satfinite");
        m.take("rn");
        let and = m.take("and");
        if !and {
            m.take("xor");
        }
        m.take("popc");
        let [d, mut a, mut b, c] = Self::elems(m)[..] else {
            let text = "four element types are needed";
            // Sparse, scaled and sub-byte products have further modifiers.
            let other = m.rest().next().is_some();
            return Err(if other { gap(text) } else { text.into() });
        };
        if and && a == Elem::B1Xor {
            (a, b) = (Elem::B1And, Elem::B1And);
        }
        let chunk = u32::from(depth) * a.bits();
        let good = matches!((rows, cols), (16 | 8, 8))
            && if a == Elem::F64 {
                depth % 4 == 0 && depth <= 16
            } else {
                chunk % 128 == 0 && chunk <= 256
            }
            && (rows == 16 || a == Elem::F64 || chunk == 128 && a.integer())
            && a.bits() == b.bits()
            && a.integer() == (d == Elem::S32)
            && (d == Elem::F64) == (a == Elem::F64)
            && !matches!(a, Elem::F32 | Elem::S32)
            && c.bits() <= 64
            && a.integer() == (c == Elem::S32);
        if !good || (c == Elem::F64) != (a == Elem::F64) {
            return Err(gap("this shape with these element types is not supported"));
        }
        let op = Op::Mma(Mma { m: rows, n: cols, k: depth, d, a, b, c, satfinite });
        let (m, n, k) = (u32::from(rows), u32::from(cols), u32::from(depth));
        self.product(i, op, [d, a, b, c], [m * n, m * k, k * n, m * n])
    }

    pub(super) fn wmma(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.drop_if(|s| matches!(s, "sync" | "aligned"));
        let load = m.take("load");
        let kind = if load {
            m.one_of(&[("a", WmmaKind::LoadA), ("b", WmmaKind::LoadB), ("c", WmmaKind::LoadC)])
        } else if m.take("store") {
            m.one_of(&[("d", WmmaKind::StoreD)])
        } else {
            m.one_of(&[("mma", WmmaKind::Mma)])
        };
        let Some(kind) = kind else {
            return Err("PTX has no such form of `wmma`".into());
        };
        let (rows, cols, depth) = Self::take_shape(m)?;
        let satfinite = m.take("satfinite");
        m.take("rn");
        let space = Self::space(m);
        // Both operands of a product may have the same layout, whose name then appears twice.
        let row = m.take("row");
        m.drop_if(|s| matches!(s, "row" | "col"));
        let elems = Self::elems(m);
        let (d, elem, c) = match elems[..] {
            [e] => (e, e, e),
            [d, c] => (d, Elem::F16, c),
            [d, a, b, c] if a == b => (d, a, c),
            _ => return Err(gap("these element types are not supported")),
        };
        let known = [(16, 16, 16), (32, 8, 16), (8, 32, 16), (16, 16, 8), (8, 8, 4)];
        if !known.contains(&(rows, cols, depth)) || elem.bits() < 8 {
            return Err(gap("this shape with these element types is not supported"));
        }
        let k = depth as u8;
        let op = Wmma { kind, m: rows, n: cols, k, row, elem, space, d, c, satfinite };
        let (m, n, k) = (u32::from(rows), u32::from(cols), u32::from(depth));
        if kind == WmmaKind::Mma {
            return self.product(i, Op::Wmma(op), [d, elem, elem, c], [m * n, m * k, k * n, m * n]);
        }
        self.wmma_memory(i, op)
    }

    fn wmma_memory(&mut self, i: &Instr<'a>, mut op: Wmma) -> Reason<()> {
        let load = op.kind != WmmaKind::StoreD;
        let (regs, address) = if load { (0, 1) } else { (1, 0) };
        let regs = self.fragment(self.arg(i, regs)?, op.elem, load)?;
        let (rows, cols) = op.extent();
        if regs.len() < registers(op.elem, u32::from(rows) * u32::from(cols)) || regs.is_empty() {
            return Err(format!("the fragment has too few registers: {}", regs.len()).into());
        }
        let at = self.address(self.arg(i, address)?, op.space)?;
        op.space = at.space;
        let base = self.wide_base(at.base);
        let stride = match i.operands.get(2) {
            Some(o) => self.source(o, Type::U32)?,
            None => {
                let length = if op.row { cols } else { rows };
                (Class::W32, self.kernel.k32(length.into()))
            }
        };
        self.push(Op::Wmma(op), &[], &[base, stride], at.offset);
        let list = self.list(&regs, load);
        if let Some(inst) = self.last() {
            inst.s = list;
        }
        Ok(())
    }
}

impl Elem {
    /// Returns the number of bits of an element in a register.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::B1Xor | Self::B1And => 1,
            Self::S4 | Self::U4 => 4,
            Self::S8 | Self::U8 | Self::E4m3 | Self::E5m2 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }

    /// Returns whether a product of these elements is an integer product.
    pub(crate) fn integer(self) -> bool {
        matches!(
            self,
            Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1Xor | Self::B1And | Self::S32
        )
    }
}

impl Wmma {
    /// Returns the numbers of rows and columns of the matrix in memory.
    pub(crate) fn extent(&self) -> (u8, u8) {
        match self.kind {
            WmmaKind::LoadA => (self.m, self.k),
            WmmaKind::LoadB => (self.k, self.n),
            _ => (self.m, self.n),
        }
    }
}
