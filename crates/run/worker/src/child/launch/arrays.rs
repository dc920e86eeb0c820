//! CUDA arrays that hold buffers or scratch memory during a run. The main type is [`Arrays`].

use crate::protocol::{ArrayObject, ArraySpec, Memory, StepProgram};
use warpgauge_device::{Context, DeviceArray, DeviceError, Stream, SurfaceObject, TextureObject};
use warpgauge_model::FailureCode;

/// Function that returns the address of a buffer or of scratch memory.
type Place<'a> = &'a dyn Fn(Memory) -> Result<u64, DeviceError>;

/// The CUDA arrays of a list of steps, and the texture and surface objects that access them.
#[derive(Default)]
pub(super) struct Arrays {
    // Objects are destroyed before their arrays.
    objects: Vec<Object>,
    arrays: Vec<(ArraySpec, DeviceArray)>,
}

enum Object {
    Texture(TextureObject),
    Surface(SurfaceObject),
}

impl Arrays {
    /// Creates the arrays and objects of a program.
    pub(super) fn new(context: &Context, program: &StepProgram) -> Result<Self, DeviceError> {
        let has_surface = |array: usize| {
            let mut objects = program.objects.iter();
            objects.any(|object| object.array == array && object.texture.is_none())
        };
        let array = |(index, spec): (usize, &ArraySpec)| {
            Ok((spec.clone(), DeviceArray::new(context, &spec.grid, has_surface(index))?))
        };
        let arrays = program.arrays.iter().enumerate().map(array);
        let arrays = arrays.collect::<Result<Vec<_>, DeviceError>>()?;
        let object = |of: &ArrayObject| {
            let (_, array) = arrays.get(of.array).ok_or_else(|| no_array(of.array))?;
            Ok(match &of.texture {
                Some(layout) => Object::Texture(TextureObject::over(array, layout)?),
                None => Object::Surface(SurfaceObject::new(array)?),
            })
        };
        let objects = program.objects.iter().map(object).collect::<Result<_, DeviceError>>()?;
        Ok(Self { objects, arrays })
    }

    /// Returns the handle of object `index` as a kernel argument; `None` if there is no such
    /// object.
    pub(super) fn object(&self, index: usize) -> Option<[u8; 8]> {
        Some(match self.objects.get(index)? {
            Object::Texture(texture) => texture.bytes(),
            Object::Surface(surface) => surface.bytes(),
        })
    }

    /// Queues copying the content of each array's buffer or scratch memory into the array.
    pub(super) fn fill(&self, place: Place<'_>, stream: &Stream) -> Result<(), DeviceError> {
        self.arrays
            .iter()
            .try_for_each(|(spec, array)| array.fill_from(place(spec.memory)?, stream))
    }

    /// Queues copies of arrays back to their buffers or scratch memory. With `outputs`, copies the
    /// arrays that kernels write; otherwise, those that hold scratch memory. Returns whether there
    /// are any.
    pub(super) fn collect(
        &self,
        outputs: bool,
        place: Place<'_>,
        stream: &Stream,
    ) -> Result<bool, DeviceError> {
        let mut found = false;
        for (spec, array) in &self.arrays {
            let is_scratch = matches!(spec.memory, Memory::Workspace(_));
            if if outputs { spec.is_written } else { is_scratch } {
                array.write_to(place(spec.memory)?, stream)?;
                found = true;
            }
        }
        Ok(found)
    }
}

fn no_array(index: usize) -> DeviceError {
    let text = format!("an object refers to array {index}, which does not exist");
    DeviceError::local("make a texture or surface object", FailureCode::InvalidValue, text)
}
