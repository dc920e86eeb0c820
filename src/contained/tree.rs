//! Finding and ending all processes of a tree, wherever they went.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Variable of the environment that holds the mark.
pub(super) const MARK_VARIABLE: &str = "WARPGAUGE_TREE";

/// Rounds of looking for processes: one that starts another while it is looked for is found in the
/// next.
const ROUNDS: usize = 8;

/// Longest environment that is looked at, bytes.
const ENVIRONMENT_BYTES: u64 = 1 << 20;

/// Ends every process that carries the mark. Returns how many there were.
pub(super) fn end_marked(mark: &str) -> usize {
    let mut ended = 0;
    for _ in 0..ROUNDS {
        let found = marked(mark);
        if found.is_empty() {
            break;
        }
        ended += found.len();
        for process in found {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
    ended
}

/// Living processes that carry the mark.
fn marked(mark: &str) -> Vec<OwnedFd> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let marked = |number: &i32| carries(*number, mark);
    numbers
        .filter(marked)
        .filter_map(|number| {
            let process = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
            // Still the one that was looked at, and not another with its number.
            carries(number, mark).then_some(process)
        })
        .collect()
}

/// Whether a process was started with the mark. One that ended has no environment.
fn carries(process: i32, mark: &str) -> bool {
    use std::io::Read;
    let Ok(file) = fs::File::open(format!("/proc/{process}/environ")) else { return false };
    let mut environment = Vec::new();
    if file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment).is_err() {
        return false;
    }
    let wanted = format!("{MARK_VARIABLE}={mark}");
    environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
}
