//! What a child reads of `/proc`: facts of the machine, and some files of the process itself.
//!
//! The directory of a process has more: sockets of the whole machine (`net`), mounts, and, where all
//! of `/proc` is granted, command lines of other processes. What is listed here was found by trial with NVIDIA's
//! driver 580.159, PyTorch and NVIDIA's tools.

use std::os::fd::IntoRawFd;
use std::path::PathBuf;

/// What describes the machine.
const MACHINE: [&str; 13] = [
    "/proc/cgroups",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/devices",
    "/proc/driver",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
];

/// Files of the process itself: its memory map, its state, and its limits.
pub const OWN: [&str; 10] = [
    "/proc/self/auxv",
    "/proc/self/cgroup",
    "/proc/self/cmdline",
    "/proc/self/cpuset",
    "/proc/self/limits",
    "/proc/self/maps",
    "/proc/self/smaps",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/status",
];

/// The driver names its threads by writing to `comm` of each, and does not start if it cannot (580.159:
/// `cuInit` fails with 304). Nothing is read there: each thread has the machine's sockets below it. What else
/// is written there belongs to this process: its memory, and its score for when memory runs out, which the
/// system closes where a process cannot be looked into, or root's capabilities set the least value before.
pub const OWN_THREADS: &str = "/proc/self/task";

/// Those that are there.
fn there(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).filter(|path| path.exists()).collect()
}

/// What describes the machine, as far as it is there.
pub fn machine() -> Vec<PathBuf> {
    there(&MACHINE)
}

/// What this process reads of itself. A rule holds for the entry of `/proc` that was there when it was made,
/// and the system forgets entries that no process has open: so each stays open here, and in a program that
/// this process becomes.
pub fn own() -> Vec<PathBuf> {
    let own = there(&OWN);
    own.iter().chain([&PathBuf::from(OWN_THREADS)]).for_each(|path| keep_open(path));
    own
}

fn keep_open(path: &std::path::Path) {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    if let Ok(opened) = openat(CWD, path, OFlags::PATH, Mode::empty()) {
        let _ = opened.into_raw_fd();
    }
}
