//! Memory of all kinds.

use crate::program::{Program, begin, launch, memory, word};
use crate::ptx::PROGRAM;
use crate::sys::*;

fn attributes(address: u64) -> PointerAttributes {
    let mut out = PointerAttributes { kind: 9, device: 9, device_pointer: 9, host_pointer: 9 };
    assert_eq!(unsafe { cudaPointerGetAttributes(&mut out, address) }, 0);
    out
}

#[test]
fn pointers_tell_what_they_point_to() {
    begin();
    let (device, mut host, mut managed) = (memory(64), 0, 0);
    assert_eq!(unsafe { cudaMallocHost(&mut host, 64) }, 0);
    assert_eq!(unsafe { cudaMallocManaged(&mut managed, 64, 1) }, 0);
    let found = attributes(device + 8);
    assert_eq!((found.kind, found.device), (2, 0));
    assert_eq!((found.device_pointer, found.host_pointer), (device + 8, 0));
    let found = attributes(host);
    assert_eq!((found.kind, found.device_pointer, found.host_pointer), (1, host, host));
    let found = attributes(managed);
    assert_eq!((found.kind, found.device_pointer, found.host_pointer), (3, managed, managed));
    let mine = 0u32;
    assert_eq!(attributes(&raw const mine as u64).kind, 0);
    assert_eq!(unsafe { cudaFreeHost(host) }, 0);
    assert_eq!(unsafe { cudaFree(managed) }, 0);
    assert_eq!(unsafe { cudaFree(device) }, 0);
    assert_eq!(unsafe { cudaFree(device) }, INVALID_VALUE);
}

#[test]
fn managed_memory_is_used_by_both_sides() {
    let add_one = Program::new(PROGRAM).kernel("add_one");
    let mut at = 0;
    assert_eq!(unsafe { cudaMallocManaged(&mut at, 4, 1) }, 0);
    let number = at as *mut u32;
    unsafe { number.write_volatile(5) };
    assert_eq!(launch(add_one, 10, at, 0, 0), 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    assert_eq!(unsafe { number.read_volatile() }, 15);
}

#[test]
fn rows_are_copied_between_pitches() {
    begin();
    let (mut at, mut pitch) = (0, 0);
    assert_eq!(unsafe { cudaMallocPitch(&mut at, &mut pitch, 12, 3) }, 0);
    assert_eq!(pitch, 512);
    let from: Vec<u32> = (0..9).collect();
    let src = from.as_ptr() as u64;
    assert_eq!(unsafe { cudaMemcpy2D(at, pitch, src, 12, 12, 3, TO_DEVICE) }, 0);
    assert_eq!(word(at + 2 * 512 + 8), 8);
    let mut back = [0u32; 6];
    let dst = back.as_mut_ptr() as u64;
    assert_eq!(unsafe { cudaMemcpy2D(dst, 8, at + 4, pitch, 8, 3, DEFAULT) }, 0);
    assert_eq!(back, [1, 2, 4, 5, 7, 8]);
}
