//! Lowers reads of textures, and loads from and stores to surfaces.

use super::func::Lower;
use super::memory::hint;
use super::mods::Mods;
use super::names::V;
use super::{Reason, gap};
use crate::ir::{Beyond, Class, Op, Surf, Tex};
use crate::ptx::{Instr, Operand, Type};

/// Names of geometries, with the number of coordinates and whether a layer precedes them.
const GEOMETRIES: [(&str, (u8, bool)); 5] = [
    ("1d", (1, false)),
    ("2d", (2, false)),
    ("3d", (3, false)),
    ("a1d", (1, true)),
    ("a2d", (2, true)),
];

/// Maximum size of a load from or a store to a surface, bytes.
const MAX_SURFACE_BYTES: u32 = 16;

impl<'a> Lower<'_, '_, '_, 'a> {
    /// Lowers `tex` with a texture object.
    pub(super) fn texture(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let Some((dims, layered)) = m.one_of(&GEOMETRIES) else {
            return Err(gap("cube and multisample textures are not supported by the emulator"));
        };
        // A texture has only the base level. All of these forms read it: as on a GPU, the level is
        // clamped.
        let more = match (m.take("level"), m.take("grad"), m.take("base")) {
            (true, ..) => 1,
            (_, true, _) => 2,
            _ => 0,
        };
        if !m.take("v4") {
            return Err(gap("packed results of textures are not supported by the emulator"));
        }
        let (result, coordinate) = (m.ty()?, m.ty()?);
        let is_result = matches!(result, Type::F32 | Type::S32 | Type::U32);
        if !is_result || !matches!(coordinate, Type::F32 | Type::S32) {
            return Err(gap("textures of this type are not supported by the emulator"));
        }
        self.operands(i, 2 + more)?;
        for operand in &i.operands[2..] {
            self.level(operand, dims)?;
        }
        let integral = coordinate == Type::S32;
        self.sample(i, Tex { dims, layered, integral, gathered: None }, (result, coordinate))
    }

    /// Lowers `tld4` with a texture object.
    pub(super) fn texture_gather(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let channels = [("r", 0), ("g", 1), ("b", 2), ("a", 3)];
        let channel = m.one_of(&channels).ok_or("it needs a channel: `.r`, `.g`, `.b` or `.a`")?;
        if m.one_of(&GEOMETRIES) != Some((2, false)) {
            return Err(gap(
                "gathers from layered and cube textures are not supported by the emulator",
            ));
        }
        if !m.take("v4") {
            return Err("it needs `.v4`".into());
        }
        let (result, coordinate) = (m.ty()?, m.ty()?);
        let is_result = matches!(result, Type::F32 | Type::S32 | Type::U32);
        if !is_result || coordinate != Type::F32 {
            return Err(gap("textures of this type are not supported by the emulator"));
        }
        if i.operands.len() > 2 {
            return Err(gap("offsets of texture gathers are not supported by the emulator"));
        }
        self.operands(i, 2)?;
        let tex = Tex { dims: 2, layered: false, integral: false, gathered: Some(channel) };
        self.sample(i, tex, (result, coordinate))
    }

    /// Emits a read with four results. The first operand holds the results, the second the texture
    /// and the coordinates.
    fn sample(
        &mut self,
        i: &Instr<'a>,
        tex: Tex,
        (result, coordinate): (Type, Type),
    ) -> Reason<()> {
        let Operand::Vector(results) = self.arg(i, 0)? else {
            return Err("the results are not a vector".into());
        };
        if results.len() != 4 {
            return Err(format!("{} results instead of 4", results.len()).into());
        }
        let at = (tex.dims, tex.layered);
        let (object, coordinates) = self.texel(self.arg(i, 1)?, at, coordinate)?;
        let results =
            results.iter().map(|one| self.dest(one, result)).collect::<Reason<Vec<_>>>()?;
        self.push(Op::Tex(tex), &[], &[object], 0);
        self.texel_lists(&coordinates, &results, true);
        Ok(())
    }

    /// Checks the level of a read, or one of its two gradients.
    fn level(&mut self, operand: &Operand<'a>, dims: u8) -> Reason<()> {
        let parts = match operand {
            Operand::Vector(parts) if parts.len() < usize::from(dims) => {
                return Err(
                    format!("a gradient of {} numbers instead of {dims}", parts.len()).into()
                );
            }
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        parts.iter().try_for_each(|part| self.source(part, Type::B32).map(drop))
    }

    /// Lowers `suld.b` and `sust.b`.
    pub(super) fn surface(&mut self, i: &Instr<'a>, m: &mut Mods<'_>) -> Reason<()> {
        let is_store = i.op == "sust";
        if m.take("p") {
            return Err(gap("formatted stores to surfaces are not supported by the emulator"));
        }
        if !m.take("b") {
            return Err(format!("`{}` needs `.b`", i.op).into());
        }
        let Some((dims, layered)) = m.one_of(&GEOMETRIES) else {
            return Err("it needs a geometry: `.1d`, `.2d`, `.3d`, `.a1d` or `.a2d`".into());
        };
        m.drop_if(hint);
        let count = Self::vector(m);
        let ty = m.ty()?;
        let beyond = [("trap", Beyond::Trap), ("clamp", Beyond::Clamp), ("zero", Beyond::Zero)];
        let beyond = m.one_of(&beyond).ok_or("it needs `.trap`, `.clamp` or `.zero`")?;
        let is_plain = matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64);
        if !is_plain || ty.bytes() * count as u32 > MAX_SURFACE_BYTES {
            return Err("surfaces do not support data of this type".into());
        }
        self.operands(i, 2)?;
        let (texel, data) = if is_store { (0, 1) } else { (1, 0) };
        let (object, coordinates) = self.texel(self.arg(i, texel)?, (dims, layered), Type::S32)?;
        let data = self.data(self.arg(i, data)?, ty, count, !is_store)?;
        let wide = data.first().is_some_and(|(file, _)| *file == Class::W64);
        let (width, count) = (ty.bytes() as u8, count as u8);
        let surf = Surf { is_store, dims, layered, width, count, wide, beyond };
        self.push(Op::Surf(surf), &[], &[object], 0);
        self.texel_lists(&coordinates, &data, !is_store);
        Ok(())
    }

    /// Returns the texture or surface that an operand names, and its coordinates. A layer, if there
    /// is one, comes before them.
    fn texel(
        &mut self,
        operand: &Operand<'a>,
        (dims, layered): (u8, bool),
        ty: Type,
    ) -> Reason<(V, Vec<V>)> {
        let Operand::Texel { object, coordinates } = operand else {
            return Err("the operand is not a texture or surface with coordinates".into());
        };
        let count = usize::from(dims) + usize::from(layered);
        if coordinates.len() < count {
            return Err(format!("{} coordinates instead of {count}", coordinates.len()).into());
        }
        let object = self.source(&Operand::Name(object), Type::B64)?;
        let mut all = Vec::new();
        for (at, one) in coordinates[..count].iter().enumerate() {
            let is_layer = layered && at == 0;
            all.push(self.source(one, if is_layer { Type::U32 } else { ty })?);
        }
        Ok((object, all))
    }

    /// Adds the coordinates and the data to the most recent instruction.
    fn texel_lists(&mut self, coordinates: &[V], data: &[V], is_result: bool) {
        let coordinates = self.list(coordinates, false);
        let data = self.list(data, is_result);
        if let Some(inst) = self.last() {
            inst.imm = coordinates.into();
            inst.s = data;
        }
    }
}
