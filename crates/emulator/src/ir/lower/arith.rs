//! Selects the lowering of each instruction.

use super::func::Lower;
use super::mods::Mods;
use super::{Problem, Reason, gap};
use crate::ir::{I1, I2};
use crate::ptx::{Instr, Operand, Type, isa};

impl<'a> Lower<'_, '_, '_, 'a> {
    pub(super) fn arg<'i>(&self, instr: &'i Instr<'a>, i: usize) -> Reason<&'i Operand<'a>> {
        let n = instr.operands.len();
        let few = || Problem::from(format!("it has too few operands: {n}"));
        instr.operands.get(i).ok_or_else(few)
    }

    /// Returns an error unless the instruction has exactly `n` operands.
    pub(super) fn operands(&self, instr: &Instr<'a>, n: usize) -> Reason<()> {
        if instr.operands.len() == n {
            return Ok(());
        }
        Err(format!("it has {} operands instead of {n}", instr.operands.len()).into())
    }

    pub(super) fn instruction(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        match i.op {
            "mov" => self.mov(i, m),
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "min" | "max" | "neg" | "abs" => {
                self.either(i, m)
            }
            "rem" => self.int2(i, m, I2::RemS, I2::RemU),
            "and" => self.logic(i, m, I2::And),
            "or" => self.logic(i, m, I2::Or),
            "xor" => self.logic(i, m, I2::Xor),
            "not" => self.not(i, m),
            "cnot" => self.int1(i, m, I1::Cnot, I1::Cnot),
            "popc" => self.count_bits(i, m, I1::Popc, I1::Popc),
            "clz" => self.count_bits(i, m, I1::Clz, I1::Clz),
            "bfind" => {
                if m.take("shiftamt") {
                    self.count_bits(i, m, I1::BfindShiftS, I1::BfindShiftU)
                } else {
                    self.count_bits(i, m, I1::BfindS, I1::BfindU)
                }
            }
            "brev" => self.int1(i, m, I1::Brev, I1::Brev),
            "shl" | "shr" => self.shift(i, m),
            "mul24" | "mad24" => self.mul24(i, m),
            "sad" => self.sad(i, m),
            "addc" | "subc" | "madc" => self.carry(i, m),
            "bfe" | "bfi" => self.bit_field(i, m),
            "bmsk" | "szext" => self.bit_mask(i, m),
            "lop3" => self.lop3(i, m),
            "prmt" => self.prmt(i, m),
            "shf" => self.funnel(i, m),
            "dp4a" | "dp2a" => self.dot(i, m),
            "vabsdiff4" => self.differences(i, m),
            "fns" => self.fns(i, m),
            "setp" => self.setp(i, m),
            "set" => self.set(i, m),
            "selp" => self.selp(i, m),
            "slct" => self.slct(i, m),
            "copysign" | "sqrt" | "rcp" | "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh"
            | "testp" => self.float_function(i, m),
            "cvt" => self.cvt(i, m),
            "tex" => self.texture(i, m),
            "tld4" => self.texture_gather(i, m),
            "suld" | "sust" => self.surface(i, m),
            "ld" | "ldu" => self.load(i, m),
            "st" => self.store(i, m),
            "atom" => self.atom(i, m, true),
            "red" => self.atom(i, m, false),
            "cvta" => self.cvta(i, m),
            "createpolicy" => self.create_policy(i, m),
            "isspacep" => self.isspacep(i, m),
            "prefetch" | "prefetchu" | "discard" | "applypriority" => {
                m.drop_if(|_| true);
                self.push(crate::ir::Op::Nop, &[], &[], 0);
                Ok(())
            }
            "cp" => self.cp_async(i, m),
            "ldmatrix" | "stmatrix" => self.ldmatrix(i, m),
            "mma" => self.mma(i, m),
            "wmma" => self.wmma(i, m),
            "mbarrier" => self.mbarrier(i, m),
            "shfl" => self.shfl(i, m),
            "vote" => self.vote(i, m),
            "match" => self.match_(i, m),
            "redux" => self.redux(i, m),
            "activemask" | "elect" => self.activemask(i, m),
            "bar" | "barrier" => self.bar(i, m),
            "membar" | "fence" => {
                m.drop_if(|_| true);
                self.push(crate::ir::Op::Fence, &[], &[], 0);
                Ok(())
            }
            "nanosleep" => {
                m.ty()?;
                self.push(crate::ir::Op::Nanosleep, &[], &[], 0);
                Ok(())
            }
            "alloca" | "stacksave" | "stackrestore" => self.stack(i, m),
            _ => self.control(i, m),
        }
    }

    fn control(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        match i.op {
            "bra" => self.bra(i, m),
            "brx" => self.brx(i, m),
            "call" => self.call(i, m),
            "ret" => self.ret(i, m),
            "exit" => {
                self.push(crate::ir::Op::Exit, &[], &[], 0);
                Ok(())
            }
            "trap" | "brkpt" => {
                self.push(crate::ir::Op::Trap, &[], &[], 0);
                Ok(())
            }
            "pmevent" | "griddepcontrol" | "setmaxnreg" => {
                m.drop_if(|_| true);
                self.push(crate::ir::Op::Nop, &[], &[], 0);
                Ok(())
            }
            "wgmma" | "tcgen05" => {
                Err(gap("matrix instructions of warpgroups and tensor memory are not supported"))
            }
            "txq" => Err(gap("queries of textures are not supported by the emulator")),
            "sured" | "suq" => {
                Err(gap("reductions on surfaces and queries are not supported by the emulator"))
            }
            "mapa" | "getctarank" | "multimem" => {
                Err(gap("thread block clusters and multicast are not supported by the emulator"))
            }
            other if isa::is_instruction(other) => {
                Err(gap(format!("instruction `{other}` is not supported by the emulator")))
            }
            other => Err(format!("PTX has no instruction `{other}`").into()),
        }
    }

    /// Lowers instructions that exist for both integers and floating-point numbers.
    fn either(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let float = i.types().any(|t| t.float() || matches!(t, Type::F16x2 | Type::Bf16x2));
        if float {
            return self.float(i, m);
        }
        match i.op {
            "add" if m.take("sat") => self.int2(i, m, I2::AddSat, I2::AddSat),
            "sub" if m.take("sat") => self.int2(i, m, I2::SubSat, I2::SubSat),
            "add" | "sub" if i.has("cc") => self.carry(i, m),
            "mad" if i.has("cc") => self.carry(i, m),
            "add" => self.int2(i, m, I2::Add, I2::Add),
            "sub" => self.int2(i, m, I2::Sub, I2::Sub),
            "div" => self.int2(i, m, I2::DivS, I2::DivU),
            "min" | "max" => self.min_max(i, m),
            "neg" => self.int1(i, m, I1::Neg, I1::Neg),
            "abs" => self.int1(i, m, I1::Abs, I1::Abs),
            "mul" => self.mul(i, m),
            "mad" => self.mad(i, m),
            _ => Err("it has no supported type".into()),
        }
    }
}
