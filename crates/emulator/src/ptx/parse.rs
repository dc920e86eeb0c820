//! Parses modules, functions and statements.

use super::ast::{Func, FuncKind, Instr, Operand, Prototype, Stmt, StmtKind, Unit, Var};
use super::cursor::{Cursor, Result};
use super::decl::Declared;
use super::lex::Kind;
use super::{Space, Type, isa};
use crate::ptx::LoadError;

/// Maximum nesting of lists, vectors and blocks.
pub(super) const MAX_DEPTH: u32 = 64;
/// Maximum length of the text, bytes.
const MAX_TEXT: usize = 64 << 20;

/// Directives that may follow the declaration of an external function.
const AFTER_DECLARATION: [&str; 10] =
    ["extern", "visible", "weak", "common", "global", "const", "shared", "local", "entry", "func"];

/// Parses a PTX module.
pub(crate) fn parse(text: &str) -> std::result::Result<Unit<'_>, LoadError> {
    if text.len() > MAX_TEXT {
        let reason = format!("{} bytes of PTX; the limit is {MAX_TEXT}", text.len());
        return Err(LoadError::gap(0, String::new(), reason));
    }
    let mut cursor = Cursor::new(text);
    let mut unit = Unit::default();
    while !cursor.at_end() {
        cursor.top_level(&mut unit)?;
    }
    if unit.version == 0 {
        return cursor.error("not a PTX module: no `.version`");
    }
    Ok(unit)
}

impl<'a> Cursor<'a> {
    fn top_level(&mut self, unit: &mut Unit<'a>) -> Result<()> {
        if self.eat(b';') {
            return Ok(());
        }
        let mut external = false;
        loop {
            let word = self.dotted()?;
            match word {
                "version" => return self.version(unit),
                "target" => return self.target(unit),
                "address_size" => {
                    if self.u32()? != 64 {
                        return self.error("only `.address_size 64` is supported");
                    }
                    return Ok(());
                }
                "file" => return self.file(unit),
                "section" => return self.skip_past(b'}'),
                "loc" => {
                    self.loc()?;
                    return Ok(());
                }
                "pragma" | "alias" => return self.skip_past(b';'),
                "extern" => external = true,
                "visible" | "weak" | "common" => {}
                "entry" => {
                    unit.funcs.push(self.function(FuncKind::Entry, false)?);
                    return Ok(());
                }
                "func" => {
                    unit.funcs.push(self.function(FuncKind::Func, external)?);
                    return Ok(());
                }
                "global" | "const" | "shared" | "local" => {
                    let space = Space::parse(word).unwrap_or(Space::Global);
                    unit.vars.extend(self.variables(space, external)?);
                    return Ok(());
                }
                other => return self.directive(other),
            }
        }
    }

    fn version(&mut self, unit: &mut Unit<'a>) -> Result<()> {
        let text = self.word()?;
        let parts = text.split_once('.');
        let number =
            parts.and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
        match number {
            Some((major @ 1..=99, minor @ 0..=9)) => {
                unit.version = major * 10 + minor;
                Ok(())
            }
            _ => self.error(format!("`{text}` is not a PTX version")),
        }
    }

    fn target(&mut self, unit: &mut Unit<'a>) -> Result<()> {
        loop {
            let word = self.word()?;
            if let Some(sm) = word.strip_prefix("sm_") {
                let digits = sm.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                match digits.parse::<u32>() {
                    Ok(sm) if sm < 10_000 => unit.target = sm,
                    _ => return self.error(format!("`{word}` is not a PTX target")),
                }
            }
            if !self.eat(b',') {
                return Ok(());
            }
        }
    }

    fn file(&mut self, unit: &mut Unit<'a>) -> Result<()> {
        let number = self.u32()?;
        if self.now.kind != Kind::Str {
            return self.error("expected a file name");
        }
        unit.files.push((number, self.next().text.to_string()));
        while self.eat(b',') {
            self.word()?;
        }
        Ok(())
    }

    /// Parses the part after `.loc`: `1 4 28[, function_name $x, inlined_at 1 4 28]`. Returns the
    /// file number and the line.
    fn loc(&mut self) -> Result<(u32, u32)> {
        let position = (self.u32()?, self.u32()?);
        self.u32()?;
        while self.eat(b',') {
            match self.word()? {
                "function_name" => {
                    self.word()?;
                    self.offset()?;
                }
                "inlined_at" => {
                    self.u32()?;
                    self.u32()?;
                    self.u32()?;
                }
                other => return self.error(format!("`{other}` in `.loc` is not known")),
            }
        }
        Ok(position)
    }

    fn function(&mut self, kind: FuncKind, external: bool) -> Result<Func<'a>> {
        let rets = if self.is(b'(') { self.parameters()? } else { Vec::new() };
        let line = self.now.line;
        let name = self.word()?;
        let params = if self.is(b'(') { self.parameters()? } else { Vec::new() };
        let mut func = Func { kind, name, rets, params, max_threads: None, line, body: None };
        loop {
            if self.eat(b';') {
                return Ok(func);
            }
            if self.is(b'{') {
                func.body = Some(self.body()?);
                return Ok(func);
            }
            // `ptxas` accepts a declaration without a semicolon.
            if external && AFTER_DECLARATION.iter().any(|word| self.is_dot(word)) {
                return Ok(func);
            }
            self.function_directive(&mut func)?;
        }
    }

    fn function_directive(&mut self, func: &mut Func<'a>) -> Result<()> {
        let word = self.dotted()?;
        match word {
            "maxntid" | "reqntid" => {
                let mut product = self.u32()?;
                while self.eat(b',') {
                    product = product.saturating_mul(self.u32()?);
                }
                func.max_threads = Some(product);
            }
            "minnctapersm" | "maxnctapersm" | "maxnreg" | "maxclusterrank" => {
                self.u32()?;
            }
            "noreturn" | "noinline" => {}
            "unified" => self.skip_past(b')')?,
            "pragma" => self.skip_past(b';')?,
            // A cluster of one block is equivalent to the block.
            "explicitcluster" => {}
            "reqnctapercluster" => {
                let mut blocks = self.u32()?;
                while self.eat(b',') {
                    blocks = blocks.saturating_mul(self.u32()?);
                }
                if blocks != 1 {
                    return self.lacks("thread block clusters are not supported");
                }
            }
            other => return self.directive(other),
        }
        Ok(())
    }

    /// Returns the error for a directive that is not supported in this place.
    fn directive<T>(&self, name: &str) -> Result<T> {
        if isa::is_directive(name) {
            return self.lacks(format!("directive `.{name}` is not supported here"));
        }
        self.error(format!("`.{name}` is not a directive of PTX"))
    }

    /// Parses parameters, for example `(.param .u64 a, .reg .b32 b)`.
    fn parameters(&mut self) -> Result<Vec<Var<'a>>> {
        self.expect(b'(')?;
        let mut out = Vec::new();
        while !self.eat(b')') {
            if !out.is_empty() {
                self.expect(b',')?;
            }
            let word = self.dotted()?;
            let Some(space @ (Space::Param | Space::Reg)) = Space::parse(word) else {
                return self.error(format!("`.{word}` is not a parameter"));
            };
            let declared = self.declarator_type()?;
            out.push(self.variable(space, declared, false)?);
        }
        Ok(out)
    }

    fn body(&mut self) -> Result<Vec<Stmt<'a>>> {
        self.expect(b'{')?;
        let (mut depth, mut out) = (1u32, Vec::new());
        loop {
            let line = self.now.line;
            if self.at_end() {
                return self.error("the function body is not closed");
            }
            if self.eat(b';') {
                continue;
            }
            let kind = if self.eat(b'}') {
                depth -= 1;
                if depth == 0 {
                    return Ok(out);
                }
                StmtKind::Close
            } else if self.eat(b'{') {
                depth += 1;
                if depth > MAX_DEPTH {
                    return self.lacks(format!("blocks nested more than {MAX_DEPTH} levels deep"));
                }
                StmtKind::Open
            } else if self.is(b'.') {
                self.body_directive(&mut out)?;
                continue;
            } else if self.now.kind == Kind::Word && self.then.kind == Kind::Punct(b':') {
                let name = self.word()?;
                self.next();
                self.labelled(name)?
            } else {
                StmtKind::Instr(self.instruction()?)
            };
            out.push(Stmt { line, kind });
        }
    }

    /// Parses the part after `name:`: a table of targets, a prototype, or nothing.
    fn labelled(&mut self, name: &'a str) -> Result<StmtKind<'a>> {
        if self.is_dot("branchtargets") || self.is_dot("calltargets") {
            self.dotted()?;
            let mut labels = vec![self.word()?];
            while self.eat(b',') {
                labels.push(self.word()?);
            }
            self.expect(b';')?;
            return Ok(StmtKind::Targets { name, labels });
        }
        if self.is_dot("callprototype") {
            self.dotted()?;
            let rets = if self.is(b'(') { self.parameters()? } else { Vec::new() };
            self.word()?;
            let params = if self.is(b'(') { self.parameters()? } else { Vec::new() };
            self.skip_past(b';')?;
            return Ok(StmtKind::Prototype(Prototype { name, rets, params }));
        }
        Ok(StmtKind::Label(name))
    }

    fn body_directive(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        let line = self.now.line;
        let word = self.dotted()?;
        match word {
            "loc" => {
                let (file, l) = self.loc()?;
                out.push(Stmt { line, kind: StmtKind::Loc { file, line: l } });
            }
            "pragma" => self.skip_past(b';')?,
            "reg" => {
                let Declared { ty, vector, .. } = self.declarator_type()?;
                let names = self.registers()?;
                out.push(Stmt { line, kind: StmtKind::Reg { ty, vector, names } });
            }
            "local" | "shared" | "param" | "const" | "global" => {
                let space = Space::parse(word).unwrap_or(Space::Local);
                for var in self.variables(space, false)? {
                    out.push(Stmt { line, kind: StmtKind::Var(var) });
                }
            }
            "extern" => {
                let space = Space::parse(self.dotted()?);
                let Some(space) = space else {
                    return self.error("expected a state space");
                };
                for var in self.variables(space, true)? {
                    out.push(Stmt { line, kind: StmtKind::Var(var) });
                }
            }
            other => return self.directive(other),
        }
        Ok(())
    }

    fn registers(&mut self) -> Result<Vec<(&'a str, Option<u32>)>> {
        let mut names = Vec::new();
        loop {
            let name = self.word()?;
            let mut count = None;
            if self.eat(b'<') {
                count = Some(self.u32()?);
                self.expect(b'>')?;
            }
            names.push((name, count));
            if self.eat(b';') {
                return Ok(names);
            }
            self.expect(b',')?;
        }
    }

    /// Parses operands up to the semicolon.
    fn operands_of(&mut self) -> Result<Vec<Operand<'a>>> {
        let mut operands = Vec::new();
        while !self.is(b';') {
            if !operands.is_empty() {
                self.expect(b',')?;
            }
            operands.push(self.operand()?);
        }
        Ok(operands)
    }

    fn instruction(&mut self) -> Result<Instr<'a>> {
        let from = self.now.at;
        let guard = if self.eat(b'@') {
            let not = self.eat(b'!');
            Some((self.word()?, not))
        } else {
            None
        };
        let op = self.word()?;
        let mut mods = Vec::new();
        while self.is(b'.') {
            mods.push(self.dotted()?);
        }
        self.samples = matches!(op, "tex" | "tld4" | "suld" | "sust");
        let operands = self.operands_of().map_err(|error| {
            // Instructions on tensors, textures and similar objects have other forms of operands.
            let foreign = isa::has_foreign_operands(op);
            let gap = foreign && (error.gap || !isa::has_modifiers(op));
            LoadError { gap, ..error }
        })?;
        let text = self.since(from);
        self.expect(b';')?;
        Ok(Instr { guard, op, mods, operands, text, at: from })
    }
}

impl Instr<'_> {
    /// Returns the types among the modifiers, in order.
    pub(crate) fn types(&self) -> impl Iterator<Item = Type> + '_ {
        self.mods.iter().filter_map(|m| Type::parse(m))
    }

    /// Returns whether `name` is among the modifiers.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.mods.contains(&name)
    }
}
