//! Exported functions for CUDA arrays and surface objects.

use std::sync::Arc;

use super::alloc::allocate;
use crate::driver::c::abi::{ArrayDesc, ArrayDesc3D, Handle, ResourceDesc};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api};
use crate::driver::state::array::Array;
use crate::driver::state::context::current;
use crate::driver::state::ledger::Kind;
use crate::driver::state::registry::{fresh, registry};
use crate::memory::{TexelObject, Texels};

/// Value of `CU_RESOURCE_TYPE_ARRAY`: the resource is a CUDA array.
const ARRAY: u32 = 0;

/// Creates an array in the current context and returns its handle.
fn create(description: ArrayDesc3D) -> Res<Handle> {
    let context = current()?.handle;
    let (texels, bytes) = Array::laid_out(&description)?;
    let texels = Texels { base: allocate(bytes, Kind::Array, 0, 0)?, ..texels };
    Ok(registry()?.arrays.insert(Arc::new(Array { description, texels, context })))
}

api! {
    fn cuArray3DCreate_v2(out: Out<Handle>, description: In<ArrayDesc3D>) {
        out.required()?;
        out.set(create(description.get()?)?)
    }

    fn cuArrayCreate_v2(out: Out<Handle>, description: In<ArrayDesc>) {
        out.required()?;
        let ArrayDesc { width, height, format, channels } = description.get()?;
        out.set(create(ArrayDesc3D { width, height, depth: 0, format, channels, flags: 0 })?)
    }

    fn cuArrayDestroy(array: Handle) {
        Array::destroy(array)
    }

    fn cuArray3DGetDescriptor_v2(out: Out<ArrayDesc3D>, array: Handle) {
        out.set(registry()?.arrays.get(array)?.description)
    }

    fn cuArrayGetDescriptor_v2(out: Out<ArrayDesc>, array: Handle) {
        let ArrayDesc3D { width, height, format, channels, .. } =
            registry()?.arrays.get(array)?.description;
        out.set(ArrayDesc { width, height, format, channels })
    }

    fn cuSurfObjectCreate(out: Out<u64>, resource: In<ResourceDesc>) {
        out.required()?;
        let resource = resource.get()?;
        if resource.kind != ARRAY || resource.flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // A GPU's driver also accepts arrays that were created without the surface flag.
        let array = registry()?.arrays.get(resource.array())?;
        let handle = fresh() as u64;
        registry()?.memory.add_object(handle, TexelObject::Surface(array.texels));
        out.set(handle)
    }

    fn cuSurfObjectDestroy(handle: u64) {
        let is_surface = |object: &TexelObject| matches!(object, TexelObject::Surface(_));
        match registry()?.memory.remove_object(handle, is_surface) {
            true => Ok(()),
            false => Err(Code::INVALID_VALUE),
        }
    }
}
