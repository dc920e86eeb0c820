//! Device memory between two processes: the test starts itself as the other one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use cudarc::driver::{result, sys};
use sys::CUresult::*;

use crate::setup::{code, own_context};

/// Tells the child process the handle, as hexadecimal digits.
const HANDLE: &str = "WARPGAUGE_TEST_IPC_HANDLE";
const LAZY: u32 = 1;

fn open(bytes: [u8; 64]) -> Result<u64, result::DriverError> {
    let handle = sys::CUipcMemHandle { reserved: bytes.map(|byte| byte as i8) };
    let mut address = 0;
    unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, handle, LAZY) }.result()?;
    Ok(address)
}

fn export(address: u64) -> Result<[u8; 64], result::DriverError> {
    let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
    unsafe { sys::cuIpcGetMemHandle(&mut handle, address) }.result()?;
    Ok(handle.reserved.map(|byte| byte as u8))
}

#[test]
fn memory_is_shared_between_processes() {
    if let Ok(text) = std::env::var(HANDLE) {
        return child(&text);
    }
    let context = own_context(1);
    context.bind_to_thread().unwrap();
    let bytes = 3 * 4096 + 40;
    let base = unsafe { result::malloc_sync(bytes) }.unwrap();
    let before: Vec<u8> = (0..bytes).map(|index| index as u8).collect();
    unsafe { result::memcpy_htod_sync(base, &before) }.unwrap();
    let handle = export(base + 100).unwrap();
    assert_eq!(export(base).unwrap(), handle, "a handle is the allocation's");
    assert_eq!(code(open(handle)), CUDA_ERROR_INVALID_CONTEXT, "not in the same process");
    let text: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();

    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ipc::memory_is_shared_between_processes", "--nocapture"])
        .env(HANDLE, text)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    // The child has read the old contents and written its own at both ends.
    assert!(lines.any(|line| line.unwrap().contains("child has written")));
    let mut host = vec![0u8; bytes];
    unsafe { result::memcpy_dtoh_sync(&mut host, base) }.unwrap();
    assert_eq!((host[0], host[1], host[bytes - 1]), (0xAA, 1, 0xBB));
    // And sees what this process writes now.
    unsafe { result::memset_d8_sync(base, 0x5C, bytes) }.unwrap();
    context.synchronize().unwrap();
    other.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(other.wait().unwrap().success(), "{rest:?}");
    unsafe { result::free_sync(base) }.unwrap();
}

fn child(text: &str) {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let mut bytes = [0u8; 64];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap();
    }
    let mut stale = bytes;
    stale[16] ^= 1;
    assert_eq!(code(open(stale)), CUDA_ERROR_MAP_FAILED);
    let base = open(bytes).unwrap();
    let (mut begin, mut size) = (0, 0);
    unsafe { sys::cuMemGetAddressRange_v2(&mut begin, &mut size, base + 5) }.result().unwrap();
    assert_eq!((begin, size), (base, 3 * 4096 + 40));
    let mut host = vec![0u8; size];
    unsafe { result::memcpy_dtoh_sync(&mut host, base) }.unwrap();
    assert!(host.iter().enumerate().all(|(index, &byte)| byte == index as u8));
    unsafe { result::memcpy_htod_sync(base, &[0xAAu8]) }.unwrap();
    unsafe { result::memcpy_htod_sync(base + size as u64 - 1, &[0xBBu8]) }.unwrap();
    println!("child has written");
    std::io::stdin().lines().next().unwrap().unwrap();
    unsafe { result::memcpy_dtoh_sync(&mut host, base) }.unwrap();
    assert_eq!(host, vec![0x5C; size]);
    unsafe { sys::cuIpcCloseMemHandle(base) }.result().unwrap();
    let closed = unsafe { sys::cuIpcCloseMemHandle(base) };
    assert_eq!(closed, CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn only_plain_device_memory_is_exported() {
    let context = own_context(0);
    let stream = context.default_stream();
    context.bind_to_thread().unwrap();
    let pooled = stream.clone_htod(&[1u8; 10]).unwrap();
    use cudarc::driver::DevicePtr;
    let (address, _guard) = pooled.device_ptr(&stream);
    assert_eq!(code(export(address)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(export(0x1234)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(open([3; 64])), CUDA_ERROR_INVALID_VALUE);
}
