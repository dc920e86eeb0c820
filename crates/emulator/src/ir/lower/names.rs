//! Resolves the names in a function: registers, variables and constants.

use std::collections::HashMap;

use super::Reason;
use super::func::Lower;
use crate::ir::window::{FUNCTION_WINDOW, PARAM_WINDOW};
use crate::ir::{Class, K, Op, RESERVED_SHARED, Sreg};
use crate::ptx::{Operand, Type, Var};

/// A register operand, given by its register file and number.
pub(super) type V = (Class, u32);

/// The object that a name refers to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// An address in global or constant memory.
    Address(u64),
    /// An offset in shared memory.
    Shared(u32),
    DynamicShared,
    /// An offset in the frame, and the size of the variable there.
    Frame(u32, u32),
    /// An offset in the kernel's parameters.
    KernelParam(u32),
    /// A function of the module.
    Function(usize),
}

/// A declared register, or several registers with a common prefix.
pub(super) struct Range {
    ty: Type,
    vector: u32,
    count: Option<u32>,
}

/// One scope of names, `{ … }`.
#[derive(Default)]
pub(super) struct Scope<'a> {
    /// Registers by name. The boolean is whether the name is a prefix: `a` and `a<2>` (registers
    /// `a0` and `a1`) are different declarations, and Triton's conversions from 8-bit floats
    /// contain both.
    pub(super) ranges: HashMap<(&'a str, bool), Range>,
    pub(super) known: HashMap<&'a str, (Type, u32)>,
    pub(super) places: HashMap<&'a str, Place>,
    pub(super) id: u32,
}

/// Returns the register file for a type.
pub(super) fn class(ty: Type) -> Class {
    match ty.bytes() {
        _ if ty == Type::Pred => Class::P,
        8 | 16 => Class::W64,
        _ => Class::W32,
    }
}

impl<'a> Lower<'_, '_, '_, 'a> {
    pub(super) fn declare(
        &mut self,
        name: &'a str,
        ty: Type,
        vector: u32,
        count: Option<u32>,
    ) -> Reason<()> {
        if let Some(scope) = self.scopes.last_mut() {
            scope.ranges.insert((name, count.is_some()), Range { ty, vector, count });
        }
        Ok(())
    }

    pub(super) fn declare_place(&mut self, name: &'a str, place: Place) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.places.insert(name, place);
        }
    }

    /// Returns a new register without a name.
    pub(super) fn temp(&mut self, class: Class) -> V {
        let counter = match class {
            Class::W32 => &mut self.n32,
            Class::W64 => &mut self.n64,
            Class::P => &mut self.np,
        };
        *counter += 1;
        (class, *counter - 1)
    }

    /// Returns the register called `name` and its declared type. A 128-bit register consists of two
    /// 64-bit registers.
    pub(super) fn register(&mut self, name: &'a str) -> Option<(Type, V)> {
        for i in (0..self.scopes.len()).rev() {
            if let Some((ty, number)) = self.scopes[i].known.get(name) {
                return Some((*ty, (class(*ty), *number)));
            }
            let Some(ty) = self.scopes[i].declared(name) else {
                continue;
            };
            let v = self.temp(class(ty));
            if ty == Type::B128 {
                self.temp(Class::W64);
            }
            self.scopes[i].known.insert(name, (ty, v.1));
            return Some((ty, v));
        }
        None
    }

    /// Returns the object that `name` refers to, if it is not a register.
    pub(super) fn place(&mut self, name: &'a str) -> Option<Place> {
        if let Some(place) = self.scopes.iter().rev().find_map(|s| s.places.get(name)) {
            return Some(*place);
        }
        if let Some(va) = self.kernel.env.globals.get(name) {
            return Some(Place::Address(*va));
        }
        if let Some(at) = self.kernel.shared.get(name) {
            return Some(Place::Shared(*at));
        }
        self.kernel.env.funcs.get(name).map(|f| Place::Function(*f))
    }

    /// Finds a shared variable of module scope. Its first use in a kernel allocates it.
    pub(super) fn module_shared(&mut self, name: &'a str) -> Reason<Option<Place>> {
        let unit = self.kernel.env.unit;
        let Some(var) = unit.vars.iter().find(|v| v.name == name) else {
            return Ok(None);
        };
        if var.space != crate::ptx::Space::Shared {
            return Ok(None);
        }
        if var.external {
            self.kernel.dynamic_align = self.kernel.dynamic_align.max(var.align);
            return Ok(Some(Place::DynamicShared));
        }
        let at = self.kernel.place_shared(var)?;
        self.kernel.shared.insert(var.name, at);
        Ok(Some(Place::Shared(at)))
    }

    /// Returns the object that a name refers to, or an error if the name is not declared.
    pub(super) fn find_place(&mut self, name: &'a str) -> Reason<Place> {
        if let Some(p) = self.place(name) {
            return Ok(p);
        }
        match self.module_shared(name)? {
            Some(p) => Ok(p),
            None => Err(format!("`{name}` is not declared").into()),
        }
    }

    /// Reserves space in the frame for a variable.
    pub(super) fn place_frame(&mut self, var: &Var<'_>) -> Reason<Place> {
        let at = self.frame.next_multiple_of(var.align.max(4));
        let bytes = u32::try_from(var.bytes).unwrap_or(u32::MAX).max(1);
        match at.checked_add(bytes).filter(|end| *end <= super::func::MAX_FRAME) {
            Some(end) => {
                self.frame = end.next_multiple_of(4);
                Ok(Place::Frame(at, bytes))
            }
            None => {
                Err(format!("more than {} bytes of local memory", super::func::MAX_FRAME).into())
            }
        }
    }

    /// Returns the address of an object plus `offset`, as a value of 32 or 64 bits.
    fn address_of(&mut self, place: Place, offset: i64, class: Class) -> Reason<V> {
        let value = match place {
            Place::Address(va) => va,
            Place::Shared(at) => u64::from(at),
            Place::DynamicShared => {
                return Ok((class, self.kernel.dynamic_shared(class, offset)));
            }
            Place::KernelParam(at) => PARAM_WINDOW + u64::from(at),
            Place::Function(i) => {
                self.kernel.function(i);
                FUNCTION_WINDOW + 16 * i as u64
            }
            Place::Frame(at, _) => {
                let wide = self.temp(Class::W64);
                self.push(Op::FrameAddr, &[wide], &[], i64::from(at).wrapping_add(offset));
                return if class == Class::W64 { Ok(wide) } else { self.narrow(wide) };
            }
        };
        let value = value.wrapping_add(offset as u64);
        Ok(if class == Class::W64 {
            (class, self.kernel.k64(value))
        } else {
            (class, self.kernel.k32(value as u32))
        })
    }

    /// Returns the low half of a 64-bit register.
    pub(super) fn narrow(&mut self, wide: V) -> Reason<V> {
        let (low, high) = (self.temp(Class::W32), self.temp(Class::W32));
        self.push(Op::Unpack64, &[low, high], &[wide], 0);
        Ok(low)
    }

    /// Returns an operand as a value of type `ty`. The type determines the register file and the
    /// bits of a literal.
    pub(super) fn source(&mut self, operand: &Operand<'a>, ty: Type) -> Reason<V> {
        let want = class(ty);
        let bits = match operand {
            Operand::Int(v) if ty.float() && ty != Type::F16 && ty != Type::Bf16 => {
                if ty == Type::F64 {
                    (*v as f64).to_bits()
                } else {
                    u64::from((*v as f32).to_bits())
                }
            }
            Operand::Int(v) => *v as u64,
            Operand::F32(v) if ty == Type::F64 => f64::from(f32::from_bits(*v)).to_bits(),
            Operand::F32(v) => u64::from(*v),
            Operand::F64(v) if want == Class::W64 => *v,
            Operand::F64(v) => u64::from((f64::from_bits(*v) as f32).to_bits()),
            Operand::Name(name) => {
                if let Some((_, v)) = self.register(name) {
                    return same_file(name, v, want);
                }
                if let Some(v) = self.special(name, None, want)? {
                    return Ok(v);
                }
                let place = self.find_place(name)?;
                return self.address_of(place, 0, want);
            }
            Operand::Symbol(s) => {
                let place = self.find_place(s.name)?;
                return self.address_of(place, s.offset, want);
            }
            Operand::Part(name, part) => {
                if let Some(v) = self.special(name, Some(part), want)? {
                    return Ok(v);
                }
                return Err(format!("there is no special register `{name}.{part}`").into());
            }
            Operand::Not(name) if want == Class::P => {
                let Some((_, v)) = self.register(name) else {
                    return Err(format!("`{name}` is not declared").into());
                };
                let v = same_file(name, v, Class::P)?;
                let t = self.temp(Class::P);
                self.push(Op::NotP, &[t], &[v], 0);
                return Ok(t);
            }
            _ => return Err("an operand has the wrong form".into()),
        };
        Ok(match want {
            Class::P => (want, K | u32::from(bits & 1 == 1 || bits != 0)),
            Class::W64 => (want, self.kernel.k64(bits)),
            Class::W32 => {
                let mask = if ty.bits() >= 32 { u32::MAX } else { (1 << ty.bits()) - 1 };
                (want, self.kernel.k32(bits as u32 & mask))
            }
        })
    }

    /// Returns a register to write to. For `_` this is a new register that is never read.
    pub(super) fn dest(&mut self, operand: &Operand<'a>, ty: Type) -> Reason<V> {
        match operand {
            Operand::Name(name) => match self.register(name) {
                Some((_, v)) => same_file(name, v, class(ty)),
                None => Err(format!("`{name}` is not a register").into()),
            },
            Operand::Sink => Ok(self.temp(class(ty))),
            _ => Err("the destination is not a register".into()),
        }
    }

    /// Reads the special register called `name` into a new register.
    fn special(&mut self, name: &str, part: Option<&str>, want: Class) -> Reason<Option<V>> {
        if name.starts_with("%reserved_smem_offset_") {
            self.kernel.code.shared_reserved = RESERVED_SHARED;
        }
        let axis = |x, y, z| match part {
            Some("x") => Some(x),
            Some("y") => Some(y),
            Some("z") => Some(z),
            _ => None,
        };
        let found = match name {
            "%tid" => axis(Sreg::TidX, Sreg::TidY, Sreg::TidZ),
            "%ntid" => axis(Sreg::NtidX, Sreg::NtidY, Sreg::NtidZ),
            "%ctaid" => axis(Sreg::CtaidX, Sreg::CtaidY, Sreg::CtaidZ),
            "%nctaid" => axis(Sreg::NctaidX, Sreg::NctaidY, Sreg::NctaidZ),
            // Without clusters, every block is a cluster of one block.
            "%cluster_ctaid" => axis(Sreg::Zero, Sreg::Zero, Sreg::Zero),
            "%cluster_nctaid" => axis(Sreg::One, Sreg::One, Sreg::One),
            "%clusterid" => axis(Sreg::CtaidX, Sreg::CtaidY, Sreg::CtaidZ),
            "%nclusterid" => axis(Sreg::NctaidX, Sreg::NctaidY, Sreg::NctaidZ),
            _ if part.is_some() => None,
            _ => plain_special(name),
        };
        let Some(sreg) = found else {
            return Ok(None);
        };
        let v = self.temp(want);
        let op = match want {
            Class::W64 => Op::Sreg64(sreg),
            Class::W32 => Op::Sreg(sreg),
            Class::P => return Err(format!("`{name}` is not a predicate").into()),
        };
        self.push(op, &[v], &[], 0);
        Ok(Some(v))
    }
}

fn plain_special(name: &str) -> Option<Sreg> {
    Some(match name {
        "%laneid" => Sreg::LaneId,
        "%warpid" => Sreg::WarpId,
        "%nwarpid" => Sreg::NWarpId,
        "%smid" => Sreg::SmId,
        "%nsmid" => Sreg::NSmId,
        "%gridid" => Sreg::GridId,
        "%lanemask_eq" => Sreg::LanemaskEq,
        "%lanemask_le" => Sreg::LanemaskLe,
        "%lanemask_lt" => Sreg::LanemaskLt,
        "%lanemask_ge" => Sreg::LanemaskGe,
        "%lanemask_gt" => Sreg::LanemaskGt,
        "%clock" => Sreg::Clock,
        "%clock_hi" => Sreg::ClockHi,
        "%clock64" => Sreg::Clock64,
        "%globaltimer" => Sreg::GlobalTimer,
        "%globaltimer_lo" => Sreg::GlobalTimerLo,
        "%globaltimer_hi" => Sreg::GlobalTimerHi,
        "%dynamic_smem_size" => Sreg::DynamicSmem,
        "%total_smem_size" => Sreg::TotalSmem,
        "%aggr_smem_size" => Sreg::AggrSmem,
        "%reserved_smem_offset_begin" | "%reserved_smem_offset_0" => Sreg::ReservedBegin,
        "%reserved_smem_offset_1" => Sreg::ReservedGroups,
        "%reserved_smem_offset_end" => Sreg::ReservedEnd,
        "%reserved_smem_offset_cap" => Sreg::ReservedBytes,
        "%cluster_ctarank" | "%is_explicit_cluster" => Sreg::Zero,
        "%cluster_nctarank" => Sreg::One,
        // Cooperative groups read the address of the grid's workspace here.
        "%envreg1" => Sreg::WorkspaceHigh,
        "%envreg2" => Sreg::WorkspaceLow,
        // Registers that the driver sets, and performance counters, which are not configured, are
        // 0.
        _ if numbered(name, "%envreg", 32) => Sreg::Zero,
        _ if numbered(name.trim_end_matches("_64"), "%pm", 8) => Sreg::Zero,
        _ => return None,
    })
}

/// Returns whether `name` is `prefix` followed by a number below `count`.
fn numbered(name: &str, prefix: &str, count: u32) -> bool {
    let number = name.strip_prefix(prefix).and_then(|digits| digits.parse::<u32>().ok());
    number.is_some_and(|number| number < count)
}

fn same_file(name: &str, v: V, want: Class) -> Reason<V> {
    if v.0 == want {
        return Ok(v);
    }
    let bits = |c| match c {
        Class::P => "a predicate",
        Class::W32 => "32 bits or less",
        Class::W64 => "64 bits",
    };
    Err(format!("`{name}` holds {}, but {} are needed", bits(v.0), bits(want)).into())
}

impl Scope<'_> {
    /// Returns the type with which `name` is declared in this scope.
    fn declared(&self, name: &str) -> Option<Type> {
        if let Some(r) = self.ranges.get(&(name, false)).filter(|r| r.vector == 1) {
            return Some(r.ty);
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // The prefix may itself end in digits, but NVIDIA's compilers never write that.
        let number = name[prefix.len()..].parse::<u32>().ok()?;
        let range = self.ranges.get(&(prefix, true))?;
        (range.vector == 1 && range.count? > number).then_some(range.ty)
    }
}
