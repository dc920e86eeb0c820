//! Lowers one function: statements, scopes, labels, and the emission of instructions.

use std::collections::HashMap;

use super::mods::Mods;
use super::names::{Place, Scope, V};
use super::{Kernel, Problem, Reason, alloc, gap, layout};
use crate::ir::{Class, Inst, NO_GUARD, Op, Role, SourceLine};
use crate::ptx::LoadError;
use crate::ptx::{Func, FuncKind, Instr, Space, Stmt, StmtKind, Var, isa};

/// Maximum local memory of one frame, bytes.
pub(super) const MAX_FRAME: u32 = 512 << 10;

/// An instruction whose registers are not yet assigned to slots.
pub(crate) struct Draft {
    pub(crate) inst: Inst,
    /// Roles of the fields d, e, a, b, c and s.
    pub(crate) roles: [Role; 6],
    /// Register lists of the instruction: the index of each in the code's lists, and the role of
    /// its registers.
    pub(crate) lists: Vec<(u32, Role)>,
    pub(crate) ptx_line: u32,
    pub(crate) source: SourceLine,
    /// Byte offset of the PTX instruction. Only its first instruction has it.
    pub(crate) begins: Option<u32>,
}

/// State of the lowering of a function.
pub(super) struct Lower<'k, 'e, 'u, 'a> {
    pub(super) kernel: &'k mut Kernel<'e, 'u, 'a>,
    pub(super) scopes: Vec<Scope<'a>>,
    /// The parent of each scope that has been opened.
    parents: Vec<u32>,
    pub(super) n32: u32,
    pub(super) n64: u32,
    pub(super) np: u32,
    pub(super) frame: u32,
    pub(super) entry: bool,
    drafts: Vec<Draft>,
    labels: HashMap<(u32, &'a str), u32>,
    /// Branches whose targets are not yet known: instruction, scope and label.
    pending: Vec<(u32, u32, &'a str)>,
    /// Branch tables by name: scope and labels.
    pub(super) tables: HashMap<&'a str, (u32, Vec<&'a str>)>,
    pub(super) protos: HashMap<&'a str, (Vec<u32>, Vec<u32>)>,
    guard: u32,
    line: u32,
    source: SourceLine,
    /// Byte offset of a PTX instruction that has no instruction yet.
    fresh: Option<u32>,
    /// The register of the carry flag.
    pub(super) carry: Option<V>,
}

/// Lowers `func` as function `index` of the kernel's code.
pub(super) fn lower<'a>(
    kernel: &mut Kernel<'_, '_, 'a>,
    func: &Func<'a>,
    index: usize,
) -> Result<(), LoadError> {
    let Some(body) = &func.body else {
        let reason = format!("function `{}` is called but has no body", func.name);
        return Err(LoadError::invalid(func.line, func.name.to_string(), reason));
    };
    let mut lower = Lower {
        kernel,
        scopes: vec![Scope::default()],
        parents: vec![0],
        n32: 0,
        n64: 0,
        np: 0,
        frame: 0,
        entry: func.kind == FuncKind::Entry,
        drafts: Vec::new(),
        labels: HashMap::new(),
        pending: Vec::new(),
        tables: HashMap::new(),
        protos: HashMap::new(),
        guard: NO_GUARD,
        line: func.line,
        source: SourceLine::default(),
        fresh: None,
        carry: None,
    };
    let at = |line, text: &str, problem: Problem| {
        let instruction = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let instruction = instruction.chars().take(160).collect();
        LoadError { line, instruction, reason: problem.text, gap: problem.gap }
    };
    let header = |reason| at(func.line, func.name, reason);
    let (params, rets) = lower.header(func).map_err(header)?;
    for stmt in body {
        let text = if let StmtKind::Instr(i) = &stmt.kind { i.text } else { "" };
        lower.statement(stmt).map_err(|reason| at(stmt.line, text, reason))?;
    }
    lower.line = body.last().map_or(func.line, |s| s.line);
    lower.guard = NO_GUARD;
    lower.push(if lower.entry { Op::Exit } else { Op::Ret }, &[], &[], 0);
    lower.resolve()?;
    let mut info = lower.assemble();
    info.name = func.name.to_string();
    (info.params, info.rets) = (params, rets);
    kernel.code.funcs[index] = info;
    Ok(())
}

pub(super) type Slots = Vec<(u32, u32)>;

/// Returns the problem of an instruction whose form is not supported. If the ISA does not contain
/// one of its modifiers, the problem is that modifier; otherwise it is `problem`.
fn known_words(instr: &Instr<'_>, problem: Problem) -> Problem {
    let foreign = |word: &&&str| !isa::is_modifier(instr.op, word);
    let lowered = isa::has_modifiers(instr.op);
    match instr.mods.iter().find(foreign).filter(|_| problem.gap && lowered) {
        Some(word) => Problem::from(format!("`{}` has no modifier `.{word}`", instr.op)),
        None => problem,
    }
}

impl<'a> Lower<'_, '_, '_, 'a> {
    /// Declares parameters and results. In a device function they are at the start of its frame.
    fn header(&mut self, func: &Func<'a>) -> Reason<(Slots, Slots)> {
        if let Some(v) = func.params.iter().chain(&func.rets).find(|v| v.space == Space::Reg) {
            return Err(gap(format!("parameter `{}` in a register is not supported", v.name)));
        }
        if self.entry {
            let (offsets, _) = layout(&func.params);
            for (v, at) in func.params.iter().zip(offsets) {
                let at = u32::try_from(at).map_err(|_| "parameters are too large".to_string())?;
                self.declare_place(v.name, Place::KernelParam(at));
            }
            return Ok((Vec::new(), Vec::new()));
        }
        let rets = func.rets.iter().map(|v| self.frame_slot(v)).collect::<Reason<_>>()?;
        let params = func.params.iter().map(|v| self.frame_slot(v)).collect::<Reason<_>>()?;
        Ok((params, rets))
    }

    /// Declares a variable in the frame. Returns its offset and size.
    fn frame_slot(&mut self, var: &Var<'a>) -> Reason<(u32, u32)> {
        let place = self.place_frame(var)?;
        self.declare_place(var.name, place);
        match place {
            Place::Frame(at, bytes) => Ok((at, bytes)),
            _ => Err("not in the frame".into()),
        }
    }

    fn statement(&mut self, stmt: &Stmt<'a>) -> Reason<()> {
        self.line = stmt.line;
        match &stmt.kind {
            StmtKind::Open => {
                let id = self.parents.len() as u32;
                self.parents.push(self.scope_id());
                self.scopes.push(Scope { id, ..Scope::default() });
            }
            StmtKind::Close => {
                if self.scopes.len() > 1 {
                    self.scopes.pop();
                }
            }
            StmtKind::Label(name) => {
                let at = self.drafts.len() as u32;
                if self.labels.insert((self.scope_id(), name), at).is_some() {
                    return Err(format!("label `{name}` is defined twice").into());
                }
            }
            StmtKind::Reg { ty, vector, names } => {
                for (name, count) in names {
                    self.declare(name, *ty, *vector, *count)?;
                }
            }
            StmtKind::Var(var) => self.variable(var)?,
            StmtKind::Loc { file, line } => {
                // Line 0 means that code belongs to no line. The previous line is more useful.
                if *line != 0 {
                    self.source = SourceLine { file: *file, line: *line };
                }
            }
            StmtKind::Targets { name, labels } => {
                self.tables.insert(name, (self.scope_id(), labels.clone()));
            }
            StmtKind::Prototype(p) => {
                let sizes = |vars: &[Var<'_>]| vars.iter().map(|v| v.bytes as u32).collect();
                self.protos.insert(p.name, (sizes(&p.rets), sizes(&p.params)));
            }
            StmtKind::Instr(instr) => self.guarded(instr)?,
        }
        Ok(())
    }

    fn variable(&mut self, var: &Var<'a>) -> Reason<()> {
        let place = match var.space {
            Space::Local | Space::Param => self.place_frame(var)?,
            Space::Shared if var.external => {
                self.kernel.dynamic_align = self.kernel.dynamic_align.max(var.align);
                Place::DynamicShared
            }
            Space::Shared => Place::Shared(self.kernel.place_shared(var)?),
            _ => return Err(format!("`{}` cannot be declared in a function", var.name).into()),
        };
        self.declare_place(var.name, place);
        Ok(())
    }

    pub(super) fn scope_id(&self) -> u32 {
        self.scopes.last().map_or(0, |s| s.id)
    }

    fn guarded(&mut self, instr: &Instr<'a>) -> Reason<()> {
        self.guard = NO_GUARD;
        if let Some((name, not)) = instr.guard {
            match self.register(name) {
                Some((_, (Class::P, n))) => {
                    self.guard = n * 2 + u32::from(not);
                }
                _ => return Err(format!("guard `{name}` is not a predicate register").into()),
            }
        }
        self.fresh = Some(u32::try_from(instr.at).unwrap_or(u32::MAX));
        let mut mods = Mods::new(&instr.mods)?;
        self.instruction(instr, &mut mods).map_err(|problem| known_words(instr, problem))?;
        mods.finish(instr.op)
    }

    /// Emits an instruction. Returns its index in the function.
    pub(super) fn push(&mut self, op: Op, defs: &[V], uses: &[V], imm: i64) -> u32 {
        let guard = self.guard;
        let mut inst = Inst { op, guard, d: 0, e: 0, a: 0, b: 0, c: 0, s: 0, imm };
        let mut roles = [Role::None; 6];
        for (i, (class, n)) in defs.iter().enumerate() {
            *[&mut inst.d, &mut inst.e][i] = *n;
            roles[i] = Role::Def(*class);
        }
        for (i, (class, n)) in uses.iter().enumerate() {
            *[&mut inst.a, &mut inst.b, &mut inst.c, &mut inst.s][i] = *n;
            roles[2 + i] = Role::Use(*class);
        }
        self.drafts.push(Draft {
            inst,
            roles,
            lists: Vec::new(),
            ptx_line: self.line,
            source: self.source,
            begins: self.fresh.take(),
        });
        self.drafts.len() as u32 - 1
    }

    /// Adds a register list to the code, for the most recently emitted instruction. Returns its
    /// index.
    pub(super) fn list(&mut self, regs: &[V], def: bool) -> u32 {
        let index = self.kernel.code.lists.len() as u32;
        self.kernel.code.lists.push(regs.iter().map(|(_, n)| *n).collect());
        let class = regs.first().map_or(Class::W32, |(c, _)| *c);
        let role = if def { Role::Def(class) } else { Role::Use(class) };
        if let Some(draft) = self.drafts.last_mut() {
            draft.lists.push((index, role));
        }
        index
    }

    /// Returns the most recently emitted instruction.
    pub(super) fn last(&mut self) -> Option<&mut Inst> {
        self.drafts.last_mut().map(|d| &mut d.inst)
    }

    /// Makes `label` the target of instruction `at`.
    pub(super) fn branch_to(&mut self, at: u32, label: &'a str) {
        self.pending.push((at, self.scope_id(), label));
    }

    fn find_label(&self, mut scope: u32, label: &str) -> Option<u32> {
        loop {
            if let Some(at) = self.labels.get(&(scope, label)) {
                return Some(*at);
            }
            if scope == 0 {
                return None;
            }
            scope = self.parents[scope as usize];
        }
    }

    fn resolve(&mut self) -> Result<(), LoadError> {
        for (at, scope, label) in std::mem::take(&mut self.pending) {
            let draft = &self.drafts[at as usize];
            let missing = |line| {
                let reason = format!("label `{label}` is not defined");
                LoadError::invalid(line, label.to_string(), reason)
            };
            if draft.inst.op == Op::BrxIdx {
                let Some((scope, labels)) = self.tables.get(label).cloned() else {
                    return Err(missing(draft.ptx_line));
                };
                let targets = labels.iter().map(|l| self.find_label(scope, l));
                let targets: Option<Vec<u32>> = targets.collect();
                let Some(targets) = targets else {
                    return Err(missing(draft.ptx_line));
                };
                let lists = &mut self.kernel.code.lists;
                lists.push(targets);
                self.drafts[at as usize].inst.imm = lists.len() as i64 - 1;
                continue;
            }
            let Some(target) = self.find_label(scope, label) else {
                return Err(missing(draft.ptx_line));
            };
            self.drafts[at as usize].inst.imm = i64::from(target);
        }
        Ok(())
    }

    /// Assigns slots to registers and appends the function to the code.
    fn assemble(&mut self) -> crate::ir::FuncInfo {
        let code = &mut self.kernel.code;
        let counts = [self.n32, self.n64, self.np];
        alloc::drop_unread(&mut self.drafts, &code.lists, counts);
        let used = alloc::allocate(&mut self.drafts, &mut code.lists, counts);
        let entry = code.insts.len() as u32;
        for draft in &mut self.drafts {
            match draft.inst.op {
                Op::Bra => draft.inst.imm += i64::from(entry),
                Op::BrxIdx => {
                    for t in &mut code.lists[draft.inst.imm as usize] {
                        *t += entry;
                    }
                }
                _ => {}
            }
            code.insts.push(draft.inst);
            code.lines.push((draft.ptx_line, draft.source, draft.begins));
        }
        crate::ir::FuncInfo {
            entry,
            n32: used[0],
            n64: used[1],
            np: used[2],
            local: self.frame.next_multiple_of(16),
            ..crate::ir::FuncInfo::default()
        }
    }
}
