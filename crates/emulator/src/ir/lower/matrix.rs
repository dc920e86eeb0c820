//! Matrix instructions.

use super::Reason;
use super::func::Lower;
use super::mods::Mods;
use crate::ptx::Instr;

impl<'a> Lower<'_, '_, '_, 'a> {
    pub(super) fn ldmatrix(&mut self, _i: &Instr<'a>, _m: &mut Mods<'_>) -> Reason<()> {
        Err("matrix instructions are not supported".into())
    }
    pub(super) fn mma(&mut self, _i: &Instr<'a>, _m: &mut Mods<'_>) -> Reason<()> {
        Err("matrix instructions are not supported".into())
    }
    pub(super) fn wmma(&mut self, _i: &Instr<'a>, _m: &mut Mods<'_>) -> Reason<()> {
        Err("matrix instructions are not supported".into())
    }
}
