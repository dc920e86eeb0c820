//! Classifies the ends of compilers that exceed limits or crash. The source counts as the cause,
//! unless there is evidence that this machine is.

use std::time::Duration;

use super::error::{CompileError, CompileFailure};
use super::limits::{ADDRESS_SPACE, FILE_SIZE, cpu_limit};
use super::usage::{ProcessUsage, size};

use warpgauge_model::FailureCode;

/// Share of the memory limit, in percent. A process that crashed while it used at least this share
/// ran out of memory. The memory of the failed allocation was never mapped, and buffers grow by
/// doubling.
const NEAR_PERCENT: u64 = 50;

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

const REMEDY: &str = "simplify the code: templates, macros, unrolled loops and large initialisers \
                      need the most resources";

/// Returns the size of this machine's memory or the memory limit of its control group, whichever is
/// smaller, in bytes.
fn machine_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    Some(group.map_or(total, |group| group.min(total)))
}

/// Converts the end of a compiler process to a rejection of the source, with a message about the
/// exceeded limit. Errors that this machine caused stay unchanged.
pub(super) fn judged(error: CompileError, timeout: Duration) -> CompileError {
    let (code, message, log) = match error {
        CompileError::Timeout { seconds, used } => {
            let message = format!(
                "the compiler did not finish within {seconds} s and was stopped; {used}; {REMEDY}, \
                 or allow it more time: the request's `timeout`, and the server's \
                 `compile.timeout_s`, which bounds it"
            );
            (FailureCode::CompilerTimeout, message, String::new())
        }
        CompileError::Crashed { signal: Some(signal), log, used } => {
            match of_signal(signal, &used, timeout, machine_bytes()) {
                Some((code, what)) => (code, format!("{what}; {used}; {REMEDY}"), log),
                None => return CompileError::Crashed { signal: Some(signal), log, used },
            }
        }
        other => return other,
    };
    CompileError::Rejected(Box::new(CompileFailure { log, ..CompileFailure::new(code, message) }))
}

/// Returns the message about the limit that a signal indicates, or `None` if another process sent
/// the signal.
fn of_signal(
    signal: i32,
    used: &ProcessUsage,
    timeout: Duration,
    machine: Option<u64>,
) -> Option<(FailureCode, String)> {
    let cpu = cpu_limit(timeout);
    let spent = used.cpu_s + 1.0 >= cpu as f64;
    let memory = size(ADDRESS_SPACE);
    Some(match signal {
        SIGXCPU | SIGKILL if spent => (
            FailureCode::CompilerCpuLimit,
            format!("the compiler was stopped after the {cpu} s of processor time that it may use"),
        ),
        SIGXFSZ => (
            FailureCode::CompilerFileLimit,
            format!("the compiler wrote a file larger than the {} it may write", size(FILE_SIZE)),
        ),
        // The system kills a process when memory runs out. The evidence is the system's count of
        // such kills, or a large memory use of the process. Several compilations share the memory,
        // so none of them may use most of it.
        SIGKILL => {
            let much = (ADDRESS_SPACE / 4).min(machine.unwrap_or(u64::MAX) / 2);
            if !used.starved && used.resident_bytes < much {
                return None;
            }
            let of = machine.map(|machine| format!(", {}", size(machine))).unwrap_or_default();
            let what =
                format!("the compiler was stopped because the machine ran out of memory{of}");
            (FailureCode::CompilerOutOfMemory, what)
        }
        SIGHUP | SIGINT | SIGTERM | SIGXCPU => return None,
        _ if used.address_bytes >= ADDRESS_SPACE / 100 * NEAR_PERCENT => (
            FailureCode::CompilerOutOfMemory,
            format!(
                "the compiler crashed (signal {signal}) for lack of memory; it may use {memory}"
            ),
        ),
        _ => (
            FailureCode::CompilerCrashed,
            format!(
                "the compiler crashed (signal {signal}) on this source, which happens if the code \
                 nests too deeply"
            ),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(signal: i32, cpu_s: f64, resident: u64, address: u64) -> Option<FailureCode> {
        let (resident_bytes, address_bytes) = (resident << 20, address << 20);
        let used = ProcessUsage { cpu_s, resident_bytes, address_bytes, ..ProcessUsage::default() };
        let found = of_signal(signal, &used, Duration::from_secs(10), Some(16 << 30));
        found.map(|(code, _)| code)
    }

    #[test]
    fn a_signal_is_the_sources_fault_or_the_machines() {
        assert_eq!(of(SIGKILL, 21.5, 100, 2_000), Some(FailureCode::CompilerCpuLimit));
        assert_eq!(of(SIGXCPU, 22.0, 100, 2_000), Some(FailureCode::CompilerCpuLimit));
        assert_eq!(of(SIGXFSZ, 1.0, 100, 2_000), Some(FailureCode::CompilerFileLimit));
        assert_eq!(of(11, 1.0, 100, 2_000), Some(FailureCode::CompilerCrashed));
        assert_eq!(of(6, 1.0, 100, 7_900), Some(FailureCode::CompilerOutOfMemory));
        assert_eq!(of(SIGKILL, 1.0, 8_200, 8_200), Some(FailureCode::CompilerOutOfMemory));
        // One of several compilations, none of which held most of the memory.
        assert_eq!(of(SIGKILL, 1.0, 2_100, 3_000), Some(FailureCode::CompilerOutOfMemory));
        let used =
            ProcessUsage { starved: true, resident_bytes: 100 << 20, ..ProcessUsage::default() };
        let limit = Duration::from_secs(10);
        let (code, what) = of_signal(SIGKILL, &used, limit, Some(64 << 30)).unwrap();
        assert_eq!(code, FailureCode::CompilerOutOfMemory);
        assert!(what.contains("the machine ran out of memory, 64.0 GiB"), "{what}");
        // Killed while it was small, or requested to end: neither by this program nor because of
        // its behaviour.
        assert_eq!(of(SIGKILL, 1.0, 100, 2_000), None);
        assert_eq!(of(SIGTERM, 1.0, 100, 2_000), None);
    }

    #[test]
    fn what_the_machine_did_stays_its_fault() {
        let used = ProcessUsage::default();
        let killed = CompileError::Crashed { signal: Some(SIGTERM), log: String::new(), used };
        let same = judged(killed, Duration::from_secs(1));
        assert!(matches!(same, CompileError::Crashed { signal: Some(SIGTERM), .. }), "{same:?}");
        let late =
            CompileError::Timeout { seconds: 5.0, used: ProcessUsage { cpu_s: 4.5, ..used } };
        let CompileError::Rejected(failure) = judged(late, Duration::from_secs(5)) else {
            panic!("a result");
        };
        assert_eq!(failure.code, FailureCode::CompilerTimeout);
        for part in ["within 5 s", "4.5 s of processor time", "simplify", "`timeout`"] {
            assert!(failure.message.contains(part), "{part}: {}", failure.message);
        }
    }
}
