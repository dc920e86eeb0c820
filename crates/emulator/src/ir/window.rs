//! Windows of generic addresses outside global memory.

/// Start of the generic addresses of functions. Each function of the module has 16 addresses.
pub(crate) const FUNCTION_WINDOW: u64 = 0x0400_0000_0000_0000;
/// Start of the generic addresses of kernel parameters.
pub(crate) const PARAM_WINDOW: u64 = 0x0300_0000_0000_0000;
/// Start of the generic addresses of local memory.
pub(crate) const LOCAL_WINDOW: u64 = 0x0200_0000_0000_0000;
/// Start of the generic addresses of shared memory.
pub(crate) const SHARED_WINDOW: u64 = 0x0100_0000_0000_0000;
/// Size of each window, bytes.
pub(crate) const WINDOW: u64 = 1 << 32;
