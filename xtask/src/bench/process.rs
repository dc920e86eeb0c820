//! Reads the memory use and the children of a process from `/proc`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Memory use of a process, MiB.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Resident memory at the time of reading.
    pub resident: f64,
    /// Largest resident memory since the start of the process, or since [`reset_peak`].
    pub peak: f64,
}

pub fn memory(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let field =
        |name: &str| status_field_mib(&text, name).with_context(|| format!("{path} has no {name}"));
    Ok(Memory { resident: field("VmRSS:")?, peak: field("VmHWM:")? })
}

/// Resets the peak to the current resident memory.
pub fn reset_peak(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
}

fn status_field_mib(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

/// Returns the direct children of a process.
pub fn children(pid: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    let tasks = format!("/proc/{pid}/task");
    for task in fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
        // A thread may end while its directory is read.
        let text = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    Ok(found)
}

/// Returns whether a process exists and has not ended. A zombie has ended.
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        // The state follows the name of the program. The name is in parentheses and may contain any
        // character.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

/// Waits until one of the processes has ended, and returns its id.
pub fn wait_for_one_to_end(pids: &[u32], limit: Duration) -> Result<u32> {
    let start = Instant::now();
    loop {
        if let Some(pid) = pids.iter().find(|pid| !is_alive(**pid)) {
            return Ok(*pid);
        }
        if start.elapsed() > limit {
            bail!("none of the processes {pids:?} ended within {limit:?}");
        }
        // A process can only wait for its direct children, so this function polls every
        // millisecond.
        thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::{is_alive, memory, status_field_mib};

    #[test]
    fn reads_own_memory() {
        let own = memory(std::process::id()).map(|m| (m.resident > 0.1, m.peak >= m.resident));
        assert_eq!(own.ok(), Some((true, true)));
        assert!(is_alive(std::process::id()));
    }

    #[test]
    fn converts_to_mib() {
        assert_eq!(status_field_mib("VmHWM:\t    2048 kB\n", "VmHWM:"), Some(2.0));
        assert_eq!(status_field_mib("VmHWM:\t    2048 kB\n", "VmRSS:"), None);
    }
}
