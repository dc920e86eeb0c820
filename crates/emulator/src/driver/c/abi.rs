//! The C types of the driver API that this emulator reads or writes, laid out as in `cuda.h`.
//!
//! Handles are opaque to the caller. Here they are keys of the tables of `registry`, never addresses, so
//! a stale or invented handle is detected instead of dereferenced.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::entry::In;

/// Any opaque handle (`CUcontext`, `CUstream`, …): a key into a table; 0 means null.
pub type Handle = usize;
/// A device ordinal (`CUdevice`).
pub type Device = c_int;
/// A device address (`CUdeviceptr`).
pub type Address = u64;

/// The opaque bytes of `CUuuid` and `CUipcMemHandle`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes<const N: usize>(pub [u8; N]);

/// The C structure `CUctxCreateParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CtxCreateParams {
    pub affinity: *mut c_void,
    pub affinity_count: c_int,
    pub cig: *mut c_void,
}

/// The C structure `CUdevprop`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DevProp {
    pub max_threads_per_block: c_int,
    pub max_threads_dim: [c_int; 3],
    pub max_grid_size: [c_int; 3],
    pub shared_per_block: c_int,
    pub constant_bytes: c_int,
    pub warp_size: c_int,
    pub pitch: c_int,
    pub registers_per_block: c_int,
    pub clock_khz: c_int,
    pub texture_align: c_int,
}

/// The C structure `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfigC {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub stream: Handle,
    pub attributes: In<LaunchAttribute>,
    pub attribute_count: c_uint,
}

/// The C structure `CUlaunchAttribute`. Its value is a union of at most 64 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchAttribute {
    pub id: c_uint,
    pub pad: [c_char; 4],
    pub value: LaunchValue,
}

/// The C union `CUlaunchAttributeValue`, as the words that its integer members overlay.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct LaunchValue(pub [c_uint; 16]);

/// The C structure `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memcpy2D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_type: c_uint,
    pub src_host: usize,
    pub src_device: Address,
    pub src_array: Handle,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_type: c_uint,
    pub dst_host: usize,
    pub dst_device: Address,
    pub dst_array: Handle,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// The C structure `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Memcpy3D {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    pub src_type: c_uint,
    pub src_host: usize,
    pub src_device: Address,
    pub src_array: Handle,
    pub reserved0: usize,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_type: c_uint,
    pub dst_host: usize,
    pub dst_device: Address,
    pub dst_array: Handle,
    pub reserved1: usize,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// The C structure `CUDA_KERNEL_NODE_PARAMS` (version 2).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNodeParams {
    pub function: Handle,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub params: In<usize>,
    pub extra: In<usize>,
    pub kernel: Handle,
    pub context: Handle,
}

/// The C structure `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemsetNodeParams {
    pub dst: Address,
    pub pitch: usize,
    pub value: c_uint,
    pub element: c_uint,
    pub width: usize,
    pub height: usize,
}

/// The C structure `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    pub kind: c_uint,
    pub id: c_int,
}

impl Location {
    /// Value of `CU_MEM_LOCATION_TYPE_DEVICE`: `id` is the ordinal of a device.
    pub const DEVICE: c_uint = 1;
}

/// The C structure `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PoolProps {
    pub allocation: c_uint,
    pub handle_types: c_uint,
    pub location: Location,
    pub security: *mut c_void,
    pub max_bytes: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

/// The C structure `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AccessDesc {
    pub location: Location,
    pub flags: c_uint,
}

/// The C structure `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InstantiateParams {
    pub flags: u64,
    pub upload_stream: Handle,
    pub error_node: Handle,
    pub result: c_uint,
}

/// The C structure `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UpdateInfo {
    pub result: c_uint,
    pub error_node: Handle,
    pub error_from: Handle,
}

/// The C structure `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrayDesc {
    pub width: usize,
    pub height: usize,
    pub format: c_uint,
    pub channels: c_uint,
}

/// The C structure `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrayDesc3D {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub format: c_uint,
    pub channels: c_uint,
    pub flags: c_uint,
}

/// The C structure `CUDA_RESOURCE_DESC`, with the members of its union that linear and pitched
/// memory share. The first of them is also the handle of an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ResourceDesc {
    pub kind: c_uint,
    pub address: Address,
    pub format: c_uint,
    pub channels: c_uint,
    /// Size of linear memory in bytes, or texels per row of pitched memory.
    pub width: usize,
    pub height: usize,
    pub pitch: usize,
    pub reserved: [u32; 22],
    pub flags: c_uint,
}

impl ResourceDesc {
    /// Returns the handle of the array, if the resource is an array.
    pub fn array(&self) -> Handle {
        self.address as Handle
    }
}

/// The C structure `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TextureDesc {
    pub address_modes: [c_uint; 3],
    pub filter: c_uint,
    pub flags: c_uint,
    pub max_anisotropy: c_uint,
    pub mipmap_filter: c_uint,
    pub mipmap_levels: [f32; 3],
    pub border: [f32; 4],
    pub reserved: [c_int; 12],
}

/// The C function type `CUhostFn`.
pub type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// The C function type `CUstreamCallback`.
pub type StreamCallback = Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>;
/// The C function type `CUoccupancyB2DSize`.
pub type BlockToShared = Option<unsafe extern "C" fn(c_int) -> usize>;
