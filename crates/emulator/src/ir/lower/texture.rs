//! Reads of textures.

use super::func::Lower;
use super::mods::Mods;
use super::{Reason, gap};
use crate::ir::{Op, Tex};
use crate::ptx::{Instr, Operand, Type};

impl<'a> Lower<'_, '_, '_, 'a> {
    /// Lowers `tex.1d` and `tex.2d` with a texture object.
    pub(super) fn texture(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let Some(dims) = m.one_of(&[("1d", 1u8), ("2d", 2)]) else {
            return Err(gap(
                "textures of three dimensions, layers and cubes are not supported by the emulator",
            ));
        };
        if m.take("level") || m.take("grad") || m.take("base") {
            return Err(gap("levels of textures are not supported by the emulator"));
        }
        if !m.take("v4") {
            return Err(gap("packed results of textures are not supported by the emulator"));
        }
        let (result, coordinate) = (m.ty()?, m.ty()?);
        let is_result = matches!(result, Type::F32 | Type::S32 | Type::U32);
        if !is_result || !matches!(coordinate, Type::F32 | Type::S32) {
            return Err(gap("this type of a texture is not supported by the emulator"));
        }
        self.operands(i, 2)?;
        let Operand::Texel { object, coordinates } = self.arg(i, 1)? else {
            return Err("the operand is no texture with coordinates".into());
        };
        let Operand::Vector(results) = self.arg(i, 0)? else {
            return Err("the results are no vector".into());
        };
        if results.len() != 4 {
            return Err(format!("{} results instead of 4", results.len()).into());
        }
        if coordinates.len() < usize::from(dims) {
            return Err(format!("{} coordinates instead of {dims}", coordinates.len()).into());
        }
        let mut uses = vec![self.source(&Operand::Name(object), Type::B64)?];
        for coordinate_of in &coordinates[..usize::from(dims)] {
            uses.push(self.source(coordinate_of, coordinate)?);
        }
        let results =
            results.iter().map(|one| self.dest(one, result)).collect::<Reason<Vec<_>>>()?;
        let integral = coordinate == Type::S32;
        self.push(Op::Tex(Tex { dims, integral }), &[], &uses, 0);
        let list = self.list(&results, true);
        if let Some(inst) = self.last() {
            inst.s = list;
        }
        Ok(())
    }
}
