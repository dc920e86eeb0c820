//! Determines from system settings whether this process may read the hardware counters.

use std::fs;

use rustix::process::geteuid;

use warpgauge_model::{Cause, Unavailable};

/// File that lists the parameters of NVIDIA's kernel driver.
const PARAMETERS: &str = "/proc/driver/nvidia/params";

/// Bit number of `CAP_SYS_ADMIN` in a set of capabilities (linux/capability.h).
const CAP_SYS_ADMIN: u32 = 21;

/// Names of monitoring programs that read counters all the time. /proc shortens names to 15
/// characters.
const KNOWN_READERS: [&str; 4] = ["nv-hostengine", "dcgm-exporter", "dcgmi", "nvidia-dcgm"];

/// Maximum number of processes that the search for these programs examines.
const MAX_PROCESSES: usize = 65_536;

/// Whether this process may read the hardware counters, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterAccess {
    /// Reason why the counters cannot be read. `None` if nothing that is known in advance prevents
    /// it.
    pub refused: Option<Unavailable>,
    /// Reason why this process may or may not read the counters, or why this is unknown.
    pub because: String,
    /// Running programs that may hold the counters, with their process numbers.
    pub readers: Vec<String>,
}

/// Reads the driver's setting and this process's rights, and searches for other readers.
pub fn access() -> CounterAccess {
    let parameters = fs::read_to_string(PARAMETERS).ok();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let (refused, because) =
        judge(parameters.as_deref(), geteuid().is_root(), has_capability(&status));
    CounterAccess { refused, because, readers: readers() }
}

/// Returns why the counters are inaccessible (`None` if they are accessible), and an explanation in
/// either case.
fn judge(parameters: Option<&str>, root: bool, capable: bool) -> (Option<Unavailable>, String) {
    match parameters.map(admin_only) {
        None => {
            let text = format!("{PARAMETERS} cannot be read: NVIDIA's driver is not loaded");
            (Some(Cause::NoDriver.because(text.clone())), text)
        }
        Some(Some(false)) => (None, "the driver opens them to all users".to_owned()),
        Some(Some(true)) if capable => {
            (None, "the driver opens them to administrators, and this process is one".to_owned())
        }
        Some(Some(true)) => {
            let who = if root { "root without CAP_SYS_ADMIN" } else { "an ordinary user" };
            let text = format!(
                "the driver opens them to administrators only (RmProfilingAdminOnly: 1), and this \
                 process is {who}"
            );
            (Some(Cause::NoPermission.because(text.clone())), text)
        }
        Some(None) => (None, format!("{PARAMETERS} does not say who may read them")),
    }
}

/// Returns the driver's setting `RmProfilingAdminOnly`.
fn admin_only(parameters: &str) -> Option<bool> {
    let value = parameters.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))?;
    value.trim().parse::<u32>().ok().map(|value| value != 0)
}

/// Returns whether `CAP_SYS_ADMIN` is in a process's effective set of capabilities. `status` is the
/// content of `/proc/<pid>/status`.
fn has_capability(status: &str) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << CAP_SYS_ADMIN) != 0)
}

/// Returns the running programs that are known to read counters.
fn readers() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.flatten().take(MAX_PROCESSES).filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let name = fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
        let name = name.trim();
        KNOWN_READERS.contains(&name).then(|| format!("{name} ({number})"))
    });
    processes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: &str = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n";
    const OPEN: &str = "RmProfilingAdminOnly: 0\nEnableMSI: 1\n";

    #[test]
    fn the_setting_and_the_rights_decide() {
        let code = |parameters, root, capable| {
            judge(parameters, root, capable).0.map(|refused| refused.code)
        };
        assert_eq!(code(Some(OPEN), false, false), None);
        assert_eq!(code(Some(CLOSED), false, false).as_deref(), Some("no_permission"));
        assert_eq!(code(Some(CLOSED), true, false).as_deref(), Some("no_permission"));
        assert_eq!(code(Some(CLOSED), true, true), None);
        assert_eq!(code(Some("EnableMSI: 1"), false, false), None);
        assert_eq!(code(None, true, true).as_deref(), Some("no_driver"));
    }

    #[test]
    fn the_capability_is_one_bit() {
        assert!(has_capability("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(has_capability("CapEff:\t0000000000200000"));
        assert!(!has_capability("CapEff:\t00000000a80425fb"));
        assert!(!has_capability("CapPrm:\t000001ffffffffff"));
    }
}
