//! Capabilities: children of a server that runs as root have none.
//!
//! A child drops them before it does anything else, and what it starts cannot get them back: the bounding
//! set is empty, and no program gains privileges by its owner or its file.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// Which capabilities stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptCapabilities {
    /// None.
    Nothing,
    /// `CAP_SYS_ADMIN`, where NVIDIA's driver gives hardware counters to administrators alone: for a process
    /// that reads counters and runs no host code of a stranger's.
    Counters,
    /// What it takes to change the mounts of the process' own namespaces and to drop that later, until it has
    /// its [root directory](super::own_root::confine).
    OwnRoot,
}

/// Drops the capabilities of this process and of all that it starts. Must be called while the process has
/// one thread.
///
/// # Errors
/// The kernel refuses it.
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
    // Only who has this capability can gain others, and only it can empty the set.
    if current.effective.contains(CapabilitySet::SETPCAP) {
        // A kernel knows the first few, and says for each other number that there is none.
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

/// Whether the driver gives hardware counters to administrators alone.
fn counters_are_for_administrators() -> bool {
    let parameters = std::fs::read_to_string("/proc/driver/nvidia/params").unwrap_or_default();
    parameters.lines().any(|line| line.trim() == "RmProfilingAdminOnly: 1")
}

/// Whether this process runs as root, with capabilities that its children would have but for [`drop_all`].
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
