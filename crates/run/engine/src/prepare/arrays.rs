//! CUDA arrays that a list of steps uses, and the tensors that they contain. The main type is
//! [`Arrays`].

use std::collections::HashMap;

use super::bind::BindError;
use warpgauge_contract::{ArgSpec, IoContract, Role};
use warpgauge_model::{FailureCode, TexelGrid, TextureLayout};
use warpgauge_worker::protocol::{
    Argument, ArrayObject, ArraySpec, GlobalVariable, Memory, Piece, Pointee, Step,
};

/// The CUDA arrays of a list of steps, and the texture and surface objects over them, without
/// duplicates.
#[derive(Default)]
pub(super) struct Arrays {
    arrays: Vec<ArraySpec>,
    objects: Vec<ArrayObject>,
    indexes: HashMap<ArrayObject, usize>,
}

/// Uses of memory by steps, other than texture and surface objects over arrays.
pub(super) struct Uses<'a> {
    pub steps: Vec<&'a Step>,
    pub pointers: &'a [Vec<Option<Pointee>>],
    pub globals: &'a [GlobalVariable],
    /// Whether the contract lists launches.
    pub is_list: bool,
}

impl Arrays {
    /// Returns the object over the array that contains `memory` with texels of this format. It is a
    /// texture object with this layout, or a surface object.
    pub(super) fn object(
        &mut self,
        memory: Memory,
        grid: &TexelGrid,
        texture: Option<&TextureLayout>,
    ) -> Argument {
        let spec = ArraySpec { memory, grid: grid.clone(), is_written: false };
        let known = self.arrays.iter().position(|known| {
            let ArraySpec { memory, grid, .. } = known;
            (memory, grid) == (&spec.memory, &spec.grid)
        });
        let array = known.unwrap_or_else(|| {
            self.arrays.push(spec);
            self.arrays.len() - 1
        });
        let object = ArrayObject { array, texture: texture.cloned() };
        let index = *self.indexes.entry(object).or_insert_with_key(|object| {
            self.objects.push(object.clone());
            self.objects.len() - 1
        });
        Argument::Object(index)
    }

    /// Returns the arrays, with the handling of their content, and the objects. `memory` contains
    /// the memory of each argument of `io`.
    ///
    /// # Errors
    /// Fails if a tensor that is written is in an array and also used in another way. Writes
    /// through one use would not be visible through the other.
    pub(super) fn finished(
        mut self,
        io: &IoContract,
        memory: &[Option<Piece>],
        uses: &Uses<'_>,
    ) -> Result<(Vec<ArraySpec>, Vec<ArrayObject>), Vec<BindError>> {
        let has_surface = |array: usize| {
            self.objects.iter().any(|object| object.array == array && object.texture.is_none())
        };
        let surfaces = (0..self.arrays.len()).map(has_surface).collect::<Vec<_>>();
        let mut errors = Vec::new();
        for (index, is_surface) in surfaces.into_iter().enumerate() {
            let held = self.arrays[index].memory;
            let is_held = |piece: &Option<Piece>| piece.is_some_and(|piece| piece.memory == held);
            let Some(of) = memory.iter().position(is_held) else { continue };
            let arg = &io.args[of];
            self.arrays[index].is_written = is_surface && arg.is_output();
            let others = self.arrays.iter().filter(|array| array.memory == held).count() > 1;
            let is_shared = others || uses.include(held);
            let differs = arg.role != Role::Input && (is_surface || uses.is_list);
            if is_shared && differs {
                errors.push(used_twice(of, arg));
            }
        }
        if errors.is_empty() { Ok((self.arrays, self.objects)) } else { Err(errors) }
    }
}

fn used_twice(of: usize, arg: &ArgSpec) -> BindError {
    let message = format!(
        "tensor `{}` is in a CUDA array while the kernel runs, and is also used as memory or with other texels, so that \
         writes through one use are not visible through the other: use it as a surface or texture with the same \
         texels everywhere, or give another tensor",
        arg.name
    );
    BindError::step(&format!("io.args[{of}]"), FailureCode::WrongField, message)
}

impl Uses<'_> {
    fn include(&self, memory: Memory) -> bool {
        let mut pointees = self.pointers.iter().flatten().flatten();
        let mut globals = self.globals.iter();
        self.steps.iter().any(|step| step_uses(step, memory))
            || pointees.any(|pointee| pointee.memory == memory)
            || globals.any(|global| Memory::Buffer(global.buffer) == memory)
    }
}

fn step_uses(step: &Step, memory: Memory) -> bool {
    let is_it = |piece: &Piece| piece.memory == memory;
    match step {
        Step::Launch(launch) => launch.arguments.iter().any(|one| argument_uses(one, memory)),
        Step::Fill { at, .. } => is_it(at),
        Step::Copy { from, to, .. } => is_it(from) || is_it(to),
        Step::Pass { flag, .. } => is_it(flag),
    }
}

fn argument_uses(argument: &Argument, memory: Memory) -> bool {
    match argument {
        Argument::Buffer(buffer)
        | Argument::Inside(buffer, _)
        | Argument::Map(buffer, _)
        | Argument::Texture(buffer, _) => Memory::Buffer(*buffer) == memory,
        Argument::Workspace(workspace, _) => Memory::Workspace(*workspace) == memory,
        Argument::Structure(_, fields) => {
            fields.iter().any(|(_, field)| argument_uses(field, memory))
        }
        // Arrays of pointers are checked separately, as a whole.
        Argument::Scalar(_)
        | Argument::Scratch(_)
        | Argument::Object(_)
        | Argument::PointerArray(_) => false,
    }
}
