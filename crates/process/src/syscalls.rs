//! System calls that a process of ours never needs: refused by seccomp, for it and all it starts.
//!
//! A GPU's driver changes which calls it makes from version to version, so the list says what is
//! refused and not what is allowed: looking into or changing other processes, the kernel, mounts and
//! name spaces, keys, io_uring (whose calls a filter does not see), other programs, and sockets to
//! anywhere but this machine.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter_all_threads,
};

use super::sandbox::Enforcement;

/// Refused whatever their arguments.
pub(crate) const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Other programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_userfaultfd,
    libc::SYS_syslog,
    libc::SYS_reboot,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    // Mounts and name spaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Keys.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Families of sockets that are left: those of this machine, and the kernel's own.
pub(crate) const FAMILIES: [i32; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// What a process refuses itself beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// The processor's counters too.
    Refused,
    /// They stay: it reads hardware counters.
    Needed,
}

/// What is refused with these settings.
fn rules(counters: Counters) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if counters == Counters::Refused {
        rules.insert(libc::SYS_perf_event_open, Vec::new());
    }
    rules.insert(libc::SYS_socket, other_sockets()?);
    Ok(rules)
}

/// Sockets of other families.
pub(crate) fn other_sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let others = FAMILIES.iter().map(|family| differs(0, *family));
    Ok(vec![SeccompRule::new(others.collect::<Result<Vec<_>, _>>()?)?])
}

/// That an argument of a call is another than this.
pub(crate) fn differs(argument: u8, value: i32) -> Result<SeccompCondition, BackendError> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// A filter that refuses these calls with an error.
pub(crate) fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: i32,
) -> Result<BpfProgram, BackendError> {
    let refusal = SeccompAction::Errno(errno.cast_unsigned());
    let arch = std::env::consts::ARCH.try_into()?;
    BpfProgram::try_from(SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch)?)
}

/// Has the kernel apply filters, if they could be made, to all threads of this process.
pub(crate) fn apply(filters: Result<Vec<BpfProgram>, BackendError>) -> Enforcement {
    let applied = filters
        .map_err(seccompiler::Error::from)
        .and_then(|filters| filters.iter().try_for_each(|one| apply_filter_all_threads(one)));
    match applied {
        Ok(()) => Enforcement::Full,
        Err(error) => {
            Enforcement::None { reason: format!("the kernel refuses the filter: {error}") }
        }
    }
}

/// Has the kernel refuse those calls from now on (`EPERM`), to all threads of this process and to all
/// that it starts. It cannot be lifted. It takes the right to gain privileges away, too.
pub fn refuse_calls(counters: Counters) -> Enforcement {
    apply(rules(counters).and_then(|rules| Ok(vec![filter(rules, libc::EPERM)?])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_can_be_made() {
        let count = |counters| rules(counters).unwrap().len();
        assert_eq!(count(Counters::Refused), REFUSED.len() + 2, "each call is listed once");
        assert_eq!(count(Counters::Needed), REFUSED.len() + 1);
    }
}
