//! `cudaDeviceProp`, in the layouts of CUDA 12 and of CUDA 13.
//!
//! Nearly every member is a device attribute. Both layouts are therefore generated from one table
//! of members, with the meaning of each and the versions that contain it.

use std::ffi::c_int;

use super::call::{bare, begin};
use crate::driver::api::device::NAME;
use crate::driver::c::code::Res;
use crate::driver::c::entry::Out;
use crate::driver::state::attributes;
use crate::driver::state::device::DeviceInfo;
use crate::driver::state::registry::device;

/// Size of the structure in each version, bytes.
const BYTES_12: usize = 1032;
const BYTES_13: usize = 1008;
/// Size of the device's name, bytes.
const NAME_BYTES: usize = 256;

/// The versions of CUDA whose structure contains a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Both,
    Only12,
    Only13,
}
use In::{Both, Only12, Only13};

/// Source of a member's value. Attributes are numbers of `CUdevice_attribute`.
enum Member {
    Name,
    Uuid,
    /// The device identifier for Windows, with its mask. Its bytes are zeros here.
    Luid,
    TotalMemory,
    /// Several consecutive members of type `int`.
    Ints(&'static [u32]),
    /// A member of type `size_t`.
    Size(u32),
}
use Member::{Ints, Luid, Name, Size, TotalMemory, Uuid};

/// The members of the structure, in order.
const MEMBERS: &[(In, Member)] = &[
    (Both, Name),
    (Both, Uuid),
    (Both, Luid),
    (Both, TotalMemory),
    (Both, Size(8)),
    (Both, Ints(&[12, 10])),
    (Both, Size(11)),
    (Both, Ints(&[1, 2, 3, 4, 5, 6, 7])),
    // Clock rate.
    (Only12, Ints(&[13])),
    (Both, Size(9)),
    (Both, Ints(&[75, 76])),
    (Both, Size(14)),
    (Both, Size(51)),
    // Copies that overlap with kernels.
    (Only12, Ints(&[15])),
    (Both, Ints(&[16])),
    // Time limit of kernels.
    (Only12, Ints(&[17])),
    (Both, Ints(&[18, 19])),
    // Compute mode.
    (Only12, Ints(&[20])),
    // Textures and surfaces.
    (Both, Ints(&[21, 77])),
    (Only12, Ints(&[69])),
    (Both, Ints(&[22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52])),
    (Both, Ints(&[42, 43, 27, 28, 29, 53, 54])),
    (Both, Ints(&[55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68])),
    (Both, Size(30)),
    (Both, Ints(&[31, 32, 33, 34, 50, 35, 40, 41])),
    // Clock rate of the memory.
    (Only12, Ints(&[36])),
    (Both, Ints(&[37, 38, 108, 39, 78, 79, 80])),
    (Both, Size(81)),
    (Both, Ints(&[82, 83, 84, 85, 86])),
    // Performance ratio of single to double precision.
    (Only12, Ints(&[87])),
    (Both, Ints(&[88, 89, 90, 91, 95])),
    // Cooperative launches on several devices.
    (Only12, Ints(&[96])),
    (Both, Size(97)),
    (Both, Ints(&[100, 101, 106, 109])),
    (Both, Size(111)),
    (Both, Ints(&[99, 112, 113, 114, 115, 116, 117, 118, 119, 121, 125, 120, 129])),
    // NUMA nodes, and numbers of the PCI device.
    (Only13, Ints(&[130, 131, 133, 134, 139, 140, 143])),
];

/// Returns the structure for a device, without the members that only version `other` contains.
fn properties<const BYTES: usize>(device: &DeviceInfo, other: In) -> [u8; BYTES] {
    let attribute = |number| attributes::value(device, number).unwrap_or(0);
    let mut out = Vec::with_capacity(BYTES);
    for (_, member) in MEMBERS.iter().filter(|(version, _)| *version != other) {
        match member {
            Name => {
                out.extend_from_slice(NAME.as_bytes());
                out.resize(NAME_BYTES, 0);
            }
            Uuid => out.extend_from_slice(&device.uuid()),
            Luid => out.extend_from_slice(&[0; 12]),
            TotalMemory => wide(&mut out, device.total_bytes),
            Ints(numbers) => {
                let values = numbers.iter().flat_map(|&number| attribute(number).to_le_bytes());
                out.extend(values);
            }
            // Sizes are never negative.
            Size(number) => wide(&mut out, attribute(*number) as u64),
        }
    }
    // The rest is reserved.
    out.resize(BYTES, 0);
    let mut whole = [0; BYTES];
    whole.copy_from_slice(&out);
    whole
}

/// Appends a `size_t` at the next aligned offset.
fn wide(out: &mut Vec<u8>, value: u64) {
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend_from_slice(&value.to_le_bytes());
}

fn store<const BYTES: usize>(out: Out<[u8; BYTES]>, ordinal: c_int, other: In) -> Res {
    begin()?;
    out.set(properties(device(ordinal)?, other))
}

bare! {
    fn cudaGetDeviceProperties(out: Out<[u8; BYTES_13]>, ordinal: c_int) {
        store(out, ordinal, Only12)
    }

    fn cudaGetDeviceProperties_v2(out: Out<[u8; BYTES_12]>, ordinal: c_int) {
        store(out, ordinal, Only13)
    }
}
