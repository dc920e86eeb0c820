//! cuBLAS: the product of two dense matrices.
//!
//! Types and numbers are those of `cublas_api.h` and `library_types.h` of CUDA 12.0 to 13.0.

use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::rc::Rc;

use cudarc::driver::sys::CUstream;
use libloading::Library;

use super::VendorLibrary;
use super::cusparse::workspace;
use super::open::{Opened, failed, function, open, text};
use crate::{DeviceBuffer, DeviceError, Stream};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

/// `cublasHandle_t`.
type Handle = *mut c_void;

/// `CUBLAS_OP_N`.
const OP_N: c_int = 0;
/// `CUBLAS_GEMM_DEFAULT`.
const GEMM_DEFAULT: c_int = -1;
/// `CUBLAS_COMPUTE_32F` and `CUBLAS_COMPUTE_64F`.
const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;

/// `cublasStatus_t`: out of memory, and what is not supported.
const ALLOC_FAILED: c_int = 3;
const NOT_SUPPORTED: [c_int; 2] = [8, 15];

/// Memory that the library may work in, bytes: what its manual recommends for compute capability 9.0 and
/// later.
const WORKSPACE_BYTES: u64 = 32 << 20;

type GemmEx = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    *const c_void,
    c_int,
    c_int,
    *const c_void,
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;

struct Functions {
    create: unsafe extern "C" fn(*mut Handle) -> c_int,
    set_stream: unsafe extern "C" fn(Handle, CUstream) -> c_int,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> c_int,
    status_name: unsafe extern "C" fn(c_int) -> *const c_char,
    status_text: unsafe extern "C" fn(c_int) -> *const c_char,
    gemm: GemmEx,
}

impl Functions {
    fn look_up(library: &'static Library) -> Result<Self, String> {
        // SAFETY: the types are those of cublas_api.h.
        unsafe {
            Ok(Self {
                create: function(library, "cublasCreate_v2")?,
                set_stream: function(library, "cublasSetStream_v2")?,
                set_workspace: function(library, "cublasSetWorkspace_v2")?,
                status_name: function(library, "cublasGetStatusName")?,
                status_text: function(library, "cublasGetStatusString")?,
                gemm: function(library, "cublasGemmEx")?,
            })
        }
    }

    fn check(&self, operation: &str, status: c_int) -> Result<(), DeviceError> {
        let code = match status {
            0 => return Ok(()),
            ALLOC_FAILED => FailureCode::OutOfMemory,
            status if NOT_SUPPORTED.contains(&status) => FailureCode::NotSupported,
            _ => FailureCode::LibraryFailed,
        };
        // SAFETY: both take any number and give a static text.
        let told = unsafe { (text((self.status_name)(status)), text((self.status_text)(status))) };
        Err(failed(operation, status, code, told))
    }
}

/// The library with a handle in the context of this thread, which queues to one stream.
pub(super) struct CuBlas {
    opened: Opened<Functions>,
    handle: Handle,
}

impl CuBlas {
    pub(super) fn open(candidates: &[PathBuf], stream: &Stream) -> Result<Self, DeviceError> {
        let cublas = open(VendorLibrary::CuBlas, candidates, |library, path: &Path| {
            let functions = Functions::look_up(library)?;
            let mut handle = null_mut();
            // SAFETY: writes one pointer.
            let status = unsafe { (functions.create)(&mut handle) };
            functions.check("create a handle", status).map_err(|error| error.to_string())?;
            Ok(Self { opened: Opened { functions, path: path.to_owned() }, handle })
        })?;
        // SAFETY: the handle was just made. The stream lives as long as the executor that holds both.
        let status = unsafe { (cublas.opened.functions.set_stream)(cublas.handle, stream.handle) };
        cublas.opened.functions.check("give cuBLAS a stream", status)?;
        Ok(cublas)
    }
}

/// One and zero as the library computes with them, which it reads on the host.
#[derive(Clone, Copy)]
enum Factors {
    Single([f32; 2]),
    Double([f64; 2]),
}

impl Factors {
    fn pointers(&self) -> [*const c_void; 2] {
        match self {
            Self::Single(both) => [0, 1].map(|at| (&raw const both[at]).cast()),
            Self::Double(both) => [0, 1].map(|at| (&raw const both[at]).cast()),
        }
    }
}

/// c = a·b, ready to be queued again and again.
pub(super) struct Gemm {
    library: Rc<CuBlas>,
    /// m, n, k.
    extents: [c_int; 3],
    /// `cudaDataType` of all three.
    data_type: c_int,
    compute: c_int,
    factors: Factors,
    workspace: DeviceBuffer,
    /// Addresses of a, b and c.
    addresses: [u64; 3],
}

impl Gemm {
    pub(super) fn new(
        library: &Rc<CuBlas>,
        dtype: Dtype,
        extents: [i64; 3],
        addresses: [u64; 3],
        stream: &Stream,
    ) -> Result<Self, DeviceError> {
        let narrow = extents.map(c_int::try_from);
        let [Ok(m), Ok(n), Ok(k)] = narrow else {
            let text = format!("{extents:?} are more than 32 bits hold");
            return Err(DeviceError::local("call cublasGemmEx", FailureCode::OutOfRange, text));
        };
        let (data_type, compute, factors) = match dtype {
            Dtype::Float64 => (1, COMPUTE_64F, Factors::Double([1.0, 0.0])),
            // CUDA_R_16F, CUDA_R_16BF and CUDA_R_32F.
            Dtype::Float16 => (2, COMPUTE_32F, Factors::Single([1.0, 0.0])),
            Dtype::Bfloat16 => (14, COMPUTE_32F, Factors::Single([1.0, 0.0])),
            _ => (0, COMPUTE_32F, Factors::Single([1.0, 0.0])),
        };
        let workspace = workspace(WORKSPACE_BYTES, stream)?;
        let (library, extents) = (Rc::clone(library), [m, n, k]);
        Ok(Self { library, extents, data_type, compute, factors, workspace, addresses })
    }

    /// Follows buffers that are elsewhere now.
    pub(super) fn set_addresses(&mut self, addresses: [u64; 3]) {
        self.addresses = addresses;
    }

    /// Queues the product.
    pub(super) fn queue(&self) -> Result<(), DeviceError> {
        let functions = &self.library.opened.functions;
        let handle = self.library.handle;
        let address = self.workspace.address() as usize as *mut c_void;
        // Another call may have set its own in between.
        // SAFETY: the handle is alive, and the memory for as long as the call.
        let status = unsafe { (functions.set_workspace)(handle, address, self.workspace.len()) };
        functions.check("give cuBLAS its workspace", status)?;
        let [m, n, k] = self.extents;
        let [a, b, c] = self.addresses.map(|address| address as usize as *mut c_void);
        let [alpha, beta] = self.factors.pointers();
        // What lies by rows is the transpose of what the library reads by columns, and
        // cᵀ = bᵀ·aᵀ: so b comes first, and its n columns are the rows of the result.
        // SAFETY: the handle is alive, and the buffers as large as the extents say, for which the caller
        // sees.
        let status = unsafe {
            (functions.gemm)(
                handle,
                OP_N,
                OP_N,
                n,
                m,
                k,
                alpha,
                b,
                self.data_type,
                n,
                a,
                self.data_type,
                k,
                beta,
                c,
                self.data_type,
                n,
                self.compute,
                GEMM_DEFAULT,
            )
        };
        let operation = format!("cublasGemmEx of {}", self.library.opened.path.display());
        functions.check(&operation, status)
    }

    /// The memory that it used beside the buffers.
    pub(super) fn into_memory(self) -> DeviceBuffer {
        self.workspace
    }
}
