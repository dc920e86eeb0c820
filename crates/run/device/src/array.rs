//! CUDA arrays, and surface objects over them. The main type is [`DeviceArray`].

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::CUstream;

use super::texture::{ResourceDescription, format};
use super::{Context, DeviceBuffer, DeviceError, Stream};
use warpgauge_model::{FailureCode, TexelGrid};

/// `CUDA_ARRAY3D_LAYERED`, `_SURFACE_LDST`.
const LAYERED: c_uint = 1;
const SURFACE: c_uint = 2;

/// `CU_MEMORYTYPE_DEVICE`, `_ARRAY`.
const DEVICE: c_uint = 2;
const ARRAY: c_uint = 3;

/// Maximum number of bytes that one copy sets to zero. A copy writes at least one row, even if the
/// row is larger.
const WIPE_BYTES: u64 = 16 << 20;

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
pub(super) struct ArrayDescription {
    width: usize,
    height: usize,
    depth: usize,
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
pub(super) struct CopyDescription {
    from: CopySide,
    to: CopySide,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

/// One end of a copy: the first or the second half of `CUDA_MEMCPY3D`.
#[repr(C)]
struct CopySide {
    x_bytes: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_uint,
    host: *mut c_void,
    address: u64,
    array: *mut c_void,
    reserved: *mut c_void,
    pitch: usize,
    height: usize,
}

/// A range of rows in one or more slices of an array.
struct Rows {
    y: u64,
    z: u64,
    height: u64,
    depth: u64,
}

/// A CUDA array. Dropping it sets its content to zero and frees the array.
pub struct DeviceArray {
    handle: *mut c_void,
    grid: TexelGrid,
    /// Memory that contains the zeros to write before the array is freed.
    zeros: DeviceBuffer,
    context: Context,
}

/// A surface object over an array. Dropping it destroys the object. It must be dropped before its
/// array.
pub struct SurfaceObject {
    handle: u64,
    context: Context,
}

/// Entry points of the driver for arrays.
struct Entries {
    destroy: unsafe extern "C" fn(*mut c_void) -> c_int,
    copy: unsafe extern "C" fn(*const CopyDescription, CUstream) -> c_int,
}

fn entries(context: &Context) -> Result<Entries, DeviceError> {
    let api = context.api();
    match (api.array_destroy, api.copy_rows) {
        (Some(destroy), Some(copy)) => Ok(Entries { destroy, copy }),
        _ => Err(lacking("make a CUDA array", "no cuArrayDestroy and no cuMemcpy3DAsync")),
    }
}

fn lacking(operation: &str, what: &str) -> DeviceError {
    let text = format!("this driver has {what}: install a newer driver");
    DeviceError::local(operation, FailureCode::NotSupported, text)
}

impl CopySide {
    fn new(kind: c_uint) -> Self {
        let null = std::ptr::null_mut();
        Self {
            x_bytes: 0,
            y: 0,
            z: 0,
            level: 0,
            kind,
            host: null,
            address: 0,
            array: null,
            reserved: null,
            pitch: 0,
            height: 0,
        }
    }
}

impl DeviceArray {
    /// Creates an array with undefined content. Textures can read it, and with `has_surfaces`
    /// surfaces can access it. The driver has lower limits for the extents of arrays with surfaces.
    ///
    /// # Errors
    /// Returns the driver's error, such as `out_of_memory`. Fails if the grid is invalid or the
    /// driver does not support arrays.
    pub fn new(
        context: &Context,
        grid: &TexelGrid,
        has_surfaces: bool,
    ) -> Result<Self, DeviceError> {
        let (width, rows) = (grid.row_bytes(), grid.rows());
        let bytes = width.saturating_mul(rows);
        let operation = format!("allocate {bytes} bytes of device memory for a CUDA array");
        let invalid =
            |text: String| DeviceError::local("make a CUDA array", FailureCode::InvalidValue, text);
        grid.check().map_err(invalid)?;
        entries(context)?;
        let create = context.api().array_create;
        let create = create.ok_or_else(|| lacking("make a CUDA array", "no cuArray3DCreate"))?;
        let wiped = width.saturating_mul(rows.min((WIPE_BYTES / width.max(1)).max(1)));
        let zeros = DeviceBuffer::new(context, wiped, "the zeros of a CUDA array")?;
        let description = ArrayDescription {
            width: grid.width as usize,
            height: grid.height.unwrap_or(0) as usize,
            depth: grid.depth.unwrap_or(0) as usize,
            format: format(grid.element),
            channels: grid.channels,
            flags: if has_surfaces { SURFACE } else { 0 } | if grid.layered { LAYERED } else { 0 },
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes one handle and reads a description, which has its layout.
        let result = unsafe { create(&mut handle, &description) };
        context.api().check(result, &operation)?;
        Ok(Self { handle, grid: grid.clone(), zeros, context: context.clone() })
    }

    /// Queues a copy of a tensor's rows to the array. The rows are contiguous in memory from
    /// `address` on.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fill_from(&self, address: u64, stream: &Stream) -> Result<(), DeviceError> {
        self.copy(address, &self.whole(), true, stream.handle)
    }

    /// Queues a copy of the array's rows to memory. The rows become contiguous from `address` on.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn write_to(&self, address: u64, stream: &Stream) -> Result<(), DeviceError> {
        self.copy(address, &self.whole(), false, stream.handle)
    }

    pub(super) fn handle(&self) -> *mut c_void {
        self.handle
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    fn whole(&self) -> Rows {
        let (height, depth) = (self.grid.height.unwrap_or(1), self.grid.depth.unwrap_or(1));
        Rows { y: 0, z: 0, height, depth }
    }

    fn copy(
        &self,
        address: u64,
        rows: &Rows,
        is_to_array: bool,
        stream: CUstream,
    ) -> Result<(), DeviceError> {
        let memory = CopySide {
            address,
            pitch: self.grid.row_bytes() as usize,
            height: rows.height as usize,
            ..CopySide::new(DEVICE)
        };
        let array = CopySide {
            array: self.handle,
            y: rows.y as usize,
            z: rows.z as usize,
            ..CopySide::new(ARRAY)
        };
        let (from, to) = if is_to_array { (memory, array) } else { (array, memory) };
        let copy = CopyDescription {
            from,
            to,
            width_bytes: self.grid.row_bytes() as usize,
            height: rows.height as usize,
            depth: rows.depth as usize,
        };
        // SAFETY: the driver reads the description, which has its layout, and refuses rows outside
        // of the array and addresses that are not device memory. No memory of Rust is on the
        // device.
        let result = unsafe { (entries(&self.context)?.copy)(&copy, stream) };
        self.context.api().check(result, "copy between a tensor and its CUDA array")
    }

    /// Sets the content to zero, and waits until that is done.
    fn wipe(&self) -> Result<(), DeviceError> {
        let api = self.context.api();
        let (address, bytes) = (self.zeros.address(), self.zeros.len());
        let stream = std::ptr::null_mut();
        // SAFETY: the range is ours; the null handle is the default stream.
        let result = unsafe { (api.fill)(address, 0, bytes, stream) };
        api.check(result, "zero a CUDA array")?;
        let at_once = (bytes as u64 / self.grid.row_bytes().max(1)).max(1);
        let whole = self.whole();
        for z in 0..whole.depth {
            let mut y = 0;
            while y < whole.height {
                let height = at_once.min(whole.height - y);
                self.copy(address, &Rows { y, z, height, depth: 1 }, true, stream)?;
                y += height;
            }
        }
        self.context.synchronize()
    }
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        // The driver reuses freed memory without clearing it. A failure means that the context and
        // its memory are lost.
        if self.context.synchronize().is_ok() {
            let _ = self.wipe();
        }
        if let Ok(Entries { destroy, .. }) = entries(&self.context) {
            // SAFETY: made by us, destroyed once.
            let _ = unsafe { destroy(self.handle) };
        }
    }
}

impl SurfaceObject {
    /// Creates the surface object of an array.
    ///
    /// # Errors
    /// Fails if the driver does not support surfaces or rejects this one.
    pub fn new(array: &DeviceArray) -> Result<Self, DeviceError> {
        let operation = "make a surface object";
        let context = &array.context;
        let api = context.api();
        let create = api.surface_create;
        let create = create.ok_or_else(|| lacking(operation, "no cuSurfObjectCreate"))?;
        let resource = ResourceDescription::of_array(array.handle);
        let mut handle = 0;
        // SAFETY: the driver writes one handle and reads one description, which has its layout.
        let result = unsafe { create(&mut handle, &resource) };
        api.check(result, operation)?;
        Ok(Self { handle, context: context.clone() })
    }

    /// Returns the object's handle as a kernel argument.
    pub fn bytes(&self) -> [u8; 8] {
        self.handle.to_ne_bytes()
    }
}

impl Drop for SurfaceObject {
    fn drop(&mut self) {
        if let Some(destroy) = self.context.api().surface_destroy {
            // SAFETY: made by us, destroyed once. A failure means that the context is lost already.
            let _ = unsafe { destroy(self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    use cudarc::driver::sys::{CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D};

    #[test]
    fn descriptions_are_laid_out_as_the_driver_reads_them() {
        assert_eq!(size_of::<ArrayDescription>(), size_of::<CUDA_ARRAY3D_DESCRIPTOR>());
        let theirs = offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Flags);
        assert_eq!(offset_of!(ArrayDescription, flags), theirs);
        assert_eq!(
            offset_of!(ArrayDescription, format),
            offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Format)
        );
        assert_eq!(size_of::<CopyDescription>(), size_of::<CUDA_MEMCPY3D>());
        let to = offset_of!(CopyDescription, to);
        for (ours, from, their_to) in [
            (
                offset_of!(CopySide, z),
                offset_of!(CUDA_MEMCPY3D, srcZ),
                offset_of!(CUDA_MEMCPY3D, dstZ),
            ),
            (
                offset_of!(CopySide, kind),
                offset_of!(CUDA_MEMCPY3D, srcMemoryType),
                offset_of!(CUDA_MEMCPY3D, dstMemoryType),
            ),
            (
                offset_of!(CopySide, address),
                offset_of!(CUDA_MEMCPY3D, srcDevice),
                offset_of!(CUDA_MEMCPY3D, dstDevice),
            ),
            (
                offset_of!(CopySide, array),
                offset_of!(CUDA_MEMCPY3D, srcArray),
                offset_of!(CUDA_MEMCPY3D, dstArray),
            ),
            (
                offset_of!(CopySide, pitch),
                offset_of!(CUDA_MEMCPY3D, srcPitch),
                offset_of!(CUDA_MEMCPY3D, dstPitch),
            ),
            (
                offset_of!(CopySide, height),
                offset_of!(CUDA_MEMCPY3D, srcHeight),
                offset_of!(CUDA_MEMCPY3D, dstHeight),
            ),
        ] {
            assert_eq!((ours, to + ours), (from, their_to));
        }
        assert_eq!(
            offset_of!(CopyDescription, width_bytes),
            offset_of!(CUDA_MEMCPY3D, WidthInBytes)
        );
    }
}
