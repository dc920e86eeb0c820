//! Finds and ends all processes of a tree, even outside its process group. The main function is
//! [`end_marked`].

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The environment variable that contains the mark.
pub(super) const MARK_VARIABLE: &str = "WARPGAUGE_TREE";

/// The maximum number of searches for processes. A process that starts another one during a search
/// is found by that search, and the new process by the next.
const ROUNDS: usize = 16;

/// The maximum number of bytes of an environment that are read.
const ENVIRONMENT_BYTES: u64 = 1 << 20;

/// Ends every process that has the mark. Returns the number of signals sent; a process that ends
/// slowly receives more than one.
pub(super) fn end_marked(mark: &str) -> usize {
    let mut ended = 0;
    for _ in 0..ROUNDS {
        let (found, unclear) = marked(mark);
        if found.is_empty() && !unclear {
            break;
        }
        ended += found.len();
        for process in &found {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        std::thread::yield_now();
    }
    ended
}

/// Returns the ids of other processes that have the same mark as this process. The list is empty if
/// this process has no mark.
pub fn others_of_own_tree() -> Vec<u32> {
    let Ok(mark) = std::env::var(MARK_VARIABLE) else { return Vec::new() };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = numbers.filter(|number| look(*number, &mark) == Mark::Carried);
    own.map(i32::cast_unsigned).filter(|number| *number != std::process::id()).collect()
}

/// Whether a process has the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Carried,
    Absent,
    /// The process has no environment: another program is replacing it at this moment, or it was
    /// started without an environment.
    Unclear,
}

/// Returns the living processes that have the mark, and whether other processes may have it.
fn marked(mark: &str) -> (Vec<OwnedFd>, bool) {
    let Ok(entries) = fs::read_dir("/proc") else { return (Vec::new(), false) };
    let (mut found, mut unclear) = (Vec::new(), false);
    for entry in entries.flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match look(number, mark) {
            Mark::Absent => continue,
            Mark::Unclear => unclear = true,
            Mark::Carried => {
                let process = Pid::from_raw(number);
                let process = process.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
                // The second check ensures that the id still belongs to the same process.
                let same = look(number, mark) != Mark::Absent;
                found.extend(process.filter(|_| same));
            }
        }
    }
    (found, unclear)
}

fn look(process: i32, mark: &str) -> Mark {
    let Ok(file) = fs::File::open(format!("/proc/{process}/environ")) else { return Mark::Absent };
    let mut environment = Vec::new();
    if file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment).is_err() {
        return Mark::Absent;
    }
    let wanted = format!("{MARK_VARIABLE}={mark}");
    if environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()) {
        return Mark::Carried;
    }
    // Kernel threads and ended processes have no program either.
    let runs = environment.is_empty() && fs::read_link(format!("/proc/{process}/exe")).is_ok();
    if runs { Mark::Unclear } else { Mark::Absent }
}
