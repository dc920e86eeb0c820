//! Calls of library functions, bound to buffers.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;

use super::TypedLibraryFunction;
use super::cublas::{self, CuBlas, Gemm};
use super::cusparse::{self, CuSparse, Spmv};
use crate::{DeviceBuffer, DeviceError, Stream};
use warpgauge_model::FailureCode;

/// The libraries that a process calls. Each is opened when it is first used.
pub struct Libraries {
    /// Paths of library files to try, best first.
    candidates: Vec<PathBuf>,
    cusparse: OnceCell<Rc<CuSparse>>,
    cublas: OnceCell<Rc<CuBlas>>,
}

impl Libraries {
    /// Creates the set of libraries without opening any.
    pub fn new(candidates: Vec<PathBuf>) -> Self {
        Self { candidates, cusparse: OnceCell::new(), cublas: OnceCell::new() }
    }

    /// Binds a function to buffers, and allocates the memory that it needs in addition. Calls are
    /// queued on `stream`, which must be the same for all calls and must outlive them. Nothing is
    /// computed yet.
    ///
    /// [`TypedLibraryFunction`] describes extents and buffers; each buffer must hold the
    /// corresponding number of elements.
    ///
    /// # Errors
    /// Returns `no_library` if no library works, or an error of the library or the driver.
    pub fn bind(
        &self,
        function: TypedLibraryFunction,
        extents: &[i64],
        addresses: &[u64],
        stream: &Stream,
    ) -> Result<LibraryCall, DeviceError> {
        let Ok(extents) = <[i64; 3]>::try_from(extents) else { return Err(arity(function)) };
        let call = match function {
            TypedLibraryFunction::Spmv(dtype) => {
                let addresses = addresses.try_into().map_err(|_| arity(function))?;
                let library = once(&self.cusparse, || cusparse::open(&self.candidates, stream))?;
                Call::Spmv(Spmv::new(library, dtype, extents, addresses, stream)?)
            }
            TypedLibraryFunction::Gemm(dtype) => {
                let addresses = addresses.try_into().map_err(|_| arity(function))?;
                let library = once(&self.cublas, || cublas::open(&self.candidates, stream))?;
                Call::Gemm(Gemm::new(library, dtype, extents, addresses, stream)?)
            }
        };
        Ok(LibraryCall { function, call })
    }
}

fn once<T>(
    cell: &OnceCell<Rc<T>>,
    open: impl FnOnce() -> Result<T, DeviceError>,
) -> Result<&Rc<T>, DeviceError> {
    match cell.get() {
        Some(opened) => Ok(opened),
        None => {
            let opened = Rc::new(open()?);
            Ok(cell.get_or_init(|| opened))
        }
    }
}

fn arity(function: TypedLibraryFunction) -> DeviceError {
    let (extents, buffers) = function.arity();
    let text = format!("it takes {extents} extents and {buffers} buffers");
    DeviceError::local(format!("call {}", function.symbol()), FailureCode::InternalError, text)
}

/// A function with its buffers, ready for repeated calls.
pub struct LibraryCall {
    function: TypedLibraryFunction,
    call: Call,
}

enum Call {
    Spmv(Spmv),
    Gemm(Gemm),
}

impl LibraryCall {
    /// Changes the addresses of the buffers that later calls use.
    ///
    /// # Errors
    /// Fails if the library rejects the addresses.
    pub fn set_addresses(&mut self, addresses: &[u64]) -> Result<(), DeviceError> {
        let wrong = |_| arity(self.function);
        match &mut self.call {
            Call::Spmv(spmv) => spmv.set_addresses(addresses.try_into().map_err(wrong)?),
            Call::Gemm(gemm) => {
                gemm.set_addresses(addresses.try_into().map_err(wrong)?);
                Ok(())
            }
        }
    }

    /// Queues one call.
    ///
    /// # Errors
    /// Fails if the library rejects the call or an earlier fault made the context unusable.
    pub fn queue(&self) -> Result<(), DeviceError> {
        match &self.call {
            Call::Spmv(spmv) => spmv.queue(),
            Call::Gemm(gemm) => gemm.queue(),
        }
    }

    /// Returns the memory that calls used in addition to the buffers.
    pub fn into_memory(self) -> DeviceBuffer {
        match self.call {
            Call::Spmv(spmv) => spmv.into_memory(),
            Call::Gemm(gemm) => gemm.into_memory(),
        }
    }
}
