//! Resource usage of a process: processor time and memory, as the operating system reports them.

use std::fmt;

/// Clock ticks per second in `/proc/*/stat`; the same on every Linux.
const TICKS: f64 = 100.0;

/// Resource usage of a compilation at the last reading.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessUsage {
    /// Processor time used, seconds.
    pub cpu_s: f64,
    /// Largest size of the resident memory, bytes.
    pub resident_bytes: u64,
    /// Largest size of the address space, bytes.
    pub address_bytes: u64,
    /// Whether the system ran out of memory and killed a process in the meantime.
    pub starved: bool,
}

impl fmt::Display for ProcessUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it had used {:.1} s of processor time and {} of memory",
            self.cpu_s,
            size(self.resident_bytes)
        )
    }
}

impl ProcessUsage {
    /// Returns the current usage of a process. The processor time is available even if the process
    /// has ended but was not waited for.
    pub(crate) fn of(process: i32) -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}"));
        let (stat, status) = (read("stat").unwrap_or_default(), read("status").unwrap_or_default());
        Self { cpu_s: cpu_seconds(&stat), ..memory(&status) }
    }

    /// Replaces each value with the larger of the two usages' values.
    pub(crate) fn grow(&mut self, other: Self) {
        self.cpu_s = self.cpu_s.max(other.cpu_s);
        self.resident_bytes = self.resident_bytes.max(other.resident_bytes);
        self.address_bytes = self.address_bytes.max(other.address_bytes);
        self.starved |= other.starved;
    }
}

/// Returns the processor time of a process and of the children that it waited for, in user and
/// system mode, from `/proc/*/stat`.
fn cpu_seconds(stat: &str) -> f64 {
    // The second field is a name in brackets, which may contain anything; the state follows it.
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0.0 };
    let ticks = rest.split_ascii_whitespace().skip(11).take(4);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}

fn memory(status: &str) -> ProcessUsage {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0).saturating_mul(1 << 10)
    };
    ProcessUsage {
        resident_bytes: bytes("VmHWM:"),
        address_bytes: bytes("VmPeak:"),
        ..ProcessUsage::default()
    }
}

/// Returns the number of processes that the system has killed for lack of memory: those on this
/// machine plus those in this control group.
pub(crate) fn kills_for_memory() -> u64 {
    let count = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line =
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse::<u64>().ok());
        line.unwrap_or_default()
    };
    count("/proc/vmstat").saturating_add(count("/sys/fs/cgroup/memory.events"))
}

/// Formats a size for people to read.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1 << 30 {
        format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
    } else {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_tell_what_they_took() {
        let stat = "7 (a) b (c)) R 1 7 7 0 -1 4194560 9 0 0 0 150 50 25 25 20 0 1 0 5 6 7";
        assert!((cpu_seconds(stat) - 2.5).abs() < 1e-9);
        assert_eq!(cpu_seconds(""), 0.0);
        let own = ProcessUsage::of(i32::try_from(std::process::id()).unwrap());
        assert!(own.resident_bytes > 0 && own.address_bytes >= own.resident_bytes, "{own:?}");
    }
}
