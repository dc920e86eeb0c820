//! The codes of the runtime API: names, texts, and the thread's last error.
//!
//! Most codes are the driver's codes, with the same numbers and texts. This module contains the
//! texts of the codes that only the runtime has.

use std::ffi::{CStr, c_char};

use super::call::{last_error, take_last_error};
use crate::driver::c::code::{Code, text};

/// `cudaErrorInvalidConfiguration`: the grid or the block exceeds the limits that apply to every
/// kernel.
pub const INVALID_CONFIGURATION: Code = Code(9);
/// `cudaErrorInvalidPitchValue`: the pitch is smaller than a row.
pub const INVALID_PITCH: Code = Code(12);
/// `cudaErrorInvalidSymbol`: the symbol is not a variable of the program.
pub const INVALID_SYMBOL: Code = Code(13);
/// `cudaErrorInvalidMemcpyDirection`: the kind is invalid, or not valid for this copy.
pub const INVALID_DIRECTION: Code = Code(21);
/// `cudaErrorMissingConfiguration`: a kernel was launched without `<<<>>>`.
pub const MISSING_CONFIGURATION: Code = Code(52);
/// `cudaErrorInvalidDeviceFunction`: the symbol is not a kernel of the program.
pub const INVALID_FUNCTION: Code = Code(98);

/// Text for a number that is not an error code.
const UNKNOWN: &CStr = c"unrecognized error code";

macro_rules! codes {
    ($($value:literal $name:literal $($text:literal)?;)*) => {
        /// The code, name and text of each error, ascending by code. The text is `None` if it is
        /// that of the driver.
        static TABLE: &[(u32, &CStr, Option<&CStr>)] = &[
            $(($value, $name, codes!(@text $($text)?)),)*
        ];
    };
    (@text) => { None };
    (@text $text:literal) => { Some($text) };
}

codes! {
    0 c"cudaSuccess";
    1 c"cudaErrorInvalidValue";
    2 c"cudaErrorMemoryAllocation";
    3 c"cudaErrorInitializationError";
    4 c"cudaErrorCudartUnloading";
    5 c"cudaErrorProfilerDisabled";
    6 c"cudaErrorProfilerNotInitialized";
    7 c"cudaErrorProfilerAlreadyStarted";
    8 c"cudaErrorProfilerAlreadyStopped";
    9 c"cudaErrorInvalidConfiguration" c"invalid configuration argument";
    12 c"cudaErrorInvalidPitchValue" c"invalid pitch argument";
    13 c"cudaErrorInvalidSymbol" c"invalid device symbol";
    16 c"cudaErrorInvalidHostPointer" c"invalid host pointer";
    17 c"cudaErrorInvalidDevicePointer" c"invalid device pointer";
    21 c"cudaErrorInvalidMemcpyDirection" c"invalid copy direction for memcpy";
    34 c"cudaErrorStubLibrary";
    35 c"cudaErrorInsufficientDriver" c"CUDA driver version is insufficient for CUDA runtime version";
    36 c"cudaErrorCallRequiresNewerDriver";
    46 c"cudaErrorDevicesUnavailable";
    49 c"cudaErrorIncompatibleDriverContext" c"incompatible driver context";
    52 c"cudaErrorMissingConfiguration" c"__global__ function call is not configured";
    53 c"cudaErrorPriorLaunchFailure" c"unspecified launch failure in prior launch";
    98 c"cudaErrorInvalidDeviceFunction" c"invalid device function";
    100 c"cudaErrorNoDevice";
    101 c"cudaErrorInvalidDevice";
    102 c"cudaErrorDeviceNotLicensed";
    200 c"cudaErrorInvalidKernelImage";
    201 c"cudaErrorDeviceUninitialized";
    205 c"cudaErrorMapBufferObjectFailed";
    206 c"cudaErrorUnmapBufferObjectFailed";
    207 c"cudaErrorArrayIsMapped";
    208 c"cudaErrorAlreadyMapped";
    209 c"cudaErrorNoKernelImageForDevice";
    210 c"cudaErrorAlreadyAcquired";
    211 c"cudaErrorNotMapped";
    212 c"cudaErrorNotMappedAsArray";
    213 c"cudaErrorNotMappedAsPointer";
    214 c"cudaErrorECCUncorrectable";
    215 c"cudaErrorUnsupportedLimit";
    216 c"cudaErrorDeviceAlreadyInUse";
    217 c"cudaErrorPeerAccessUnsupported";
    218 c"cudaErrorInvalidPtx";
    219 c"cudaErrorInvalidGraphicsContext";
    220 c"cudaErrorNvlinkUncorrectable";
    221 c"cudaErrorJitCompilerNotFound";
    222 c"cudaErrorUnsupportedPtxVersion";
    223 c"cudaErrorJitCompilationDisabled";
    224 c"cudaErrorUnsupportedExecAffinity";
    225 c"cudaErrorUnsupportedDevSideSync";
    226 c"cudaErrorContained";
    300 c"cudaErrorInvalidSource";
    301 c"cudaErrorFileNotFound";
    302 c"cudaErrorSharedObjectSymbolNotFound";
    303 c"cudaErrorSharedObjectInitFailed";
    304 c"cudaErrorOperatingSystem";
    400 c"cudaErrorInvalidResourceHandle";
    401 c"cudaErrorIllegalState";
    402 c"cudaErrorLossyQuery";
    500 c"cudaErrorSymbolNotFound";
    600 c"cudaErrorNotReady";
    700 c"cudaErrorIllegalAddress";
    701 c"cudaErrorLaunchOutOfResources";
    702 c"cudaErrorLaunchTimeout";
    703 c"cudaErrorLaunchIncompatibleTexturing";
    704 c"cudaErrorPeerAccessAlreadyEnabled";
    705 c"cudaErrorPeerAccessNotEnabled";
    708 c"cudaErrorSetOnActiveProcess";
    709 c"cudaErrorContextIsDestroyed";
    710 c"cudaErrorAssert";
    711 c"cudaErrorTooManyPeers";
    712 c"cudaErrorHostMemoryAlreadyRegistered";
    713 c"cudaErrorHostMemoryNotRegistered";
    714 c"cudaErrorHardwareStackError";
    715 c"cudaErrorIllegalInstruction";
    716 c"cudaErrorMisalignedAddress";
    717 c"cudaErrorInvalidAddressSpace";
    718 c"cudaErrorInvalidPc";
    719 c"cudaErrorLaunchFailure";
    720 c"cudaErrorCooperativeLaunchTooLarge";
    721 c"cudaErrorTensorMemoryLeak";
    800 c"cudaErrorNotPermitted";
    801 c"cudaErrorNotSupported";
    802 c"cudaErrorSystemNotReady";
    803 c"cudaErrorSystemDriverMismatch";
    804 c"cudaErrorCompatNotSupportedOnDevice";
    805 c"cudaErrorMpsConnectionFailed";
    806 c"cudaErrorMpsRpcFailure";
    807 c"cudaErrorMpsServerNotReady";
    808 c"cudaErrorMpsMaxClientsReached";
    809 c"cudaErrorMpsMaxConnectionsReached";
    810 c"cudaErrorMpsClientTerminated";
    811 c"cudaErrorCdpNotSupported";
    812 c"cudaErrorCdpVersionMismatch";
    900 c"cudaErrorStreamCaptureUnsupported";
    901 c"cudaErrorStreamCaptureInvalidated";
    902 c"cudaErrorStreamCaptureMerge";
    903 c"cudaErrorStreamCaptureUnmatched";
    904 c"cudaErrorStreamCaptureUnjoined";
    905 c"cudaErrorStreamCaptureIsolation";
    906 c"cudaErrorStreamCaptureImplicit";
    907 c"cudaErrorCapturedEvent";
    908 c"cudaErrorStreamCaptureWrongThread";
    909 c"cudaErrorTimeout";
    910 c"cudaErrorGraphExecUpdateFailure";
    911 c"cudaErrorExternalDevice";
    912 c"cudaErrorInvalidClusterSize";
    913 c"cudaErrorFunctionNotLoaded";
    914 c"cudaErrorInvalidResourceType";
    915 c"cudaErrorInvalidResourceConfiguration";
    917 c"cudaErrorStreamDetached";
    999 c"cudaErrorUnknown";
}

fn row(code: u32) -> Option<&'static (u32, &'static CStr, Option<&'static CStr>)> {
    TABLE.binary_search_by_key(&code, |row| row.0).ok().map(|index| &TABLE[index])
}

/// Returns the name of an error (`cudaError…`). The string is a constant.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(code: u32) -> *const c_char {
    row(code).map_or(UNKNOWN.as_ptr(), |row| row.1.as_ptr())
}

/// Returns the text of an error. The string is a constant.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(code: u32) -> *const c_char {
    let own = row(code).map(|row| row.2.map(CStr::as_ptr));
    own.and_then(|own| own.or_else(|| text(code))).unwrap_or(UNKNOWN.as_ptr())
}

/// Returns the last error that a function returned in this thread, and clears it.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> u32 {
    take_last_error()
}

/// Returns the last error that a function returned in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> u32 {
    last_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_and_a_text_and_the_table_is_sorted() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (code, name, own) in TABLE {
            assert!(name.to_str().unwrap().starts_with("cuda"), "{name:?}");
            assert!(own.is_some() || text(*code).is_some(), "{name:?} has no text");
        }
        assert_eq!(cudaGetErrorName(8888), UNKNOWN.as_ptr());
        assert_eq!(cudaGetErrorString(8888), UNKNOWN.as_ptr());
    }
}
