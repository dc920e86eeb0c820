//! Parses operands and numbers.

use super::Operand;
use super::ast::Symbol;
use super::cursor::{Cursor, Result};
use super::lex::Kind;

/// Returns the value of an integer literal without a sign.
pub(super) fn integer(text: &str) -> Option<i128> {
    let text = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let lower = |p: &str, q: &str| text.strip_prefix(p).or_else(|| text.strip_prefix(q));
    let value = if let Some(hex) = lower("0x", "0X") {
        u64::from_str_radix(hex, 16).ok()?
    } else if let Some(bin) = lower("0b", "0B") {
        u64::from_str_radix(bin, 2).ok()?
    } else if text.len() > 1 && text.starts_with('0') {
        u64::from_str_radix(text, 8).ok()?
    } else {
        text.parse::<u64>().ok()?
    };
    Some(i128::from(value))
}

/// Parses a literal of any kind. Returns `None` if `text` is not a literal.
fn literal(text: &str) -> Option<Operand<'static>> {
    if !text.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    let bits = |p: [&str; 2], digits: usize| {
        let hex = text.strip_prefix(p[0]).or_else(|| text.strip_prefix(p[1]))?;
        (hex.len() == digits).then(|| u64::from_str_radix(hex, 16).ok())?
    };
    if let Some(v) = bits(["0f", "0F"], 8) {
        return Some(Operand::F32(v as u32));
    }
    if let Some(v) = bits(["0d", "0D"], 16) {
        return Some(Operand::F64(v));
    }
    if text.contains('.') {
        return text.parse::<f64>().ok().map(|v| Operand::F64(v.to_bits()));
    }
    integer(text).map(Operand::Int)
}

fn negate(operand: Operand<'_>) -> Operand<'_> {
    match operand {
        Operand::Int(v) => Operand::Int(-v),
        Operand::F32(v) => Operand::F32(v ^ 1 << 31),
        Operand::F64(v) => Operand::F64(v ^ 1 << 63),
        other => other,
    }
}

/// Returns the value of a binary operation, or `None` if it does not fit in 64 bits.
fn calculate(operator: u8, a: i128, b: i128) -> Option<i128> {
    let count = || u32::try_from(b).ok().filter(|count| *count < 64);
    let value = match operator {
        b'*' => a.checked_mul(b)?,
        b'/' => a.checked_div(b)?,
        b'%' => a.checked_rem(b)?,
        b'+' => a + b,
        b'-' => a - b,
        // Bits shifted beyond the 64 of a constant are lost.
        b'<' => i128::from((a as u64) << count()?),
        b'>' => a >> count()?,
        b'&' => a & b,
        b'^' => a ^ b,
        _ => a | b,
    };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then_some(value)
}

impl<'a> Cursor<'a> {
    /// Parses a number with an optional sign.
    pub(super) fn number(&mut self) -> Result<Operand<'a>> {
        let minus = self.eat(b'-');
        if !minus {
            self.eat(b'+');
        }
        let Some(value) = literal(self.now.text).filter(|_| self.now.kind == Kind::Word) else {
            return self.error("expected a number");
        };
        self.next();
        Ok(if minus { negate(value) } else { value })
    }

    /// Parses a number, or an expression of integers, and returns its value.
    fn constant(&mut self) -> Result<Operand<'a>> {
        let first = self.term()?;
        self.expression(first, 0)
    }

    /// Parses one term of an expression, with its signs.
    fn term(&mut self) -> Result<Operand<'a>> {
        if self.eat(b'~') {
            return self.nested(|c| match c.term()? {
                Operand::Int(v) => Ok(Operand::Int(!v)),
                _ => c.error("`~` requires an integer"),
            });
        }
        if !self.eat(b'(') {
            return self.number();
        }
        self.nested(|c| {
            let value = c.constant()?;
            c.expect(b')')?;
            Ok(value)
        })
    }

    /// Parses the rest of an expression after the value `left`, while its operators have at least
    /// the precedence `least`.
    fn expression(&mut self, left: Operand<'a>, least: u8) -> Result<Operand<'a>> {
        let mut left = left;
        while let (Some((operator, strength)), Operand::Int(a)) = (self.operator(), &left) {
            if strength < least {
                break;
            }
            let a = *a;
            self.next();
            if matches!(operator, b'<' | b'>') {
                self.next();
            }
            let right = self.term()?;
            let Operand::Int(b) = self.nested(|c| c.expression(right, strength + 1))? else {
                return self.error("an expression must consist of integers");
            };
            let Some(value) = calculate(operator, a, b) else {
                return self.error("the value of the expression does not fit in 64 bits");
            };
            left = Operand::Int(value);
        }
        Ok(left)
    }

    /// Returns the next operator and its precedence.
    fn operator(&self) -> Option<(u8, u8)> {
        let Kind::Punct(c) = self.now.kind else { return None };
        let strength = match c {
            b'*' | b'/' | b'%' => 6,
            b'+' | b'-' => 5,
            b'<' | b'>' if self.then.kind == Kind::Punct(c) => 4,
            b'&' => 3,
            b'^' => 2,
            b'|' => 1,
            _ => return None,
        };
        Some((c, strength))
    }

    /// Parses an offset such as `+8`, `-8` or `+-8`, which may be absent.
    pub(super) fn offset(&mut self) -> Result<i64> {
        if !self.is(b'+') && !self.is(b'-') {
            return Ok(0);
        }
        if self.is(b'+') && self.then.kind == Kind::Punct(b'-') {
            self.next();
        }
        match self.number()? {
            Operand::Int(v) => match i64::try_from(v) {
                Ok(v) => Ok(v),
                Err(_) => self.error("the offset does not fit in 64 bits"),
            },
            _ => self.error("an offset must be an integer"),
        }
    }

    pub(super) fn operand(&mut self) -> Result<Operand<'a>> {
        match self.now.kind {
            Kind::Punct(b'{') => Ok(Operand::Vector(self.operands(b'{', b'}')?)),
            Kind::Punct(b'(') => Ok(Operand::List(self.operands(b'(', b')')?)),
            Kind::Punct(b'[') => self.address(),
            Kind::Punct(b'!') => {
                self.next();
                Ok(Operand::Not(self.word()?))
            }
            Kind::Punct(b'-' | b'+' | b'~') => self.constant(),
            Kind::Word if self.now.text.as_bytes()[0].is_ascii_digit() => self.constant(),
            _ => self.name_operand(),
        }
    }

    fn name_operand(&mut self) -> Result<Operand<'a>> {
        let name = self.word()?;
        // Either of the two may be `_`.
        if self.eat(b'|') {
            return Ok(Operand::Pair(name, self.word()?));
        }
        if name == "_" {
            return Ok(Operand::Sink);
        }
        if self.is(b'.') {
            return Ok(Operand::Part(name, self.dotted()?));
        }
        if self.is(b'+') || self.is(b'-') {
            let offset = self.offset()?;
            return Ok(Operand::Symbol(Symbol { name, offset }));
        }
        if self.eat(b'[') {
            let offset = i64::from(self.u32()?);
            self.expect(b']')?;
            return Ok(Operand::Symbol(Symbol { name, offset }));
        }
        Ok(Operand::Name(name))
    }

    fn operands(&mut self, open: u8, close: u8) -> Result<Vec<Operand<'a>>> {
        self.nested(|c| {
            c.expect(open)?;
            let mut out = Vec::new();
            while !c.eat(close) {
                if !out.is_empty() {
                    c.expect(b',')?;
                }
                out.push(c.operand()?);
            }
            Ok(out)
        })
    }

    fn address(&mut self) -> Result<Operand<'a>> {
        self.expect(b'[')?;
        let numeric =
            self.is(b'-') || self.now.text.bytes().next().is_some_and(|b| b.is_ascii_digit());
        let (base, offset) = if numeric {
            match self.number()? {
                Operand::Int(v) => (None, v as i64),
                _ => return self.error("an address must be an integer"),
            }
        } else {
            let name = self.word()?;
            (Some(name), self.offset()?)
        };
        if let (true, Some(object), 0) = (self.samples, base, offset)
            && self.eat(b',')
        {
            if !self.is(b'{') {
                return self.lacks("a texture with a separate sampler is not supported");
            }
            let coordinates = self.operands(b'{', b'}')?;
            self.expect(b']')?;
            return Ok(Operand::Texel { object, coordinates });
        }
        if self.is(b',') {
            return self.lacks("an address with coordinates (tensors) is not supported");
        }
        self.expect(b']')?;
        Ok(Operand::Address { base, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        assert_eq!(integer("0x1fU"), Some(31));
        assert_eq!(integer("017"), Some(15));
        assert_eq!(integer("0b101"), Some(5));
        assert_eq!(integer("18446744073709551615"), Some(u64::MAX.into()));
        assert_eq!(integer("18446744073709551616"), None);
        assert!(matches!(literal("0f3F800000"), Some(Operand::F32(0x3f80_0000))));
        assert!(
            matches!(literal("0d3FF0000000000000"), Some(Operand::F64(v)) if v == 1f64.to_bits())
        );
        assert!(matches!(literal("2.5"), Some(Operand::F64(v)) if v == 2.5f64.to_bits()));
        assert!(literal("9z").is_none());
    }

    #[test]
    fn either_of_a_pair_may_go_nowhere() {
        for (text, first, second) in
            [("%p|%q", "%p", "%q"), ("%p|_", "%p", "_"), ("_|%q", "_", "%q")]
        {
            let pair = Cursor::new(text).operand();
            assert!(matches!(pair, Ok(Operand::Pair(p, q)) if (p, q) == (first, second)), "{text}");
        }
        assert!(matches!(Cursor::new("_").operand(), Ok(Operand::Sink)));
    }

    #[test]
    fn expressions_of_integers_have_their_value() {
        let value = |text: &str| match Cursor::new(text).operand() {
            Ok(Operand::Int(value)) => Some(value),
            _ => None,
        };
        assert_eq!(value("WARP_SZ"), Some(32));
        assert_eq!(value("WARP_SZ-1"), Some(31));
        assert_eq!(value("-WARP_SZ"), Some(-32));
        assert_eq!(value("WARP_SZ * 2 + 1"), Some(65));
        assert_eq!(value("1 + 2 * 3 - 4"), Some(3));
        assert_eq!(value("7 - 2 - 1"), Some(4));
        assert_eq!(value("1 << 4 | 3 & 6 ^ 1"), Some(19));
        assert_eq!(value("2 * (1 + 2)"), Some(6));
        assert_eq!(value("~0 & 0xff"), Some(255));
        assert_eq!(value("1 / 0"), None);
        assert_eq!(value("18446744073709551615 + 1"), None);
        assert_eq!(value(&format!("1{}", "+(1".repeat(100))), None, "bounded depth");
        let offset = Cursor::new("[a+WARP_SZ]").operand();
        assert!(matches!(offset, Ok(Operand::Address { base: Some("a"), offset: 32 })));
    }
}
