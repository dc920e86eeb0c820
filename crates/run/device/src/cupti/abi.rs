//! Declares the parameter structures and functions of CUPTI that this crate uses.
//!
//! They are declared here instead of taken from cudarc. Its `cupti` feature includes the CUDA
//! runtime's bindings, panics if a symbol is missing, and returns codes as a Rust enum. A code of a
//! newer library would then be undefined behaviour.
//!
//! Each structure begins with its size as the caller knows it. CUPTI rejects a structure that is
//! larger than its own and accepts a smaller one. The structures therefore have the fields of CUPTI
//! 12.6, the first version with this interface; 12.9 and 13.0 have the same fields.

use std::ffi::{c_char, c_int, c_void};

use cudarc::driver::sys::{CUcontext, CUdevice};
use libloading::Library;

/// Defines C structures of parameters. All of their fields except the size are zero by default.
macro_rules! params {
    ($($(#[$doc:meta])* $name:ident, $size:literal { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub(super) struct $name {
            struct_size: usize,
            private: *mut c_void,
            $(pub $field: $type,)*
        }

        impl $name {
            pub(super) fn new() -> Self {
                // SAFETY: all fields are integers, pointers and arrays of them, for which zero is
                // a value.
                let mut params: Self = unsafe { std::mem::zeroed() };
                params.struct_size = $size;
                params
            }
        }

        // The size that CUPTI reads ends with the last field. The structure itself may be padded.
        const _: () = {
            let ends: &[usize] =
                &[16, $(std::mem::offset_of!($name, $field) + size_of::<$type>()),*];
            assert!(ends[ends.len() - 1] == $size);
        };
    )*};
}

params! {
    /// `CUpti_Profiler_Initialize_Params`, also used for `cuptiProfilerDeInitialize`.
    Initialize, 16 {}
    /// `CUpti_Profiler_DeviceSupported_Params`.
    DeviceSupported, 52 {
        device: CUdevice,
        supported: c_int,
        architecture: c_int,
        sli: c_int,
        vgpu: c_int,
        confidential_compute: c_int,
        cmp: c_int,
        wsl: c_int,
        api: c_int,
    }
    /// `CUpti_Device_GetChipName_Params`.
    ChipName, 32 { device: usize, name: *const c_char, }
    /// `CUpti_Profiler_GetCounterAvailability_Params`.
    CounterAvailability, 40 { context: CUcontext, size: usize, image: *mut u8, }
    /// `CUpti_Profiler_Host_Initialize_Params`.
    HostInitialize, 48 {
        kind: c_int,
        chip: *const c_char,
        availability: *const u8,
        object: *mut c_void,
    }
    /// `CUpti_Profiler_Host_Deinitialize_Params`.
    HostDeinitialize, 24 { object: *mut c_void, }
    /// `CUpti_Profiler_Host_ConfigAddMetrics_Params`.
    HostAddMetrics, 40 { object: *mut c_void, names: *const *const c_char, count: usize, }
    /// `CUpti_Profiler_Host_GetConfigImageSize_Params`.
    HostImageSize, 32 { object: *mut c_void, size: usize, }
    /// `CUpti_Profiler_Host_GetConfigImage_Params`.
    HostImage, 40 { object: *mut c_void, size: usize, image: *mut u8, }
    /// `CUpti_Profiler_Host_GetNumOfPasses_Params`.
    HostPasses, 40 { size: usize, image: *const u8, passes: usize, }
    /// `CUpti_Profiler_Host_GetSupportedChips_Params`.
    HostChips, 32 { count: usize, names: *const *const c_char, }
    /// `CUpti_Profiler_Host_EvaluateToGpuValues_Params`.
    HostEvaluate, 72 {
        object: *mut c_void,
        data: *const u8,
        size: usize,
        range: usize,
        names: *const *const c_char,
        count: usize,
        values: *mut f64,
    }
    /// `CUpti_RangeProfiler_Enable_Params`.
    RangeEnable, 32 { context: CUcontext, object: *mut c_void, }
    /// `CUpti_RangeProfiler_Disable_Params`, and the parameters of `Start`, which have the same
    /// fields.
    RangeObject, 24 { object: *mut c_void, }
    /// `CUpti_RangeProfiler_GetCounterDataSize_Params`.
    RangeDataSize, 64 {
        object: *mut c_void,
        names: *const *const c_char,
        count: usize,
        ranges: usize,
        nodes: u32,
        size: usize,
    }
    /// `CUpti_RangeProfiler_CounterDataImage_Initialize_Params`.
    RangeDataInitialize, 40 { object: *mut c_void, size: usize, data: *mut u8, }
    /// `CUpti_RangeProfiler_SetConfig_Params`.
    RangeSetConfig, 90 {
        object: *mut c_void,
        config_size: usize,
        config: *const u8,
        data_size: usize,
        data: *mut u8,
        range: c_int,
        replay: c_int,
        ranges_per_pass: usize,
        nesting_levels: u16,
        first_nesting_level: u16,
        pass: usize,
        target_nesting_level: u16,
    }
    /// `CUpti_RangeProfiler_Stop_Params`.
    RangeStop, 41 {
        object: *mut c_void,
        pass: usize,
        target_nesting_level: usize,
        all_passes_submitted: u8,
    }
    /// `CUpti_RangeProfiler_DecodeData_Params`.
    RangeDecode, 32 { object: *mut c_void, dropped: usize, }
    /// `CUpti_RangeProfiler_GetCounterDataInfo_Params`.
    RangeDataInfo, 40 { data: *const u8, size: usize, ranges: usize, }
}

/// `CUPTI_PROFILER_TYPE_RANGE_PROFILER`.
pub(super) const RANGE_PROFILER: c_int = 0;
/// `CUPTI_AutoRange`: each launch is a range, which extends from the beginning to the end of the
/// launch. Ranges that the user marks (`CUPTI_UserRange`) include the host's time for the launch,
/// some 5 µs.
pub(super) const AUTO_RANGE: c_int = 1;
/// `CUPTI_UserReplay`: the caller runs the kernel again for each pass.
pub(super) const USER_REPLAY: c_int = 3;
/// `CUPTI_PROFILER_RANGE_PROFILING`.
pub(super) const RANGE_PROFILING: c_int = 0;
/// `CUPTI_PROFILER_CONFIGURATION_SUPPORTED`.
pub(super) const SUPPORTED: c_int = 3;

macro_rules! functions {
    ($($field:ident = $symbol:literal ($params:ty);)*) => {
        /// CUPTI's functions. Each returns a `CUptiResult` as a plain integer.
        pub(super) struct Functions {
            $(pub $field: unsafe extern "C" fn(*mut $params) -> c_int,)*
            pub version: unsafe extern "C" fn(*mut u32) -> c_int,
            pub result_string: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
        }

        impl Functions {
            /// Looks up all functions.
            ///
            /// # Errors
            /// Returns the name of the first function that the library does not export.
            ///
            /// # Safety
            /// `library` is CUPTI, and stays open for the rest of the process.
            pub(super) unsafe fn look_up(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the caller vouches for the library; the types are those of
                        // CUPTI's headers, where `CUptiResult` is an enum of C, i.e. an int.
                        let found = unsafe { library.get($symbol.as_bytes()) };
                        *found.map_err(|_| $symbol)?
                    },)*
                    version: {
                        // SAFETY: as above.
                        let found = unsafe { library.get(b"cuptiGetVersion") };
                        *found.map_err(|_| "cuptiGetVersion")?
                    },
                    result_string: {
                        // SAFETY: as above.
                        let found = unsafe { library.get(b"cuptiGetResultString") };
                        *found.map_err(|_| "cuptiGetResultString")?
                    },
                })
            }
        }
    };
}

functions! {
    initialize = "cuptiProfilerInitialize" (Initialize);
    device_supported = "cuptiProfilerDeviceSupported" (DeviceSupported);
    counter_availability = "cuptiProfilerGetCounterAvailability" (CounterAvailability);
    chip_name = "cuptiDeviceGetChipName" (ChipName);
    host_initialize = "cuptiProfilerHostInitialize" (HostInitialize);
    host_deinitialize = "cuptiProfilerHostDeinitialize" (HostDeinitialize);
    host_chips = "cuptiProfilerHostGetSupportedChips" (HostChips);
    host_add_metrics = "cuptiProfilerHostConfigAddMetrics" (HostAddMetrics);
    host_image_size = "cuptiProfilerHostGetConfigImageSize" (HostImageSize);
    host_image = "cuptiProfilerHostGetConfigImage" (HostImage);
    host_passes = "cuptiProfilerHostGetNumOfPasses" (HostPasses);
    host_evaluate = "cuptiProfilerHostEvaluateToGpuValues" (HostEvaluate);
    range_enable = "cuptiRangeProfilerEnable" (RangeEnable);
    range_disable = "cuptiRangeProfilerDisable" (RangeObject);
    range_data_size = "cuptiRangeProfilerGetCounterDataSize" (RangeDataSize);
    range_data_initialize =
        "cuptiRangeProfilerCounterDataImageInitialize" (RangeDataInitialize);
    range_set_config = "cuptiRangeProfilerSetConfig" (RangeSetConfig);
    range_start = "cuptiRangeProfilerStart" (RangeObject);
    range_stop = "cuptiRangeProfilerStop" (RangeStop);
    range_decode = "cuptiRangeProfilerDecodeData" (RangeDecode);
    range_data_info = "cuptiRangeProfilerGetCounterDataInfo" (RangeDataInfo);
}
