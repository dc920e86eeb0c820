//! Lowers branches, calls and barriers.

use super::Reason;
use super::func::Lower;
use super::mods::Mods;
use super::names::{Place, V};
use crate::ir::{Bar, Builtin, CallSite, Class, Op};
use crate::ptx::{Instr, Operand, Type};

fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "vprintf" => Builtin::Vprintf,
        "__assertfail" => Builtin::AssertFail,
        "malloc" => Builtin::Malloc,
        "free" => Builtin::Free,
        _ => return None,
    })
}

impl<'a> Lower<'_, '_, '_, 'a> {
    pub(super) fn bra(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.take("uni");
        self.operands(i, 1)?;
        let Operand::Name(label) = self.arg(i, 0)? else {
            return Err("the target is not a label".into());
        };
        let at = self.push(Op::Bra, &[], &[], 0);
        self.branch_to(at, label);
        Ok(())
    }

    pub(super) fn brx(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.take("uni");
        if !m.take("idx") {
            return Err("only `brx.idx` is supported".into());
        }
        self.operands(i, 2)?;
        let index = self.source(self.arg(i, 0)?, Type::U32)?;
        let Operand::Name(table) = self.arg(i, 1)? else {
            return Err("the table is not a name".into());
        };
        let at = self.push(Op::BrxIdx, &[], &[index], 0);
        self.branch_to(at, table);
        Ok(())
    }

    pub(super) fn ret(&mut self, _i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.take("uni");
        self.push(if self.entry { Op::Exit } else { Op::Ret }, &[], &[], 0);
        Ok(())
    }

    /// Returns offsets and sizes of variables in the frame.
    fn frame_list(&mut self, operands: &[Operand<'a>]) -> Reason<Vec<(u32, u32)>> {
        let mut out = Vec::new();
        for o in operands {
            let Operand::Name(name) = o else {
                return Err("arguments of a call must be `.param` variables".into());
            };
            match self.place(name) {
                Some(Place::Frame(at, bytes)) => out.push((at, bytes)),
                _ => {
                    return Err(
                        format!("`{name}` is not a `.param` variable of this function").into()
                    );
                }
            }
        }
        Ok(out)
    }

    pub(super) fn call(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.take("uni");
        let mut operands = &i.operands[..];
        let mut site = CallSite::default();
        if let [Operand::List(rets), rest @ ..] = operands {
            site.rets = self.frame_list(rets)?;
            operands = rest;
        }
        let [Operand::Name(callee), rest @ ..] = operands else {
            return Err("the function to call is missing".into());
        };
        operands = rest;
        if let [Operand::List(args), rest @ ..] = operands {
            site.args = self.frame_list(args)?;
            operands = rest;
        }
        if operands.len() > 1 {
            return Err("it has too many operands".into());
        }
        let index = self.kernel.code.calls.len() as i64;
        if let Some((_, v)) = self.register(callee) {
            if v.0 != Class::W64 {
                return Err(format!("`{callee}` cannot hold the address of a function").into());
            }
            self.kernel.indirect = true;
            self.kernel.code.calls.push(site);
            self.push(Op::CallIndirect, &[], &[v], index);
            return Ok(());
        }
        let unit = self.kernel.env.unit;
        let Some(&f) = self.kernel.env.funcs.get(callee) else {
            return Err(format!("function `{callee}` is not declared").into());
        };
        let func = &unit.funcs[f];
        if func.body.is_none() {
            let Some(b) = builtin(callee) else {
                return Err(format!(
                    "function `{callee}` has no body here, and the emulator does not provide it"
                )
                .into());
            };
            check_builtin(b, &site)?;
            self.kernel.code.calls.push(site);
            self.push(Op::Builtin(b), &[], &[], index);
            return Ok(());
        }
        let fits = |have: &[(u32, u32)], want: &[crate::ptx::Var<'_>]| {
            have.len() == want.len()
                && have.iter().zip(want).all(|((_, n), v)| u64::from(*n) == v.bytes.max(1))
        };
        if !fits(&site.args, &func.params) || !fits(&site.rets, &func.rets) {
            return Err(format!("the arguments do not match the parameters of `{callee}`").into());
        }
        site.func = self.kernel.function(f);
        self.kernel.code.calls.push(site);
        self.push(Op::Call, &[], &[], index);
        Ok(())
    }

    pub(super) fn bar(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        m.take("cta");
        m.take("aligned");
        if m.take("cluster") {
            // A cluster has one block: a wait is a barrier of the block, and an arrival has no
            // effect.
            m.drop_if(|_| true);
            let zero = (Class::W32, self.kernel.k32(0));
            if i.has("wait") {
                self.push(Op::Bar(Bar::Sync), &[], &[zero, zero], 0);
            } else {
                self.push(Op::Nop, &[], &[], 0);
            }
            return Ok(());
        }
        if m.take("warp") {
            if !m.take("sync") {
                return Err("`bar.warp` needs `.sync`".into());
            }
            let mask = self.source(self.arg(i, 0)?, Type::B32)?;
            self.push(Op::SyncWarp, &[], &[mask], 0);
            return Ok(());
        }
        if m.take("red") {
            return self.bar_red(i, m);
        }
        let kind = if m.take("arrive") { Bar::Arrive } else { Bar::Sync };
        if kind == Bar::Sync && !m.take("sync") {
            return Err("it needs `.sync`, `.arrive` or `.red`".into());
        }
        let id = self.source(self.arg(i, 0)?, Type::U32)?;
        let count = match i.operands.get(1) {
            Some(o) => self.source(o, Type::U32)?,
            None => (Class::W32, self.kernel.k32(0)),
        };
        self.push(Op::Bar(kind), &[], &[id, count], 0);
        Ok(())
    }

    fn bar_red(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let kinds = [("popc", Bar::Popc), ("and", Bar::And), ("or", Bar::Or)];
        let Some(kind) = m.one_of(&kinds) else {
            return Err("`.popc`, `.and` or `.or` is missing".into());
        };
        let ty = m.ty()?;
        let n = i.operands.len();
        if !(3..=4).contains(&n) {
            return Err(format!("it has {n} operands instead of 3 or 4").into());
        }
        let id = self.source(self.arg(i, 1)?, Type::U32)?;
        let count = match n {
            4 => self.source(self.arg(i, 2)?, Type::U32)?,
            _ => (Class::W32, self.kernel.k32(0)),
        };
        let p = self.source(self.arg(i, n - 1)?, Type::Pred)?;
        let ty = if kind == Bar::Popc { Type::U32 } else { ty };
        let d: V = self.dest(self.arg(i, 0)?, ty)?;
        if (kind == Bar::Popc) == (d.0 == Class::P) {
            return Err("the result has the wrong type".into());
        }
        self.push(Op::Bar(kind), &[d], &[id, count, p], 0);
        Ok(())
    }
}

/// Returns an error unless the arguments of a runtime function have the sizes that the executor
/// reads.
fn check_builtin(b: Builtin, site: &CallSite) -> Reason<()> {
    let sizes: Vec<u32> = site.args.iter().map(|(_, n)| *n).collect();
    let (args, rets): (&[u32], usize) = match b {
        Builtin::Vprintf => (&[8, 8], 1),
        Builtin::AssertFail => (&[8, 8, 4, 8, 8], 0),
        Builtin::Malloc => (&[8], 1),
        Builtin::Free => (&[8], 0),
    };
    if sizes != args || site.rets.len() > rets {
        return Err("the arguments do not match those of the runtime function".into());
    }
    Ok(())
}
