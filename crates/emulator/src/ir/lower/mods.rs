//! Modifiers of an instruction. The lowering takes them one by one.

use super::{Reason, gap};
use crate::arith::soft::Round;
use crate::ir::Mode;
use crate::ptx::{Type, isa};

/// The parts of an opcode after the first dot. A modifier that the lowering does not take is an
/// error.
pub(super) struct Mods<'a> {
    list: &'a [&'a str],
    taken: u64,
}

impl<'a> Mods<'a> {
    pub(super) fn new(list: &'a [&'a str]) -> Reason<Self> {
        if list.len() > 64 {
            return Err("more than 64 modifiers".into());
        }
        Ok(Self { list, taken: 0 })
    }

    /// Returns the modifiers that have not been taken.
    pub(super) fn rest(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        let taken = self.taken;
        self.list.iter().copied().enumerate().filter(move |(i, _)| taken >> i & 1 == 0)
    }

    pub(super) fn take(&mut self, name: &str) -> bool {
        let found = self.rest().find(|(_, m)| *m == name).map(|(i, _)| i);
        if let Some(i) = found {
            self.taken |= 1 << i;
        }
        found.is_some()
    }

    /// Takes the first of `names` that is present, and returns its value.
    pub(super) fn one_of<T: Copy>(&mut self, names: &[(&str, T)]) -> Option<T> {
        names.iter().find(|(n, _)| self.take(n)).map(|(_, v)| *v)
    }

    /// Takes all modifiers for which `f` returns true.
    pub(super) fn drop_if(&mut self, f: impl Fn(&str) -> bool) {
        let hits: Vec<usize> = self.rest().filter(|(_, m)| f(m)).map(|(i, _)| i).collect();
        for i in hits {
            self.taken |= 1 << i;
        }
    }

    /// Takes the next modifier that is a type.
    pub(super) fn maybe_ty(&mut self) -> Option<Type> {
        let (i, ty) = self.rest().find_map(|(i, m)| Some((i, Type::parse(m)?)))?;
        self.taken |= 1 << i;
        Some(ty)
    }

    pub(super) fn ty(&mut self) -> Reason<Type> {
        if let Some(ty) = self.maybe_ty() {
            return Ok(ty);
        }
        match self.rest().find(|(_, m)| isa::is_foreign_type(m)) {
            Some((_, m)) => Err(gap(format!("the type `.{m}` is not supported"))),
            None => Err("it has no supported type".into()),
        }
    }

    /// Takes the rounding mode of floating-point results.
    pub(super) fn round(&mut self) -> Option<Round> {
        self.one_of(&[
            ("rn", Round::Rn),
            ("rz", Round::Rz),
            ("rm", Round::Rm),
            ("rp", Round::Rp),
            ("rna", Round::Rna),
        ])
    }

    pub(super) fn mode(&mut self) -> Mode {
        Mode {
            round: self.round().unwrap_or_default(),
            ftz: self.take("ftz"),
            sat: self.take("sat"),
            relu: self.take("relu"),
        }
    }

    /// Returns an error unless all modifiers of `instruction` were taken.
    pub(super) fn finish(self, instruction: &str) -> Reason<()> {
        match self.rest().next() {
            None => Ok(()),
            Some((_, m)) if isa::is_modifier(instruction, m) => {
                Err(gap(format!("modifier `.{m}` is not supported here")))
            }
            Some((_, m)) => Err(format!("`{instruction}` has no modifier `.{m}`").into()),
        }
    }
}
