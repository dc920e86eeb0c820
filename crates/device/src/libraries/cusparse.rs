//! cuSPARSE: the product of a sparse matrix and a vector, by its generic interface.
//!
//! Types and numbers are those of `cusparse.h` and `library_types.h` of CUDA 12.0 to 13.0.

use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::rc::Rc;

use cudarc::driver::sys::CUstream;
use libloading::Library;

use super::VendorLibrary;
use super::open::{Opened, failed, function, open, text};
use crate::{DeviceBuffer, DeviceError, Stream};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

/// `cusparseHandle_t`, and descriptors: pointers to what only the library knows.
type Opaque = *mut c_void;

/// `CUSPARSE_OPERATION_NON_TRANSPOSE`.
const NON_TRANSPOSE: c_int = 0;
/// `CUSPARSE_INDEX_32I`.
const INDEX_32I: c_int = 2;
/// `CUSPARSE_INDEX_BASE_ZERO`.
const INDEX_BASE_ZERO: c_int = 0;
/// `CUSPARSE_SPMV_ALG_DEFAULT`.
const ALG_DEFAULT: c_int = 0;
/// `CUDA_R_32F` and `CUDA_R_64F`.
const R_32F: c_int = 0;
const R_64F: c_int = 1;

/// `cusparseStatus_t`: out of memory on either side, and what is not supported.
const ALLOC_FAILED: c_int = 2;
const NOT_SUPPORTED: [c_int; 3] = [4, 8, 10];
const INSUFFICIENT_RESOURCES: c_int = 11;

/// Most memory that the library may ask for beside its arguments, bytes.
const MAX_WORKSPACE: u64 = 8 << 30;

struct Functions {
    create: unsafe extern "C" fn(*mut Opaque) -> c_int,
    set_stream: unsafe extern "C" fn(Opaque, CUstream) -> c_int,
    error_name: unsafe extern "C" fn(c_int) -> *const c_char,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
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

impl Functions {
    fn look_up(library: &'static Library) -> Result<Self, String> {
        // SAFETY: the types are those of cusparse.h.
        unsafe {
            Ok(Self {
                create: function(library, "cusparseCreate")?,
                set_stream: function(library, "cusparseSetStream")?,
                error_name: function(library, "cusparseGetErrorName")?,
                error_text: function(library, "cusparseGetErrorString")?,
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

    fn check(&self, operation: &str, status: c_int) -> Result<(), DeviceError> {
        let code = match status {
            0 => return Ok(()),
            ALLOC_FAILED | INSUFFICIENT_RESOURCES => FailureCode::OutOfMemory,
            status if NOT_SUPPORTED.contains(&status) => FailureCode::NotSupported,
            _ => FailureCode::LibraryFailed,
        };
        // SAFETY: both take any number and give a static text.
        let told = unsafe { (text((self.error_name)(status)), text((self.error_text)(status))) };
        Err(failed(operation, status, code, told))
    }
}

/// The library with a handle in the context of this thread, which queues to one stream.
pub(super) struct CuSparse {
    opened: Opened<Functions>,
    handle: Opaque,
}

impl CuSparse {
    pub(super) fn open(candidates: &[PathBuf], stream: &Stream) -> Result<Self, DeviceError> {
        let cusparse = open(VendorLibrary::CuSparse, candidates, |library, path: &Path| {
            let functions = Functions::look_up(library)?;
            let mut handle = null_mut();
            // SAFETY: writes one pointer.
            let status = unsafe { (functions.create)(&mut handle) };
            functions.check("create a handle", status).map_err(|error| error.to_string())?;
            Ok(Self { opened: Opened { functions, path: path.to_owned() }, handle })
        })?;
        // SAFETY: the handle was just made. The stream lives as long as the executor that holds both.
        let status =
            unsafe { (cusparse.opened.functions.set_stream)(cusparse.handle, stream.handle) };
        cusparse.opened.functions.check("give cuSPARSE a stream", status)?;
        Ok(cusparse)
    }
}

/// One and zero of an element type, which the library reads on the host.
#[derive(Clone, Copy)]
enum Factors {
    Single([f32; 2]),
    Double([f64; 2]),
}

impl Factors {
    fn of(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Float64 => Self::Double([1.0, 0.0]),
            _ => Self::Single([1.0, 0.0]),
        }
    }

    fn data_type(&self) -> c_int {
        match self {
            Self::Single(_) => R_32F,
            Self::Double(_) => R_64F,
        }
    }

    fn pointers(&self) -> [*const c_void; 2] {
        match self {
            Self::Single(both) => [0, 1].map(|at| (&raw const both[at]).cast()),
            Self::Double(both) => [0, 1].map(|at| (&raw const both[at]).cast()),
        }
    }
}

/// A descriptor, and how it is given up.
struct Descriptor {
    handle: Opaque,
    destroy: unsafe extern "C" fn(Opaque) -> c_int,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the library made it, and it is given up once.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// y = A·x, ready to be queued again and again.
pub(super) struct Spmv {
    library: Rc<CuSparse>,
    matrix: Descriptor,
    x: Descriptor,
    y: Descriptor,
    factors: Factors,
    workspace: DeviceBuffer,
    /// Addresses of values, col_indices, row_ptr, x and y.
    addresses: [u64; 5],
}

fn pointer(address: u64) -> *mut c_void {
    address as usize as *mut c_void
}

impl Spmv {
    /// Makes the descriptors and allocates what the library asks for. No element is read.
    pub(super) fn new(
        library: &Rc<CuSparse>,
        dtype: Dtype,
        [rows, cols, nnz]: [i64; 3],
        addresses: [u64; 5],
        stream: &Stream,
    ) -> Result<Self, DeviceError> {
        let functions = &library.opened.functions;
        let factors = Factors::of(dtype);
        let [values, col_indices, row_ptr, x, y] = addresses;
        let mut handle = null_mut();
        // SAFETY: writes one pointer; the addresses are kept and not followed. Sizes and types are those
        // of the buffers, for which the caller sees.
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
                factors.data_type(),
            )
        };
        functions.check("describe the matrix to cuSPARSE", status)?;
        let matrix = Descriptor { handle, destroy: functions.destroy_matrix };
        let vector = |length: i64, address: u64| {
            let mut handle = null_mut();
            // SAFETY: as above.
            let status = unsafe {
                (functions.create_vector)(
                    &mut handle,
                    length,
                    pointer(address),
                    factors.data_type(),
                )
            };
            functions.check("describe a vector to cuSPARSE", status)?;
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
                factors.data_type(),
                ALG_DEFAULT,
                &mut bytes,
            )
        };
        functions.check("ask cuSPARSE for the size of its workspace", status)?;
        let workspace = workspace(bytes as u64, stream)?;
        Ok(Self { library: Rc::clone(library), matrix, x, y, factors, workspace, addresses })
    }

    /// Follows buffers that are elsewhere now.
    pub(super) fn set_addresses(&mut self, addresses: [u64; 5]) -> Result<(), DeviceError> {
        const OPERATION: &str = "tell cuSPARSE where the buffers are";
        if self.addresses == addresses {
            return Ok(());
        }
        let functions = &self.library.opened.functions;
        let [values, col_indices, row_ptr, x, y] = addresses;
        // SAFETY: the descriptors are alive; the addresses are kept and not followed.
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
            functions.check(OPERATION, status)?;
        }
        self.addresses = addresses;
        Ok(())
    }

    /// Queues the product.
    pub(super) fn queue(&self) -> Result<(), DeviceError> {
        let functions = &self.library.opened.functions;
        let [alpha, beta] = self.factors.pointers();
        // SAFETY: all handles are alive, and the buffers as large as they were described, for which the
        // caller sees. Indices that lead elsewhere are read on the device, as a kernel's would be.
        let status = unsafe {
            (functions.spmv)(
                self.library.handle,
                NON_TRANSPOSE,
                alpha,
                self.matrix.handle,
                self.x.handle,
                beta,
                self.y.handle,
                self.factors.data_type(),
                ALG_DEFAULT,
                pointer(self.workspace.address()),
            )
        };
        let operation = format!("cusparseSpMV of {}", self.library.opened.path.display());
        functions.check(&operation, status)
    }

    /// The memory that it used beside the buffers.
    pub(super) fn into_memory(self) -> DeviceBuffer {
        self.workspace
    }
}

/// Memory that a library works in, zeroed.
pub(super) fn workspace(bytes: u64, stream: &Stream) -> Result<DeviceBuffer, DeviceError> {
    const WHAT: &str = "the workspace of a library";
    if bytes > MAX_WORKSPACE {
        let text = format!("it wants {bytes} bytes, and may have {MAX_WORKSPACE}");
        return Err(DeviceError::local(format!("allocate {WHAT}"), FailureCode::OutOfMemory, text));
    }
    let memory = DeviceBuffer::new(stream.context(), bytes, WHAT)?;
    memory.fill(0, stream)?;
    Ok(memory)
}
