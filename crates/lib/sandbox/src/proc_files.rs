//! The files in `/proc` that a child may read: facts about the machine, and some files about the
//! process itself.
//!
//! The directory of a process contains more: the sockets of the whole machine (`net`) and mounts.
//! All of `/proc` would also reveal the command lines of other processes. These files were found by
//! trial with NVIDIA's driver 580.159, PyTorch and NVIDIA's tools.

use std::os::fd::IntoRawFd;
use std::path::PathBuf;

/// The files that describe the machine.
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

/// The files about the process itself: its memory map, state and limits.
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

/// The directory in which the driver writes the name of each thread to `comm`. The driver does not
/// start if it cannot do so (580.159: `cuInit` fails with 304). Nothing may be read there, since
/// the machine's sockets are visible below each thread. The other writable files in it belong to
/// this process: its memory, and its out-of-memory score. The system closes the score if the
/// process is not dumpable. Otherwise root's capabilities have set its minimum before.
pub const OWN_THREADS: &str = "/proc/self/task";

/// Returns those of the paths that exist.
fn there(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).filter(|path| path.exists()).collect()
}

/// Returns the existing files that describe the machine.
pub fn machine() -> Vec<PathBuf> {
    there(&MACHINE)
}

/// Returns the files about this process. A rule applies to the entry in `/proc` that existed when
/// the rule was created, and the system discards entries that no process has open. Therefore each
/// entry stays open, both here and in a program that this process becomes.
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
