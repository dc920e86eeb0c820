//! Converts the number of executions of each instruction to counts by class of instruction.

use super::{Counts, arithmetic};
use crate::ir::{Code, F1, Fp, Op};

#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Half,
    Single,
    Double,
    Special,
    Conversion,
    Move,
    Control,
    Memory,
    Atomic,
    Exchange,
    Synchronisation,
    Tensor,
}

fn of_format(fp: Fp) -> Kind {
    match fp {
        Fp::F32 => Kind::Single,
        Fp::F64 => Kind::Double,
        _ => Kind::Half,
    }
}

fn kind(op: &Op) -> Kind {
    match op {
        Op::I16(_) | Op::I32(_) | Op::I64(_) | Op::I16x1(_) | Op::I32x1(_) | Op::I64x1(_) => {
            Kind::Integer
        }
        Op::I16x3(_) | Op::I32x3(_) | Op::I64x3(_) | Op::MulWide { .. } => Kind::Integer,
        Op::MulWide16 { .. } | Op::Carry32(_) | Op::Carry64(_) => Kind::Integer,
        Op::Cmp16(_) | Op::Cmp32(_) | Op::Cmp64(_) => Kind::Integer,
        Op::AndP | Op::OrP | Op::XorP | Op::NotP => Kind::Integer,
        Op::F1 { fp, op, .. } => match op {
            F1::Neg | F1::Abs | F1::Sqrt | F1::Rcp => of_format(*fp),
            _ => Kind::Special,
        },
        Op::FCmp { fp, .. } | Op::F2 { fp, .. } | Op::Fma { fp, .. } | Op::Testp { fp, .. } => {
            of_format(*fp)
        }
        Op::Cvt(_) | Op::CvtPack { .. } | Op::CvtUnpack { .. } => Kind::Conversion,
        Op::LdParam { .. }
        | Op::Ld(_)
        | Op::St(_)
        | Op::Tex(_)
        | Op::Surf(_)
        | Op::CpAsync { .. } => Kind::Memory,
        Op::Ldmatrix { .. } | Op::Stmatrix { .. } => Kind::Memory,
        Op::Atom { .. } | Op::Mbar(_) => Kind::Atomic,
        Op::Mma(_) | Op::Wmma(_) => Kind::Tensor,
        Op::Shfl(_) | Op::Vote(_) | Op::Match { .. } | Op::Redux(_) => Kind::Exchange,
        Op::Activemask | Op::Elect => Kind::Exchange,
        Op::SyncWarp | Op::Bar(_) | Op::Fence | Op::Nanosleep => Kind::Synchronisation,
        Op::Bra | Op::BrxIdx | Op::Call | Op::CallIndirect | Op::Builtin(_) => Kind::Control,
        Op::Ret | Op::Exit | Op::Trap => Kind::Control,
        _ => Kind::Move,
    }
}

/// Numbers of executions of an instruction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Executed {
    /// Number of times that a warp issued the instruction, even if no lane's guard was true.
    pub(crate) warps: u64,
    /// Number of lanes that were active when the instruction was issued, regardless of the guard.
    pub(crate) active: u64,
    /// Number of lanes whose guard predicate was true.
    pub(crate) threads: u64,
}

impl Executed {
    pub(crate) fn add(&mut self, other: Self) {
        self.warps += other.warps;
        self.active += other.active;
        self.threads += other.threads;
    }
}

impl Counts {
    /// Adds the numbers of executions in `profile`, which has an element for each instruction of
    /// `code`. If several instructions implement one PTX instruction, only the first is counted.
    pub(crate) fn fold(&mut self, code: &Code, profile: &[Executed]) {
        for ((inst, line), ran) in code.insts.iter().zip(&code.lines).zip(profile) {
            if line.2.is_none() || ran.warps == 0 {
                continue;
            }
            self.active_threads += ran.active;
            self.class(&inst.op, ran.warps, ran.threads);
            self.flops(&inst.op, ran.threads);
        }
    }

    fn class(&mut self, op: &Op, warps: u64, threads: u64) {
        self.warp_instructions += warps;
        self.thread_instructions += threads;
        let (w, t) = match kind(op) {
            Kind::Integer => (&mut self.warp_integer, &mut self.thread_integer),
            Kind::Half => (&mut self.warp_fp16, &mut self.thread_fp16),
            Kind::Single => (&mut self.warp_fp32, &mut self.thread_fp32),
            Kind::Double => (&mut self.warp_fp64, &mut self.thread_fp64),
            Kind::Special => (&mut self.warp_special, &mut self.thread_special),
            Kind::Conversion => (&mut self.warp_conversion, &mut self.thread_conversion),
            Kind::Move => (&mut self.warp_move, &mut self.thread_move),
            Kind::Control => (&mut self.warp_control, &mut self.thread_control),
            Kind::Memory => (&mut self.warp_memory, &mut self.thread_memory),
            Kind::Atomic => (&mut self.warp_atomic, &mut self.thread_atomic),
            Kind::Exchange => (&mut self.warp_exchange, &mut self.thread_exchange),
            Kind::Synchronisation => {
                (&mut self.warp_synchronisation, &mut self.thread_synchronisation)
            }
            Kind::Tensor => (&mut self.warp_tensor, &mut self.thread_tensor),
        };
        *w += warps;
        *t += threads;
        match op {
            Op::Bra | Op::BrxIdx => self.branches += warps,
            Op::Bar(_) => self.barriers += warps,
            _ => {}
        }
    }

    fn flops(&mut self, op: &Op, threads: u64) {
        let Some(each) = arithmetic::of(op) else { return };
        self.fadd += threads * each.fadd;
        self.fmul += threads * each.fmul;
        self.ffma += threads * each.ffma;
        self.dadd += threads * each.dadd;
        self.dmul += threads * each.dmul;
        self.dfma += threads * each.dfma;
        self.hadd += threads * each.hadd;
        self.hmul += threads * each.hmul;
        self.hfma += threads * each.hfma;
        self.half_ops += threads * each.half_ops;
    }
}
