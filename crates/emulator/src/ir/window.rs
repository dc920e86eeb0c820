//! Where generic addresses stand that are not those of global memory.

/// Generic addresses of functions begin here; 16 for each function of the module.
pub(crate) const FUNCTION_WINDOW: u64 = 0x0400_0000_0000_0000;
/// Generic addresses of kernel parameters begin here.
pub(crate) const PARAM_WINDOW: u64 = 0x0300_0000_0000_0000;
/// Generic addresses of local memory begin here.
pub(crate) const LOCAL_WINDOW: u64 = 0x0200_0000_0000_0000;
/// Generic addresses of shared memory begin here.
pub(crate) const SHARED_WINDOW: u64 = 0x0100_0000_0000_0000;
/// Bytes of each window.
pub(crate) const WINDOW: u64 = 1 << 32;
