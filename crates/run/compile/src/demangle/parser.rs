//! Recursive-descent parser of the mangling grammar.

use std::rc::Rc;

use super::types::{Builtin, Function, Type, builtin, builtin_after_d, write_list};
use crate::ctype::CType;

/// Maximum nesting depth of a symbol's constructs.
const MAX_DEPTH: usize = 64;

/// Maximum number of entries that a symbol may add to the substitution table.
const MAX_SUBSTITUTIONS: usize = 1024;

pub(super) struct Parser<'a> {
    rest: &'a str,
    substitutions: Vec<Type>,
    /// Arguments of the function's own template. `T_`, `T0_` … refer to them.
    template_args: Vec<Type>,
    depth: usize,
}

/// A parsed name. If it ends with template arguments, it includes them.
struct Name {
    text: Rc<str>,
    args: Option<Vec<Type>>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(rest: &'a str) -> Self {
        Self { rest, substitutions: Vec::new(), template_args: Vec::new(), depth: 0 }
    }

    /// Parses `<encoding> ::= <name> <bare-function-type>`, which must extend to the end of the
    /// symbol.
    pub(super) fn function(mut self) -> Option<Function> {
        let name = self.name()?;
        let template = name.args.is_some();
        self.template_args = name.args.unwrap_or_default();
        if template {
            // The symbol of a template instance contains the return type.
            self.parse_type()?;
        }
        let mut params = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with('.') {
            params.push(self.parse_type()?);
        }
        Some(Function {
            name: name.text.to_string(),
            template_args: self.template_args,
            params: without_void(flatten(params)),
        })
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.rest.as_bytes().first()?;
        self.rest = &self.rest[1..];
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.rest.as_bytes().first().copied()
    }

    fn remember(&mut self, entry: Type) -> Option<()> {
        if self.substitutions.len() >= MAX_SUBSTITUTIONS {
            return None;
        }
        self.substitutions.push(entry);
        Some(())
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses a `<name>` of a function or of a type.
    fn name(&mut self) -> Option<Name> {
        if self.eat("N") {
            return self.nested(Self::nested_name);
        }
        let (text, substituted) = match self.peek()? {
            b'S' if !self.rest.starts_with("St") => (self.substitution()?.written()?.into(), true),
            _ => {
                let std = self.eat("St");
                let id = self.source_name()?;
                (if std { format!("std::{id}").into() } else { Rc::from(id) }, false)
            }
        };
        if self.peek() != Some(b'I') {
            return Some(Name { text, args: None });
        }
        if !substituted {
            self.remember(Type::Named(Rc::clone(&text)))?;
        }
        let args = self.template_arg_list()?;
        Some(Name { text: with_args(&text, &args)?.into(), args: Some(args) })
    }

    /// Parses a nested name after `N`, up to and including `E`. The caller must enter the whole
    /// name into the substitution table.
    fn nested_name(&mut self) -> Option<Name> {
        while self.eat("K") || self.eat("V") || self.eat("r") {}
        let mut text = String::new();
        let mut args = None;
        loop {
            let mut fresh = true;
            match self.peek()? {
                b'E' => {
                    self.next();
                    return (!text.is_empty()).then(|| Name { text: text.into(), args });
                }
                b'S' if text.is_empty() && self.eat("St") => {
                    text.push_str("std");
                    continue;
                }
                b'S' if text.is_empty() => {
                    text = self.substitution()?.written()?;
                    fresh = false;
                }
                b'T' if text.is_empty() => text = self.template_param()?.written()?,
                b'I' => {
                    let list = self.template_arg_list()?;
                    text = with_args(&text, &list)?;
                    args = Some(list);
                }
                _ => {
                    let id = self.source_name()?;
                    if !text.is_empty() {
                        text.push_str("::");
                    }
                    text.push_str(&id);
                    args = None;
                }
            }
            if text.len() > super::MAX_SYMBOL {
                return None;
            }
            if fresh && self.peek()? != b'E' {
                self.remember(Type::Named(text.as_str().into()))?;
            }
        }
    }

    /// Parses `<source-name> ::= <length> <identifier>`. Unnamed namespaces become `(anonymous
    /// namespace)`.
    fn source_name(&mut self) -> Option<String> {
        self.eat("L");
        let length = self.number()?;
        let id = self.rest.get(..length)?;
        self.rest = &self.rest[length..];
        if length == 0 {
            return None;
        }
        let unnamed = id.starts_with("_GLOBAL__N_");
        Some(if unnamed { "(anonymous namespace)".into() } else { id.to_owned() })
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest.get(..digits)?.parse().ok()?;
        self.rest = &self.rest[digits..];
        Some(number)
    }

    /// Parses a sequence number: `_` is 0, `0_` is 1, … in base 36.
    fn sequence(&mut self) -> Option<usize> {
        let end = self.rest.find('_')?;
        let digits = &self.rest[..end];
        let index = if digits.is_empty() {
            0
        } else if digits.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()) {
            usize::from_str_radix(digits, 36).ok()?.checked_add(1)?
        } else {
            return None;
        };
        self.rest = &self.rest[end + 1..];
        Some(index)
    }

    fn substitution(&mut self) -> Option<Type> {
        if !self.eat("S") {
            return None;
        }
        let known = match self.peek()? {
            b'a' => "std::allocator",
            b'b' => "std::basic_string",
            b's' => "std::string",
            b'i' => "std::istream",
            b'o' => "std::ostream",
            b'd' => "std::iostream",
            _ => {
                let index = self.sequence()?;
                return self.substitutions.get(index).cloned();
            }
        };
        self.next();
        Some(Type::Named(known.into()))
    }

    fn template_param(&mut self) -> Option<Type> {
        if !self.eat("T") {
            return None;
        }
        // `T_` is the first argument. The digits are decimal but are read in base 36. A number
        // above 9 thus becomes at least 36, beyond any real list of arguments, and gives `None`.
        let index = self.sequence()?;
        self.template_args.get(index).cloned()
    }

    /// Parses `I <template-arg>* E`.
    fn template_arg_list(&mut self) -> Option<Vec<Type>> {
        if !self.eat("I") {
            return None;
        }
        self.nested(Self::template_args)
    }

    fn template_args(&mut self) -> Option<Vec<Type>> {
        let mut args = Vec::new();
        while !self.eat("E") {
            let arg = match self.peek()? {
                b'L' => self.literal()?,
                b'J' => {
                    self.next();
                    Type::Pack(Rc::new(self.nested(Self::template_args)?))
                }
                b'X' => return None,
                _ => self.parse_type()?,
            };
            args.push(arg);
        }
        Some(args)
    }

    /// Parses `L <type> <value> E`.
    fn literal(&mut self) -> Option<Type> {
        self.next();
        if self.peek() == Some(b'_') {
            return None;
        }
        let kind = self.parse_type()?;
        let end = self.rest.find('E')?;
        let digits = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        let plain = digits.strip_prefix('n').unwrap_or(digits);
        if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let is_bool = matches!(&kind, Type::Builtin(b) if b.ctype == Some(CType::Bool));
        Some(Type::Value(match (is_bool, digits) {
            (true, "0") => "false".into(),
            (true, "1") => "true".into(),
            _ => digits.replace('n', "-").into(),
        }))
    }

    fn parse_type(&mut self) -> Option<Type> {
        self.nested(Self::type_here)
    }

    fn type_here(&mut self) -> Option<Type> {
        let parsed = match self.peek()? {
            b'r' | b'V' | b'K' => self.qualified()?,
            b'P' => {
                self.next();
                Type::Pointer(Rc::new(self.parse_type()?))
            }
            b'R' | b'O' => {
                self.next();
                Type::Reference(Rc::new(self.parse_type()?))
            }
            b'F' => self.function_type()?,
            b'A' => {
                self.next();
                let end = self.rest.find('_')?;
                let extent = self.rest[..end].to_owned();
                if !extent.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                self.rest = &self.rest[end + 1..];
                Type::Array(Rc::new(self.parse_type()?), extent)
            }
            b'T' => self.template_param()?,
            b'S' if !self.rest.starts_with("St") => {
                let known = self.substitution()?;
                if self.peek() != Some(b'I') {
                    return Some(known);
                }
                let args = self.template_arg_list()?;
                Type::Named(with_args(&known.written()?, &args)?.into())
            }
            b'u' => {
                self.next();
                Type::Named(self.source_name()?.into())
            }
            b'D' => return self.type_after_d(),
            b'N' | b'S' | b'0'..=b'9' => Type::Named(self.name()?.text),
            code => {
                self.next();
                return builtin(code);
            }
        };
        self.remember(parsed.clone())?;
        Some(parsed)
    }

    fn qualified(&mut self) -> Option<Type> {
        let mut is_const = false;
        while let Some(byte @ (b'r' | b'V' | b'K')) = self.peek() {
            is_const |= byte == b'K';
            self.next();
        }
        Some(Type::Qualified { is_const, inner: Rc::new(self.parse_type()?) })
    }

    /// Parses `F [Y] <return type> <parameter types> E`.
    fn function_type(&mut self) -> Option<Type> {
        self.next();
        self.eat("Y");
        self.parse_type()?;
        let mut params = Vec::new();
        while !self.eat("E") {
            params.push(self.parse_type()?);
        }
        Some(Type::Function(Rc::new(without_void(flatten(params)))))
    }

    fn type_after_d(&mut self) -> Option<Type> {
        self.next();
        if self.eat("p") {
            let pack = self.parse_type()?;
            self.remember(pack.clone())?;
            return Some(pack);
        }
        if self.eat("F16b") {
            return Some(Type::Builtin(Builtin { name: "__bf16", ctype: Some(CType::Bf16) }));
        }
        if self.eat("F16_") {
            return Some(Type::Builtin(Builtin { name: "_Float16", ctype: Some(CType::F16) }));
        }
        let code = self.next()?;
        builtin_after_d(code)
    }
}

fn with_args(name: &str, args: &[Type]) -> Option<String> {
    let mut text = format!("{name}<");
    write_list(args, &mut text, 0)?;
    text.push('>');
    Some(text)
}

/// Replaces each parameter pack by its members.
fn flatten(params: Vec<Type>) -> Vec<Type> {
    let mut flat = Vec::with_capacity(params.len());
    for param in params {
        match param {
            Type::Pack(items) => flat.extend(items.iter().cloned()),
            other => flat.push(other),
        }
    }
    flat
}

/// Removes the single `void` of an empty parameter list.
fn without_void(params: Vec<Type>) -> Vec<Type> {
    match params.as_slice() {
        [Type::Builtin(only)] if only.name == "void" => Vec::new(),
        _ => params,
    }
}
