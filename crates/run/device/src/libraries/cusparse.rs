//! cuSPARSE: the product of a sparse matrix and a vector, through the generic interface.
//!
//! Types and numbers are from `cusparse.h` and `library_types.h` of CUDA 12.0 to 13.0.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::rc::Rc;

use super::open::{Kind, Loaded, Opaque, Opened, function};
use super::parts::{Factors, data_type, pointer, workspace};
use crate::{DeviceBuffer, DeviceError, Stream};
use warpgauge_model::{FailureCode, Library};
use warpgauge_tensor::Dtype;

/// `CUSPARSE_OPERATION_NON_TRANSPOSE`.
const NON_TRANSPOSE: c_int = 0;
/// `CUSPARSE_INDEX_32I`.
const INDEX_32I: c_int = 2;
/// `CUSPARSE_INDEX_BASE_ZERO`.
const INDEX_BASE_ZERO: c_int = 0;
/// `CUSPARSE_SPMV_ALG_DEFAULT`.
const ALG_DEFAULT: c_int = 0;
/// Codes of `cusparseStatus_t`: out of memory on the host or the device, and unsupported
/// operations.
const ALLOC_FAILED: c_int = 2;
const NOT_SUPPORTED: [c_int; 3] = [4, 8, 10];
const INSUFFICIENT_RESOURCES: c_int = 11;

pub(super) struct Functions {
    create_csr: unsafe extern "C" fn(
        *mut Opaque,
        i64,
        i64,
        i64,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        c_int,
        c_int,
        c_int,
        c_int,
    ) -> c_int,
    csr_set_pointers: unsafe extern "C" fn(Opaque, *mut c_void, *mut c_void, *mut c_void) -> c_int,
    destroy_matrix: unsafe extern "C" fn(Opaque) -> c_int,
    create_vector: unsafe extern "C" fn(*mut Opaque, i64, *mut c_void, c_int) -> c_int,
    vector_set_values: unsafe extern "C" fn(Opaque, *mut c_void) -> c_int,
    destroy_vector: unsafe extern "C" fn(Opaque) -> c_int,
    spmv_buffer_size: unsafe extern "C" fn(
        Opaque,
        c_int,
        *const c_void,
        Opaque,
        Opaque,
        *const c_void,
        Opaque,
        c_int,
        c_int,
        *mut usize,
    ) -> c_int,
    spmv: unsafe extern "C" fn(
        Opaque,
        c_int,
        *const c_void,
        Opaque,
        Opaque,
        *const c_void,
        Opaque,
        c_int,
        c_int,
        *mut c_void,
    ) -> c_int,
}

const CUSPARSE: Kind<Functions> = Kind {
    library: Library::Cusparse,
    common: [
        "cusparseCreate",
        "cusparseSetStream",
        "cusparseGetErrorName",
        "cusparseGetErrorString",
    ],
    code: |status| match status {
        ALLOC_FAILED | INSUFFICIENT_RESOURCES => FailureCode::OutOfMemory,
        status if NOT_SUPPORTED.contains(&status) => FailureCode::NotSupported,
        _ => FailureCode::LibraryFailed,
    },
    look_up,
};

fn look_up(library: Loaded) -> Result<Functions, String> {
    // SAFETY: the types are those of cusparse.h.
    unsafe {
        Ok(Functions {
            create_csr: function(library, "cusparseCreateCsr")?,
            csr_set_pointers: function(library, "cusparseCsrSetPointers")?,
            destroy_matrix: function(library, "cusparseDestroySpMat")?,
            create_vector: function(library, "cusparseCreateDnVec")?,
            vector_set_values: function(library, "cusparseDnVecSetValues")?,
            destroy_vector: function(library, "cusparseDestroyDnVec")?,
            spmv_buffer_size: function(library, "cusparseSpMV_bufferSize")?,
            spmv: function(library, "cusparseSpMV")?,
        })
    }
}

/// The cuSPARSE library with a handle.
pub(super) type CuSparse = Opened<Functions>;

pub(super) fn open(candidates: &[PathBuf], stream: &Stream) -> Result<CuSparse, DeviceError> {
    Opened::new(&CUSPARSE, candidates, stream)
}

/// A descriptor of cuSPARSE, and the function that destroys it.
struct Descriptor {
    handle: Opaque,
    destroy: unsafe extern "C" fn(Opaque) -> c_int,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the library created it, and it is destroyed once.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// The product y = A·x, ready for repeated calls.
pub(super) struct Spmv {
    library: Rc<CuSparse>,
    matrix: Descriptor,
    x: Descriptor,
    y: Descriptor,
    /// `cudaDataType` of the elements.
    data_type: c_int,
    factors: Factors,
    workspace: DeviceBuffer,
    /// Addresses of values, col_indices, row_ptr, x and y.
    addresses: [u64; 5],
}

impl Spmv {
    /// Creates the descriptors and allocates the memory that the library requests. Does not read
    /// elements.
    pub(super) fn new(
        library: &Rc<CuSparse>,
        dtype: Dtype,
        [rows, cols, nnz]: [i64; 3],
        addresses: [u64; 5],
        stream: &Stream,
    ) -> Result<Self, DeviceError> {
        let functions = &library.functions;
        let (data_type, factors) = (data_type(dtype), Factors::of(dtype));
        let [values, col_indices, row_ptr, x, y] = addresses;
        let mut handle = null_mut();
        // SAFETY: writes one pointer; the addresses are stored and not dereferenced. The caller
        // guarantees that sizes and types are those of the buffers.
        let status = unsafe {
            (functions.create_csr)(
                &mut handle,
                rows,
                cols,
                nnz,
                pointer(row_ptr),
                pointer(col_indices),
                pointer(values),
                INDEX_32I,
                INDEX_32I,
                INDEX_BASE_ZERO,
                data_type,
            )
        };
        library.check("describe the matrix to cuSPARSE", status)?;
        let matrix = Descriptor { handle, destroy: functions.destroy_matrix };
        let vector = |length: i64, address: u64| {
            let mut handle = null_mut();
            // SAFETY: as above.
            let status = unsafe {
                (functions.create_vector)(&mut handle, length, pointer(address), data_type)
            };
            library.check("describe a vector to cuSPARSE", status)?;
            Ok::<_, DeviceError>(Descriptor { handle, destroy: functions.destroy_vector })
        };
        let (x, y) = (vector(cols, x)?, vector(rows, y)?);
        let [alpha, beta] = factors.pointers();
        let mut bytes = 0usize;
        // SAFETY: handle and descriptors are alive; writes one size_t.
        let status = unsafe {
            (functions.spmv_buffer_size)(
                library.handle,
                NON_TRANSPOSE,
                alpha,
                matrix.handle,
                x.handle,
                beta,
                y.handle,
                data_type,
                ALG_DEFAULT,
                &mut bytes,
            )
        };
        library.check("query the size of cuSPARSE's workspace", status)?;
        let workspace = workspace(bytes as u64, stream)?;
        Ok(Self {
            library: Rc::clone(library),
            matrix,
            x,
            y,
            data_type,
            factors,
            workspace,
            addresses,
        })
    }

    /// Changes the addresses of the buffers.
    pub(super) fn set_addresses(&mut self, addresses: [u64; 5]) -> Result<(), DeviceError> {
        const OPERATION: &str = "set the buffers of cuSPARSE";
        if self.addresses == addresses {
            return Ok(());
        }
        let functions = &self.library.functions;
        let [values, col_indices, row_ptr, x, y] = addresses;
        // SAFETY: the descriptors are alive; the addresses are stored and not dereferenced.
        let (matrix, x, y) = unsafe {
            (
                (functions.csr_set_pointers)(
                    self.matrix.handle,
                    pointer(row_ptr),
                    pointer(col_indices),
                    pointer(values),
                ),
                (functions.vector_set_values)(self.x.handle, pointer(x)),
                (functions.vector_set_values)(self.y.handle, pointer(y)),
            )
        };
        for status in [matrix, x, y] {
            self.library.check(OPERATION, status)?;
        }
        self.addresses = addresses;
        Ok(())
    }

    /// Queues the computation of the product.
    pub(super) fn queue(&self) -> Result<(), DeviceError> {
        let functions = &self.library.functions;
        let [alpha, beta] = self.factors.pointers();
        // SAFETY: all handles are alive, and the caller guarantees that the buffers are as large as
        // described. Indices that are out of range are read on the device, as a kernel's would be.
        let status = unsafe {
            (functions.spmv)(
                self.library.handle,
                NON_TRANSPOSE,
                alpha,
                self.matrix.handle,
                self.x.handle,
                beta,
                self.y.handle,
                self.data_type,
                ALG_DEFAULT,
                pointer(self.workspace.address()),
            )
        };
        let operation = format!("cusparseSpMV of {}", self.library.path.display());
        self.library.check(&operation, status)
    }

    /// Returns the memory that the product used in addition to the buffers.
    pub(super) fn into_memory(self) -> DeviceBuffer {
        self.workspace
    }
}
