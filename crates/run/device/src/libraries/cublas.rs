//! cuBLAS: the product of two dense matrices.
//!
//! Types and numbers are from `cublas_api.h` and `library_types.h` of CUDA 12.0 to 13.0.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::rc::Rc;

use super::open::{Kind, Loaded, Opaque, Opened, function};
use super::parts::{Factors, data_type, pointer, workspace};
use crate::{DeviceBuffer, DeviceError, Stream};
use warpgauge_model::{FailureCode, Library};
use warpgauge_tensor::Dtype;

/// `CUBLAS_OP_N`.
const OP_N: c_int = 0;
/// `CUBLAS_GEMM_DEFAULT`.
const GEMM_DEFAULT: c_int = -1;
/// `CUBLAS_COMPUTE_32F` and `CUBLAS_COMPUTE_64F`.
const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;

/// Codes of `cublasStatus_t`: out of memory, and unsupported operations.
const ALLOC_FAILED: c_int = 3;
const NOT_SUPPORTED: [c_int; 2] = [8, 15];

/// Size of the library's workspace, bytes. Its manual recommends this size for compute capability
/// 9.0 and later.
const WORKSPACE_BYTES: u64 = 32 << 20;

type GemmEx = unsafe extern "C" fn(
    Opaque,
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

pub(super) struct Functions {
    set_workspace: unsafe extern "C" fn(Opaque, *mut c_void, usize) -> c_int,
    gemm: GemmEx,
}

const CUBLAS: Kind<Functions> = Kind {
    library: Library::Cublas,
    common: [
        "cublasCreate_v2",
        "cublasSetStream_v2",
        "cublasGetStatusName",
        "cublasGetStatusString",
    ],
    code: |status| match status {
        ALLOC_FAILED => FailureCode::OutOfMemory,
        status if NOT_SUPPORTED.contains(&status) => FailureCode::NotSupported,
        _ => FailureCode::LibraryFailed,
    },
    look_up,
};

fn look_up(library: Loaded) -> Result<Functions, String> {
    // SAFETY: the types are those of cublas_api.h.
    unsafe {
        Ok(Functions {
            set_workspace: function(library, "cublasSetWorkspace_v2")?,
            gemm: function(library, "cublasGemmEx")?,
        })
    }
}

/// The cuBLAS library with a handle.
pub(super) type CuBlas = Opened<Functions>;

pub(super) fn open(candidates: &[PathBuf], stream: &Stream) -> Result<CuBlas, DeviceError> {
    Opened::new(&CUBLAS, candidates, stream)
}

/// The product c = a·b, ready for repeated calls.
pub(super) struct Gemm {
    library: Rc<CuBlas>,
    /// The extents m, n and k.
    extents: [c_int; 3],
    /// `cudaDataType` of the elements of all three matrices.
    data_type: c_int,
    compute: c_int,
    factors: Factors,
    workspace: DeviceBuffer,
    /// Addresses of the matrices a, b and c.
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
            let text = format!("extents {extents:?}: each must fit into 32 bits");
            return Err(DeviceError::local("call cublasGemmEx", FailureCode::OutOfRange, text));
        };
        let compute = if dtype == Dtype::Float64 { COMPUTE_64F } else { COMPUTE_32F };
        let (data_type, factors) = (data_type(dtype), Factors::of(dtype));
        let workspace = workspace(WORKSPACE_BYTES, stream)?;
        let (library, extents) = (Rc::clone(library), [m, n, k]);
        Ok(Self { library, extents, data_type, compute, factors, workspace, addresses })
    }

    /// Changes the addresses of the matrices.
    pub(super) fn set_addresses(&mut self, addresses: [u64; 3]) {
        self.addresses = addresses;
    }

    /// Queues the computation of the product.
    pub(super) fn queue(&self) -> Result<(), DeviceError> {
        let Opened { functions, handle, .. } = &*self.library;
        let address = pointer(self.workspace.address());
        // Another call may have set a different workspace in between.
        // SAFETY: the handle is alive, and the memory for as long as the call.
        let status = unsafe { (functions.set_workspace)(*handle, address, self.workspace.len()) };
        self.library.check("give cuBLAS its workspace", status)?;
        let [m, n, k] = self.extents;
        let [a, b, c] = self.addresses.map(pointer);
        let [alpha, beta] = self.factors.pointers();
        // A row-major matrix is the transpose of the column-major matrix that the library reads,
        // and cᵀ = bᵀ·aᵀ. So b comes first, and its n columns are the rows of the result.
        // SAFETY: the handle is alive, and the caller guarantees that the buffers are as large as
        // the extents say.
        let status = unsafe {
            (functions.gemm)(
                *handle,
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
        let operation = format!("cublasGemmEx of {}", self.library.path.display());
        self.library.check(&operation, status)
    }

    /// Returns the memory that the product used in addition to the buffers.
    pub(super) fn into_memory(self) -> DeviceBuffer {
        self.workspace
    }
}
