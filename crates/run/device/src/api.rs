//! Entry points of the driver, looked up by name.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUipcEventHandle, CUipcMemHandle,
    CUlaunchConfig, CUmodule, CUstream, CUtensorMap, CUuuid,
};
use libloading::Library;

use super::DeviceError;
use super::array::{ArrayDescription, CopyDescription};
use super::texture::{ResourceDescription, TextureDescription};

macro_rules! entry_points {
    (
        required { $($field:ident = $($symbol:literal)|+ : fn($($arg:ty),*);)* }
        optional { $($ofield:ident = $osymbol:literal : fn($($oarg:ty),*);)* }
    ) => {
        /// The driver's functions. Each returns a `CUresult` as a plain integer.
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) -> c_int,)*
            $(pub(super) $ofield: Option<unsafe extern "C" fn($($oarg),*) -> c_int>,)*
        }

        impl Api {
            /// Looks up all functions.
            ///
            /// # Errors
            /// Returns the name of the first required function that the library does not export.
            ///
            /// # Safety
            /// `library` is a CUDA driver library (or implements its interface), and stays open for
            /// the rest of the process.
            pub(super) unsafe fn look_up(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the caller vouches for the library; the types are those of cuda.h,
                    // where `CUresult` is an enum of C, i.e. an int.
                    $($field: unsafe { symbol(library, &[$($symbol),+])? },)*
                    // SAFETY: as above.
                    $($ofield: unsafe { symbol(library, &[$osymbol]).ok() },)*
                })
            }
        }
    };
}

/// Returns the first of `names` that the library exports.
///
/// # Safety
/// `T` is the type of that function.
unsafe fn symbol<T: Copy>(library: &Library, names: &[&'static str]) -> Result<T, &'static str> {
    for name in names {
        // SAFETY: the caller vouches for the type.
        if let Ok(found) = unsafe { library.get::<T>(name.as_bytes()) } {
            return Ok(*found);
        }
    }
    Err(names[0])
}

entry_points! {
    required {
        init = "cuInit": fn(c_uint);
        driver_version = "cuDriverGetVersion": fn(*mut c_int);
        error_name = "cuGetErrorName": fn(c_int, *mut *const c_char);
        error_string = "cuGetErrorString": fn(c_int, *mut *const c_char);
        device_count = "cuDeviceGetCount": fn(*mut c_int);
        device_get = "cuDeviceGet": fn(*mut CUdevice, c_int);
        device_name = "cuDeviceGetName": fn(*mut c_char, c_int, CUdevice);
        device_uuid = "cuDeviceGetUuid_v2" | "cuDeviceGetUuid": fn(*mut CUuuid, CUdevice);
        device_memory = "cuDeviceTotalMem_v2": fn(*mut usize, CUdevice);
        device_attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, CUdevice);
        device_pci = "cuDeviceGetPCIBusId": fn(*mut c_char, c_int, CUdevice);
        context_retain = "cuDevicePrimaryCtxRetain": fn(*mut CUcontext, CUdevice);
        context_set = "cuCtxSetCurrent": fn(CUcontext);
        context_synchronize = "cuCtxSynchronize": fn();
        context_get_limit = "cuCtxGetLimit": fn(*mut usize, c_int);
        memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize);
        module_load = "cuModuleLoadDataEx":
            fn(*mut CUmodule, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        module_unload = "cuModuleUnload": fn(CUmodule);
        module_function = "cuModuleGetFunction": fn(*mut CUfunction, CUmodule, *const c_char);
        module_global = "cuModuleGetGlobal_v2":
            fn(*mut CUdeviceptr, *mut usize, CUmodule, *const c_char);
        function_attribute = "cuFuncGetAttribute": fn(*mut c_int, c_int, CUfunction);
        function_set_attribute = "cuFuncSetAttribute": fn(CUfunction, c_int, c_int);
        occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor":
            fn(*mut c_int, CUfunction, c_int, usize);
        launch = "cuLaunchKernel": fn(
            CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream,
            *mut *mut c_void, *mut *mut c_void
        );
        stream_create = "cuStreamCreate": fn(*mut CUstream, c_uint);
        stream_destroy = "cuStreamDestroy_v2": fn(CUstream);
        stream_synchronize = "cuStreamSynchronize": fn(CUstream);
        stream_query = "cuStreamQuery": fn(CUstream);
        event_create = "cuEventCreate": fn(*mut CUevent, c_uint);
        event_destroy = "cuEventDestroy_v2": fn(CUevent);
        event_record = "cuEventRecord": fn(CUevent, CUstream);
        event_synchronize = "cuEventSynchronize": fn(CUevent);
        // Drivers of CUDA 12 before 12.8 have only the first form, with the same arguments.
        event_elapsed = "cuEventElapsedTime_v2" | "cuEventElapsedTime":
            fn(*mut f32, CUevent, CUevent);
        memory_alloc = "cuMemAlloc_v2": fn(*mut CUdeviceptr, usize);
        memory_free = "cuMemFree_v2": fn(CUdeviceptr);
        ipc_get_memory = "cuIpcGetMemHandle": fn(*mut CUipcMemHandle, CUdeviceptr);
        ipc_open_memory = "cuIpcOpenMemHandle_v2":
            fn(*mut CUdeviceptr, CUipcMemHandle, c_uint);
        ipc_close_memory = "cuIpcCloseMemHandle": fn(CUdeviceptr);
        ipc_get_event = "cuIpcGetEventHandle": fn(*mut CUipcEventHandle, CUevent);
        host_alloc = "cuMemHostAlloc": fn(*mut *mut c_void, usize, c_uint);
        host_free = "cuMemFreeHost": fn(*mut c_void);
        copy_to_device = "cuMemcpyHtoDAsync_v2":
            fn(CUdeviceptr, *const c_void, usize, CUstream);
        copy_to_host = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, CUdeviceptr, usize, CUstream);
        copy_on_device = "cuMemcpyDtoDAsync_v2":
            fn(CUdeviceptr, CUdeviceptr, usize, CUstream);
        fill = "cuMemsetD8Async": fn(CUdeviceptr, u8, usize, CUstream);
        fill_words = "cuMemsetD32Async": fn(CUdeviceptr, c_uint, usize, CUstream);
    }
    optional {
        launch_ex = "cuLaunchKernelEx": fn(
            *const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void
        );
        // Enumerations of cuda.h are ints.
        tensor_map_encode = "cuTensorMapEncodeTiled": fn(
            *mut CUtensorMap, c_uint, c_uint, *mut c_void, *const u64, *const u64, *const u32,
            *const u32, c_uint, c_uint, c_uint, c_uint
        );
        texture_create = "cuTexObjectCreate": fn(
            *mut u64, *const ResourceDescription, *const TextureDescription, *const c_void
        );
        texture_destroy = "cuTexObjectDestroy": fn(u64);
        surface_create = "cuSurfObjectCreate": fn(*mut u64, *const ResourceDescription);
        surface_destroy = "cuSurfObjectDestroy": fn(u64);
        array_create = "cuArray3DCreate_v2": fn(*mut *mut c_void, *const ArrayDescription);
        array_destroy = "cuArrayDestroy": fn(*mut c_void);
        copy_rows = "cuMemcpy3DAsync_v2": fn(*const CopyDescription, CUstream);
        reset_persisting_l2 = "cuCtxResetPersistingL2Cache": fn();
        address_range = "cuMemGetAddressRange_v2":
            fn(*mut CUdeviceptr, *mut usize, CUdeviceptr);
        profiler_start = "cuProfilerStart": fn();
        profiler_stop = "cuProfilerStop": fn();
        link_create = "cuLinkCreate_v2":
            fn(c_uint, *mut c_int, *mut *mut c_void, *mut *mut c_void);
        link_add = "cuLinkAddData_v2": fn(
            *mut c_void, c_int, *mut c_void, usize, *const c_char, c_uint, *mut c_int,
            *mut *mut c_void
        );
        link_complete = "cuLinkComplete": fn(*mut c_void, *mut *mut c_void, *mut usize);
        link_destroy = "cuLinkDestroy": fn(*mut c_void);
        pointer_attribute = "cuPointerGetAttribute": fn(*mut c_void, c_int, CUdeviceptr);
    }
}

impl Api {
    /// Converts a result code to a result.
    pub(super) fn check(&self, number: c_int, operation: &str) -> Result<(), DeviceError> {
        if number == 0 {
            return Ok(());
        }
        Err(self.error(number, operation))
    }

    /// Returns the error that a result code of the driver describes.
    pub(super) fn error(&self, number: c_int, operation: &str) -> DeviceError {
        DeviceError {
            operation: operation.to_owned(),
            code: super::error_code(number),
            number,
            name: self.text(self.error_name, number).into(),
            text: self.text(self.error_string, number),
            detail: String::new(),
            elsewhere: false,
        }
    }

    fn text(
        &self,
        function: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
        number: c_int,
    ) -> String {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: both functions take any number and write a pointer to a static string, or null.
        let result = unsafe { function(number, &mut text) };
        if result != 0 || text.is_null() {
            return format!("error {number}, unknown to this driver");
        }
        // SAFETY: not null, and a NUL-terminated string that the driver owns.
        let text = unsafe { std::ffi::CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }
}
