//! Parses declarations of variables and parameters.

use super::ast::{Init, InitItem, InitValue, Symbol};
use super::cursor::{Cursor, Result};
use super::{Operand, Space, Type, Var, isa};

/// Maximum size of a variable, bytes.
const MAX_VARIABLE: u64 = 1 << 34;

/// The part of a declaration before the names.
#[derive(Clone, Copy)]
pub(super) struct Declared {
    pub(super) ty: Type,
    /// Alignment in bytes, at least that of the type.
    pub(super) align: u32,
    /// Number of elements of the vector type; 1 for a scalar.
    pub(super) vector: u32,
    /// Whether the attribute `.managed` is present.
    pub(super) managed: bool,
}

impl<'a> Cursor<'a> {
    /// Parses a declaration after `.global`, `.shared`, … up to the `;`. It may declare several
    /// variables.
    pub(super) fn variables(&mut self, space: Space, external: bool) -> Result<Vec<Var<'a>>> {
        let declared = self.declarator_type()?;
        let mut out = vec![self.variable(space, declared, external)?];
        while self.eat(b',') {
            out.push(self.variable(space, declared, external)?);
        }
        self.expect(b';')?;
        Ok(out)
    }

    /// Parses the type, the alignment and the vector length of a declaration, for example `.align 8
    /// .v2 .b8`.
    pub(super) fn declarator_type(&mut self) -> Result<Declared> {
        let (mut align, mut vector, mut managed) = (0, 1, false);
        loop {
            let word = self.dotted()?;
            match word {
                "align" => {
                    align = self.u32()?;
                    if !align.is_power_of_two() || align > 1 << 16 {
                        return self.error("an alignment must be a power of 2 up to 65536");
                    }
                }
                "v2" => vector = 2,
                "v4" => vector = 4,
                // Properties of pointers and attributes of variables.
                "ptr" | "global" | "const" | "shared" | "local" => {}
                "attribute" => managed |= self.attribute()?,
                _ => match Type::parse(word) {
                    Some(ty) => {
                        self.pointer_notes(&mut align)?;
                        let align = align.max(ty.bytes() * vector);
                        return Ok(Declared { ty, align, vector, managed });
                    }
                    None if isa::is_foreign_type(word) => {
                        return self.lacks(format!("the type `.{word}` is not supported"));
                    }
                    None => return self.error(format!("`.{word}` is not a type")),
                },
            }
        }
    }

    /// Parses attributes, for example `(.managed, .unified(1, 2))`. Returns whether they include
    /// `.managed`.
    fn attribute(&mut self) -> Result<bool> {
        self.expect(b'(')?;
        let mut managed = false;
        loop {
            match self.dotted()? {
                "managed" => managed = true,
                "unified" => self.skip_past(b')')?,
                other => return self.lacks(format!("the attribute `.{other}` is not supported")),
            }
            if self.eat(b')') {
                return Ok(managed);
            }
            self.expect(b',')?;
        }
    }

    /// Parses the properties of a pointer after the type of a parameter, for example `.ptr .global .align
    /// 8`.
    fn pointer_notes(&mut self, _align: &mut u32) -> Result<()> {
        while self.is(b'.') {
            match self.dotted()? {
                "align" => {
                    self.u32()?;
                }
                "ptr" | "global" | "const" | "shared" | "local" => {}
                other => return self.error(format!("`.{other}` is not expected here")),
            }
        }
        Ok(())
    }

    pub(super) fn variable(
        &mut self,
        space: Space,
        Declared { ty, align, vector, managed }: Declared,
        external: bool,
    ) -> Result<Var<'a>> {
        let line = self.now.line;
        let name = self.word()?;
        let (mut count, mut open) = (u64::from(vector), false);
        while self.eat(b'[') {
            if self.eat(b']') {
                open = true;
                continue;
            }
            let n = u64::from(self.u32()?);
            self.expect(b']')?;
            count = match count.checked_mul(n).filter(|c| *c <= MAX_VARIABLE) {
                Some(c) => c,
                None => return self.lacks(format!("`{name}` is larger than 16 GiB")),
            };
        }
        let mut bytes = count * u64::from(ty.bytes());
        let init = if self.eat(b'=') { Some(self.initialiser(ty)?) } else { None };
        if open {
            let last = init.as_ref().and_then(|i| i.items.last());
            bytes = last.map_or(0, |(at, _)| at + u64::from(ty.bytes()));
        } else if init.iter().flat_map(|i| &i.items).any(|(at, _)| *at >= bytes) {
            return self.error(format!("`{name}` has more initialisers than elements"));
        }
        let external = external || (open && init.is_none());
        Ok(Var { name, space, ty, align, bytes, external, managed, init, line })
    }

    fn initialiser(&mut self, ty: Type) -> Result<Init<'a>> {
        let mut items = Vec::new();
        self.init_value(ty, &mut items, &mut 0)?;
        Ok(Init { items })
    }

    fn init_value(&mut self, ty: Type, out: &mut Vec<InitItem<'a>>, at: &mut u64) -> Result<()> {
        if self.eat(b'{') {
            return self.nested(|c| {
                let mut first = true;
                while !c.eat(b'}') {
                    if !first {
                        c.expect(b',')?;
                    }
                    first = false;
                    c.init_value(ty, out, at)?;
                }
                Ok(())
            });
        }
        let (value, bytes) = self.init_scalar(ty)?;
        out.push((*at, value));
        *at += bytes;
        Ok(())
    }

    fn init_scalar(&mut self, ty: Type) -> Result<(InitValue<'a>, u64)> {
        let bytes = u64::from(ty.bytes());
        let value = match self.operand()? {
            Operand::Int(v) if ty.float() => {
                if ty == Type::F64 {
                    (v as f64).to_bits()
                } else {
                    u64::from((v as f32).to_bits())
                }
            }
            Operand::Int(v) => v as u64,
            Operand::F32(v) if ty == Type::F64 => f64::from(f32::from_bits(v)).to_bits(),
            Operand::F32(v) => u64::from(v),
            Operand::F64(v) if ty == Type::F32 => u64::from((f64::from_bits(v) as f32).to_bits()),
            Operand::F64(v) => v,
            Operand::Name(name) if self.is(b'(') => {
                if name != "generic" {
                    let text = format!("`{name}(…)` in an initialiser is not supported");
                    return if name == "mask" { self.lacks(text) } else { self.error(text) };
                }
                self.expect(b'(')?;
                let name = self.word()?;
                let inner = self.offset()?;
                self.expect(b')')?;
                let offset = inner.wrapping_add(self.offset()?);
                return Ok((InitValue::Symbol(Symbol { name, offset }), bytes));
            }
            Operand::Name(name) => {
                let symbol = Symbol { name, offset: 0 };
                return Ok((InitValue::Symbol(symbol), bytes));
            }
            Operand::Symbol(symbol) => return Ok((InitValue::Symbol(symbol), bytes)),
            _ => return self.error("not a valid initialiser"),
        };
        Ok((InitValue::Bits(value), bytes))
    }
}
