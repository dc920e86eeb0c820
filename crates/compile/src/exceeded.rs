//! Compilers that take more than they may, or crash: that says something of the source, unless this
//! machine is at fault.

use std::fmt;
use std::time::Duration;

use super::error::{CompileError, CompileFailure};

use warpgauge_model::FailureCode;

/// Address space of a compilation, bytes. NVRTC itself maps about 1 GiB; cub takes 1 GiB more.
pub(crate) const ADDRESS_SPACE: u64 = 8 << 30;

/// Largest file a compilation may write, bytes.
pub(crate) const FILE_SIZE: u64 = 256 << 20;

/// Whoever had this share of the memory that there is, per cent, crashed for want of it: what did not
/// fit was never mapped, and buffers grow by doubling.
const NEAR_PERCENT: u64 = 50;

/// Ticks of `/proc/*/stat` in a second: the same on every Linux.
const TICKS: f64 = 100.0;

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

const REMEDY: &str = "simplify the code: templates, macros, unrolled loops and large initialisers \
                      take most";

/// What a compilation had taken when it was last looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Processor time, seconds.
    pub cpu_s: f64,
    /// Largest resident memory, bytes.
    pub resident_bytes: u64,
    /// Largest address space, bytes.
    pub address_bytes: u64,
    /// Whether the system killed a process for want of memory meanwhile.
    pub starved: bool,
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it had taken {:.1} s of processor time and {} of memory",
            self.cpu_s,
            size(self.resident_bytes)
        )
    }
}

impl Used {
    /// What a process has taken so far. Of one that has ended, and was not waited for, the processor
    /// time is still known.
    pub(super) fn of(process: i32) -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}"));
        let (stat, status) = (read("stat").unwrap_or_default(), read("status").unwrap_or_default());
        Self { cpu_s: cpu_seconds(&stat), ..memory(&status) }
    }

    /// The larger of each.
    pub(super) fn grow(&mut self, other: Self) {
        self.cpu_s = self.cpu_s.max(other.cpu_s);
        self.resident_bytes = self.resident_bytes.max(other.resident_bytes);
        self.address_bytes = self.address_bytes.max(other.address_bytes);
        self.starved |= other.starved;
    }
}

/// User and system time, of the process and of the children it waited for, in `/proc/*/stat`.
fn cpu_seconds(stat: &str) -> f64 {
    // The second field is a name in brackets, which may hold anything; the state follows it.
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0.0 };
    let ticks = rest.split_ascii_whitespace().skip(11).take(4);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}

fn memory(status: &str) -> Used {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0).saturating_mul(1 << 10)
    };
    Used { resident_bytes: bytes("VmHWM:"), address_bytes: bytes("VmPeak:"), ..Used::default() }
}

/// How often the system has killed a process for want of memory: on this machine, and in this control group.
pub(super) fn kills_for_memory() -> u64 {
    let count = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line =
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse::<u64>().ok());
        line.unwrap_or_default()
    };
    count("/proc/vmstat").saturating_add(count("/sys/fs/cgroup/memory.events"))
}

/// Memory of this machine, bytes, or what its control group may have of it.
fn machine_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    Some(group.map_or(total, |group| group.min(total)))
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 30 {
        format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
    } else {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    }
}

/// Processor time that a compilation with this deadline may take, seconds: compilers may use two
/// threads.
pub(super) fn cpu_limit(timeout: Duration) -> u64 {
    timeout.as_secs().saturating_mul(2).saturating_add(2)
}

/// What an end of the compiler's process says of its source: a rejection with the limit in it. What
/// is this machine's fault stays as it is.
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

/// Which limit of a compilation a signal stands for; nothing where somebody else sent it.
fn of_signal(
    signal: i32,
    used: &Used,
    timeout: Duration,
    machine: Option<u64>,
) -> Option<(FailureCode, String)> {
    let cpu = cpu_limit(timeout);
    let spent = used.cpu_s + 1.0 >= cpu as f64;
    let memory = size(ADDRESS_SPACE);
    Some(match signal {
        SIGXCPU | SIGKILL if spent => (
            FailureCode::CompilerCpuLimit,
            format!(
                "the compiler was stopped after the {cpu} s of processor time that it may take"
            ),
        ),
        SIGXFSZ => (
            FailureCode::CompilerFileLimit,
            format!("the compiler wrote a file larger than the {} it may write", size(FILE_SIZE)),
        ),
        // The system kills a process when memory runs out. It counts that, or the process held much memory.
        // Several compilations share the memory, so that none of them need hold most.
        SIGKILL => {
            let much = (ADDRESS_SPACE / 4).min(machine.unwrap_or(u64::MAX) / 2);
            if !used.starved && used.resident_bytes < much {
                return None;
            }
            let of = machine.map(|machine| format!(", {}", size(machine))).unwrap_or_default();
            let what =
                format!("the compiler was stopped when the memory of the machine{of}, ran out");
            (FailureCode::CompilerOutOfMemory, what)
        }
        SIGHUP | SIGINT | SIGTERM | SIGXCPU => return None,
        _ if used.address_bytes >= ADDRESS_SPACE / 100 * NEAR_PERCENT => (
            FailureCode::CompilerOutOfMemory,
            format!(
                "the compiler crashed (signal {signal}) for want of memory, of which it may take {memory}"
            ),
        ),
        _ => (
            FailureCode::CompilerCrashed,
            format!(
                "the compiler crashed (signal {signal}) on this source, as it does where the code \
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
        let used = Used { cpu_s, resident_bytes, address_bytes, ..Used::default() };
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
        // One of several, none of which held most of it.
        assert_eq!(of(SIGKILL, 1.0, 2_100, 3_000), Some(FailureCode::CompilerOutOfMemory));
        let used = Used { starved: true, resident_bytes: 100 << 20, ..Used::default() };
        let limit = Duration::from_secs(10);
        let (code, what) = of_signal(SIGKILL, &used, limit, Some(64 << 30)).unwrap();
        assert_eq!(code, FailureCode::CompilerOutOfMemory);
        assert!(what.contains("memory of the machine, 64.0 GiB, ran out"), "{what}");
        // Killed while it was small, or asked to end: not by us, and not for what it did.
        assert_eq!(of(SIGKILL, 1.0, 100, 2_000), None);
        assert_eq!(of(SIGTERM, 1.0, 100, 2_000), None);
    }

    #[test]
    fn what_the_machine_did_stays_its_fault() {
        let used = Used::default();
        let killed = CompileError::Crashed { signal: Some(SIGTERM), log: String::new(), used };
        let same = judged(killed, Duration::from_secs(1));
        assert!(matches!(same, CompileError::Crashed { signal: Some(SIGTERM), .. }), "{same:?}");
        let late = CompileError::Timeout { seconds: 5.0, used: Used { cpu_s: 4.5, ..used } };
        let CompileError::Rejected(failure) = judged(late, Duration::from_secs(5)) else {
            panic!("a result");
        };
        assert_eq!(failure.code, FailureCode::CompilerTimeout);
        for part in ["within 5 s", "4.5 s of processor time", "simplify", "`timeout`"] {
            assert!(failure.message.contains(part), "{part}: {}", failure.message);
        }
    }

    #[test]
    fn processes_tell_what_they_took() {
        let stat = "7 (a) b (c)) R 1 7 7 0 -1 4194560 9 0 0 0 150 50 25 25 20 0 1 0 5 6 7";
        assert!((cpu_seconds(stat) - 2.5).abs() < 1e-9);
        assert_eq!(cpu_seconds(""), 0.0);
        let own = Used::of(i32::try_from(std::process::id()).unwrap());
        assert!(own.resident_bytes > 0 && own.address_bytes >= own.resident_bytes, "{own:?}");
    }
}
