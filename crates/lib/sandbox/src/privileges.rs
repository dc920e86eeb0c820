//! Capabilities. Children of a server that runs as root have none. The main function is
//! [`drop_all`].
//!
//! A child drops its capabilities before it does anything else, and the processes that it starts
//! cannot regain them. The bounding set is empty, and no program gains privileges through its owner
//! or its file.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// The capabilities that a process keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptCapabilities {
    Nothing,
    /// `CAP_SYS_ADMIN`, if NVIDIA's driver restricts hardware counters to administrators. It is for
    /// a process that reads counters and runs no submitted host code.
    Counters,
    /// The capabilities for changing the mounts of the process's own namespaces, and for dropping
    /// these capabilities later. The process keeps them until it has moved to its [root
    /// directory](super::own_root::confine).
    OwnRoot,
}

/// Drops the capabilities of this process and of all processes that it starts. Must be called while
/// the process is single-threaded.
///
/// # Errors
/// The kernel refuses a step.
pub fn drop_all(keep: KeptCapabilities) -> io::Result<()> {
    let kept = match keep {
        KeptCapabilities::Counters if counters_are_for_administrators() => {
            capabilities(None)?.permitted & CapabilitySet::SYS_ADMIN
        }
        KeptCapabilities::OwnRoot => CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP,
        KeptCapabilities::Counters | KeptCapabilities::Nothing => CapabilitySet::empty(),
    };
    set_no_new_privs(true)?;
    let current = capabilities(None)?;
    // A process needs this capability to gain other capabilities and to empty the bounding set.
    if current.effective.contains(CapabilitySet::SETPCAP) {
        // A kernel knows only the first few capabilities, and reports an error for other numbers.
        for number in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            if !kept.contains(capability)
                && capability_is_in_bounding_set(capability).unwrap_or(false)
            {
                remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })?;
    Ok(())
}

/// Returns whether the driver restricts hardware counters to administrators.
fn counters_are_for_administrators() -> bool {
    let parameters = std::fs::read_to_string("/proc/driver/nvidia/params").unwrap_or_default();
    parameters.lines().any(|line| line.trim() == "RmProfilingAdminOnly: 1")
}

/// Returns whether this process runs as root. Without [`drop_all`], its children would then have
/// capabilities.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
