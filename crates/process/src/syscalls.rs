//! System calls that a process of ours never needs: refused by seccomp, for it and all it starts.
//!
//! A GPU's driver changes which calls it makes from version to version, so the list says what is
//! refused and not what is allowed: looking into or changing other processes, the kernel, mounts and
//! name spaces, keys, io_uring (whose calls a filter does not see), other programs, and sockets to
//! anywhere but this machine.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
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
fn rules(counters: Counters) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if counters == Counters::Refused {
        rules.insert(libc::SYS_perf_event_open, Vec::new());
    }
    rules.insert(libc::SYS_socket, other_sockets()?);
    Ok(rules)
}

/// Sockets of other families.
pub(crate) fn other_sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let others = FAMILIES.iter().map(|family| {
        let family = u64::from(family.cast_unsigned());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    });
    let others = others.collect::<Result<Vec<_>, _>>()?;
    Ok(vec![SeccompRule::new(others)?])
}

/// Has the kernel refuse those calls from now on (`EPERM`), to all threads of this process and to all
/// that it starts. It cannot be lifted. It takes the right to gain privileges away, too.
pub fn refuse_calls(counters: Counters) -> Enforcement {
    let made = rules(counters).and_then(|rules| {
        let refusal = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let arch = std::env::consts::ARCH.try_into()?;
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch)?;
        BpfProgram::try_from(filter)
    });
    let applied =
        made.map_err(seccompiler::Error::from).and_then(|filter| apply_filter_all_threads(&filter));
    match applied {
        Ok(()) => Enforcement::Full,
        Err(error) => {
            Enforcement::None { reason: format!("the kernel refuses the filter: {error}") }
        }
    }
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
