//! Devices: their properties, and which one a thread uses.

use std::ffi::CStr;
use std::thread;

use crate::program::{DEVICES, PAIR, Program, begin, launch, memory, word};
use crate::ptx::PROGRAM;
use crate::sys::*;

/// What stands where in the structures of CUDA 12.9 and of CUDA 13.5, as their compilers say
/// (`offsetof`), and the attribute that it is: four bytes, or eight where the last is true.
const PLACES: [(usize, usize, u32, bool); 17] = [
    (308, 308, 10, false),
    (352, 352, 9, true),
    (360, 360, 75, false),
    (388, 384, 16, false),
    (576, 560, 31, false),
    (616, 596, 38, false),
    (624, 604, 39, false),
    (640, 624, 81, true),
    (688, 668, 95, false),
    (696, 672, 97, true),
    (712, 688, 106, false),
    (720, 696, 111, true),
    (744, 720, 115, false),
    (768, 744, 125, false),
    (776, 752, 129, false),
    (320, 320, 1, false),
    (336, 336, 5, false),
];

fn attribute(which: u32) -> i32 {
    let mut value = 0;
    assert_eq!(unsafe { cudaDeviceGetAttribute(&mut value, which, 0) }, 0);
    value
}

#[test]
fn properties_are_the_attributes_in_both_layouts() {
    begin();
    let (mut twelve, mut thirteen) = ([0xa5u8; 1040], [0xa5u8; 1016]);
    assert_eq!(unsafe { cudaGetDeviceProperties_v2(twelve.as_mut_ptr(), 0) }, 0);
    assert_eq!(unsafe { cudaGetDeviceProperties(thirteen.as_mut_ptr(), 0) }, 0);
    // No byte behind the structure is touched, and none of it is forgotten.
    assert_eq!(twelve[1032..], [0xa5; 8]);
    assert_eq!(thirteen[1008..], [0xa5; 8]);
    assert_eq!((twelve[1031], thirteen[1007]), (0, 0));
    let number = |bytes: &[u8], at: usize, wide: bool| {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        u64::from(half(at)) | if wide { u64::from(half(at + 4)) << 32 } else { 0 }
    };
    for (old, new, which, wide) in PLACES {
        let value = attribute(which) as u64;
        assert_eq!(number(&twelve, old, wide), value, "attribute {which} in CUDA 12");
        assert_eq!(number(&thirteen, new, wide), value, "attribute {which} in CUDA 13");
    }
    for bytes in [&twelve[..], &thirteen[..]] {
        let name = CStr::from_bytes_until_nul(bytes).unwrap();
        assert_eq!(name.to_str().unwrap(), "warpgauge emulator (CPU)");
        assert_eq!(number(bytes, 288, true), 64 << 20, "memory");
        assert_eq!(number(bytes, 296, true), 48 << 10, "shared memory");
    }
    // What only CUDA 12 has: the clock, copies beside kernels, and the clock of the memory.
    assert_eq!(number(&twelve, 348, false), attribute(13) as u64);
    assert_eq!(number(&twelve, 384, false), attribute(15) as u64);
    assert_eq!(number(&twelve, 608, false), attribute(36) as u64);
    assert_eq!(unsafe { cudaGetDeviceProperties(thirteen.as_mut_ptr(), 99) }, INVALID_DEVICE);
}

#[test]
fn threads_choose_devices_of_their_own() {
    let add_one = Program::new(PROGRAM).kernel("add_one");
    let mut count = 0;
    assert_eq!(unsafe { cudaGetDeviceCount(&mut count) }, 0);
    assert_eq!(count, DEVICES);
    let work = move |thread: i32| {
        let (mut device, chosen) = (-1, if thread % 2 == 0 { PAIR.0 } else { PAIR.1 });
        assert_eq!(unsafe { cudaGetDevice(&mut device) }, 0);
        assert_eq!(device, 0, "a thread begins with the first device");
        assert_eq!(unsafe { cudaSetDevice(chosen) }, 0);
        for _ in 0..20 {
            let at = memory(4);
            assert_eq!(unsafe { cudaMemset(at, 0, 4) }, 0);
            assert_eq!(launch(add_one, 64, at, 0, 0), 0);
            assert_eq!(word(at), 64);
            let mut found =
                PointerAttributes { kind: 0, device: 0, device_pointer: 0, host_pointer: 0 };
            assert_eq!(unsafe { cudaPointerGetAttributes(&mut found, at) }, 0);
            assert_eq!(found.device, chosen);
            assert_eq!(unsafe { cudaFree(at) }, 0);
        }
        assert_eq!(unsafe { cudaGetLastError() }, 0);
    };
    let threads: Vec<_> = (0..8).map(|thread| thread::spawn(move || work(thread))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn devices_have_variables_of_their_own_and_copy_to_each_other() {
    let program = Program::new(PROGRAM);
    let (fill, counter) = (program.kernel("fill"), program.variable("counter", 4));
    let value = || {
        let mut value = 0u32;
        let place = &raw mut value as u64;
        assert_eq!(unsafe { cudaMemcpyFromSymbol(place, counter, 4, 0, TO_HOST) }, 0);
        value
    };
    assert_eq!(unsafe { cudaSetDevice(PAIR.0) }, 0);
    let first = memory(128);
    assert_eq!(launch(fill, 32, first, 77, 0), 0);
    assert_eq!(value(), 39);
    assert_eq!(unsafe { cudaSetDevice(PAIR.1) }, 0);
    assert_eq!(value(), 7);
    assert_eq!(unsafe { cudaDeviceEnablePeerAccess(PAIR.0, 0) }, 0);
    assert_eq!(unsafe { cudaDeviceEnablePeerAccess(PAIR.0, 0) }, 704);
    let second = memory(128);
    assert_eq!(unsafe { cudaMemcpyPeer(second, PAIR.1, first, PAIR.0, 128) }, 0);
    assert_eq!(word(second + 124), 77);
    assert_eq!(unsafe { cudaMemcpyPeer(second, PAIR.1, first, 99, 128) }, INVALID_DEVICE);
}
