//! The table of device attributes (`CUdevice_attribute`).

use std::ffi::{c_int, c_uint};

use super::device::{DeviceInfo, SM_COUNT};

/// Value of `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`: the number of the attribute with the
/// first part of the compute capability.
pub const CC_MAJOR: c_uint = 75;
/// Value of `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`: the number of the attribute with the
/// second part of the compute capability.
pub const CC_MINOR: c_uint = 76;
/// Maximum number of threads per block of any kernel.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Shared memory that a block may use without opting in to more, bytes.
pub const SHARED_PER_BLOCK: u32 = 48 << 10;
/// Number of registers per multiprocessor. A block may use all of them.
pub const REGISTERS: u32 = 65536;

/// Returns the value of an attribute, or `None` if its number is unknown.
///
/// Clusters, cubes and mipmaps are not emulated: their limits are 0.
pub fn value(device: &DeviceInfo, attribute: c_uint) -> Option<c_int> {
    let arch = &device.arch;
    Some(match attribute {
        0 | 148.. => return None,
        1..=3 => MAX_THREADS_PER_BLOCK as c_int,
        4 => 64,
        5 => c_int::MAX,
        6 | 7 => 65535,
        8 => SHARED_PER_BLOCK as c_int,
        9 => 64 << 10,
        10 => 32,
        11 => c_int::MAX,
        12 | 82 => REGISTERS as c_int,
        // Nominal clocks in kHz, and a nominal bus width in bits.
        13 | 36 => 1_000_000,
        37 => 512,
        14 => 512,
        15 | 31 | 41 => 1,
        16 => SM_COUNT as c_int,
        19 => 1,
        // Textures and surfaces in arrays: one, two and three dimensions, and layers of one and two
        // dimensions.
        21 | 22 | 56 => 131_072,
        23 | 57 => 65_536,
        24..=26 | 58..=60 => 16_384,
        27 | 28 | 42 | 55 | 61 | 63 | 64 => 32_768,
        29 | 43 | 62 | 65 => 2048,
        // Textures in linear and pitched memory.
        69 => 1 << 28,
        70 => 131_072,
        71 => 65_000,
        72 => 1 << 21,
        30 => 512,
        33 => device.ordinal as c_int + 1,
        38 => 4 << 20,
        39 => arch.threads_per_sm as c_int,
        40 => 2,
        51 => 32,
        CC_MAJOR => arch.major as c_int,
        CC_MINOR => arch.minor as c_int,
        78..=80 => 1,
        81 => arch.shared_per_sm as c_int,
        83 => 1,
        // Host atomics are native (there is one memory), and both sides may use managed memory
        // concurrently.
        86 | 89 => 1,
        87 => 2,
        90 | 91 => 1,
        95 => 1,
        97 => arch.shared_optin as c_int,
        98 | 99 => 1,
        101 => 1,
        106 => arch.blocks_per_sm as c_int,
        111 => arch.shared_reserved as c_int,
        113 => 1,
        115 => 1,
        // Processes can share events, and there is one domain of memory synchronisation.
        125 | 126 => 1,
        // NUMA node of the device's memory and of its host: not available.
        131 | 134 => -1,
        _ => 0,
    })
}
