//! System calls that are left to an interpreter which runs a stranger's code, and to a stranger's program.
//!
//! It computes: it reads what landlock leaves it to read, allocates memory, and answers on a descriptor
//! that it has. So it is refused what [`syscalls`](super::syscalls) refuses, and to start processes, to
//! make sockets, to create or change files, and memory that no limit counts.

use std::collections::BTreeMap;

use base64::Engine as _;
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::sandbox::Enforcement;
use super::syscalls::{FAMILIES, REFUSED, apply, differs, filter, other_sockets};

/// Refused beside those, whatever their arguments.
const REFUSED_TOO: &[i64] = &[
    // Sockets and messages.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    // Memory that is no process's own.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    // Files: `open` and `openat` to write, see below.
    libc::SYS_openat2,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    // Other processes: whoever started it is one of the same user.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_mrelease,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setparam,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_ioprio_set,
    // What the kernel goes on with where the process is stopped.
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    // What would outlive it, or slow others down.
    libc::SYS_perf_event_open,
    libc::SYS_timer_create,
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_setpriority,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
];

/// Calls that newer architectures do not have: others do the same there.
#[cfg(target_arch = "x86_64")]
const OLD: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_inotify_init,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[i64] = &[];

/// That an argument of a call has this value under a mask.
fn has(argument: u8, mask: i32, value: i32) -> Result<SeccompCondition, BackendError> {
    let (mask, value) = (u64::from(mask.cast_unsigned()), u64::from(value.cast_unsigned()));
    let operation = SeccompCmpOp::MaskedEq(mask);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

/// The same, where nothing else matters.
fn masked(argument: u8, mask: i32, value: i32) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![has(argument, mask, value)?])
}

/// Of all these, what a driver does not start without (580, CUDA 13): it listens on a socket of its own,
/// which has no name in the file system, and takes away a file that is not there. Files are landlock's.
const LEFT_TO_DRIVER: &[i64] =
    &[libc::SYS_socket, libc::SYS_bind, libc::SYS_listen, DRIVER_UNLINKS];

#[cfg(target_arch = "x86_64")]
const DRIVER_UNLINKS: i64 = libc::SYS_unlink;
#[cfg(not(target_arch = "x86_64"))]
const DRIVER_UNLINKS: i64 = libc::SYS_unlinkat;

/// Opening a file in any way that changes one: to write, to create, or without a name.
fn to_write(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let bit = |bit: i32| masked(flags, bit, bit);
    Ok(vec![
        masked(flags, libc::O_ACCMODE, libc::O_WRONLY)?,
        masked(flags, libc::O_ACCMODE, libc::O_RDWR)?,
        bit(libc::O_CREAT)?,
        bit(libc::O_TRUNC)?,
    ])
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let whole = REFUSED.iter().chain(REFUSED_TOO).chain(OLD).map(|call| (*call, Vec::new()));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = whole.collect();
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, to_write(1)?);
    rules.insert(libc::SYS_openat, to_write(2)?);
    refuse_others(&mut rules)?;
    Ok(rules)
}

/// For one that uses a device.
fn rules_with_device() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let whole = REFUSED.iter().chain(REFUSED_TOO).chain(OLD);
    let refused = whole.filter(|call| !LEFT_TO_DRIVER.contains(call));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        refused.map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, other_sockets()?);
    refuse_others(&mut rules)?;
    Ok(rules)
}

/// Other processes, and what they are sent.
fn refuse_others(rules: &mut BTreeMap<i64, Vec<SeccompRule>>) -> Result<(), BackendError> {
    // All but a thread is a process.
    rules.insert(libc::SYS_clone, vec![masked(0, libc::CLONE_THREAD, 0)?]);
    // `abort` sends the signal that ends a process that is broken; nothing else is sent.
    let other_signal = differs(2, libc::SIGABRT)?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![other_signal])?]);
    // It ends with whoever started it, whatever it wants.
    let end_signal = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(libc::PR_SET_PDEATHSIG.cast_unsigned()),
    )?;
    rules.insert(libc::SYS_prctl, vec![SeccompRule::new(vec![end_signal])?]);
    // Its own limits it may look at.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![differs(0, 0)?])?]);
    Ok(())
}

/// For a whole program, which this process is to become: that takes one `execve`, and landlock says of what.
fn rules_of_program() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = rules_with_device()?;
    rules.remove(&libc::SYS_execve);
    Ok(rules)
}

/// Of what a program with a device is refused, what Nsight Systems 2025.3 does not record without, each tried
/// by itself: it talks to its agent, and keeps files. Nsight Compute makes a directory.
const LEFT_TO_TOOL: &[i64] = &[libc::SYS_connect, libc::SYS_mkdirat, libc::SYS_fallocate];

/// The same by older names.
#[cfg(target_arch = "x86_64")]
const LEFT_TO_TOOL_TOO: &[i64] = &[libc::SYS_mkdir];
#[cfg(not(target_arch = "x86_64"))]
const LEFT_TO_TOOL_TOO: &[i64] = &[];

/// The bit by which a file without a name is asked for.
const NO_NAME: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

/// For a whole program that a tool looks into. Files are landlock's, and the ports that are connected to; what
/// is created has a name and keeps it, so that it can be found and counted.
fn rules_under_tool() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = rules_of_program()?;
    for call in LEFT_TO_TOOL.iter().chain(LEFT_TO_TOOL_TOO) {
        rules.remove(call);
    }
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![masked(1, NO_NAME, NO_NAME)?]);
    rules.insert(libc::SYS_openat, vec![masked(2, NO_NAME, NO_NAME)?]);
    rules.insert(libc::SYS_socket, sockets_of_tool()?);
    // What is sent may connect, too.
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        rules.insert(call, vec![masked(flags, libc::MSG_FASTOPEN, libc::MSG_FASTOPEN)?]);
    }
    Ok(rules)
}

/// Sockets but those of this machine and of TCP. Landlock knows connections of TCP alone: other kinds of
/// sockets reach whom they like.
fn sockets_of_tool() -> Result<Vec<SeccompRule>, BackendError> {
    let mut families = vec![differs(0, libc::AF_INET)?];
    for family in FAMILIES {
        families.push(differs(0, family)?);
    }
    let inet = || has(0, i32::MAX, libc::AF_INET);
    let mut sockets = vec![SeccompRule::new(families)?];
    for kind in (0..16).filter(|kind| *kind != libc::SOCK_STREAM) {
        sockets.push(SeccompRule::new(vec![inet()?, has(1, 0xf, kind)?])?);
    }
    let other_protocol = vec![inet()?, differs(2, 0)?, differs(2, libc::IPPROTO_TCP)?];
    sockets.push(SeccompRule::new(other_protocol)?);
    Ok(sockets)
}

fn program(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<Vec<u8>, BackendError> {
    let program = filter(rules, errno)?;
    let mut bytes = Vec::with_capacity(8 * program.len());
    for instruction in program {
        bytes.extend(instruction.code.to_ne_bytes());
        bytes.extend([instruction.jt, instruction.jf]);
        bytes.extend(instruction.k.to_ne_bytes());
    }
    Ok(bytes)
}

/// The filters as the kernel takes them (`struct sock_filter`, one after the other), in base64, to be
/// installed by the interpreter itself before it reads what a stranger wrote: `refuse_calls` of the prelude
/// of [`python`](super::python).
///
/// # Errors
/// There is no filter for this machine's architecture.
pub fn filters() -> Result<Vec<String>, BackendError> {
    Ok(programs(rules()?)?.into_iter().map(encoded).collect())
}

/// The same for an interpreter that uses a device.
///
/// # Errors
/// There is no filter for this machine's architecture.
pub fn filters_with_device() -> Result<Vec<String>, BackendError> {
    Ok(programs(rules_with_device()?)?.into_iter().map(encoded).collect())
}

/// For one that a tool is round, and that was confined as a whole program is before it was an interpreter
/// ([`whole_program`](super::whole_program)): what it had to do to become one, it does no more. The tool needs
/// the rest (Nsight Compute makes a directory when it looks at a launch).
///
/// # Errors
/// There is no filter for this machine's architecture.
pub fn filters_once_started() -> Result<Vec<String>, BackendError> {
    let calls = [libc::SYS_execve, libc::SYS_execveat];
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    Ok(vec![encoded(program(rules, libc::EPERM)?)])
}

fn encoded(program: Vec<u8>) -> String {
    base64::engine::general_purpose::STANDARD.encode(program)
}

fn programs(rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<Vec<Vec<u8>>, BackendError> {
    Ok(vec![program(rules, libc::EPERM)?, program(no_clone3(), libc::ENOSYS)?])
}

/// The arguments of `clone3` are in memory, where a filter cannot look. Told that there is no such call, the
/// C library makes threads with `clone`.
fn no_clone3() -> BTreeMap<i64, Vec<SeccompRule>> {
    BTreeMap::from([(libc::SYS_clone3, Vec::new())])
}

/// Has the kernel refuse this process, from now on, what an interpreter with a device is refused, but to
/// become another program. It cannot be lifted.
pub(crate) fn refuse_calls_of_program() -> Enforcement {
    refuse(rules_of_program())
}

/// The same for a program that a tool looks into.
pub(crate) fn refuse_calls_under_tool() -> Enforcement {
    refuse(rules_under_tool())
}

fn refuse(rules: Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError>) -> Enforcement {
    apply(rules.and_then(|rules| {
        Ok(vec![filter(rules, libc::EPERM)?, filter(no_clone3(), libc::ENOSYS)?])
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_are_what_the_kernel_takes() {
        let both = [rules().unwrap(), rules_with_device().unwrap()];
        for filter in both.into_iter().flat_map(|rules| programs(rules).unwrap()) {
            assert!(filter.len() % 8 == 0, "{} bytes", filter.len());
            // BPF_MAXINSNS
            assert!((1..=4096).contains(&(filter.len() / 8)), "{} instructions", filter.len() / 8);
        }
        let conditional = if OLD.is_empty() { 5 } else { 6 };
        let listed = REFUSED.len() + REFUSED_TOO.len() + OLD.len() + conditional;
        assert_eq!(rules().unwrap().len(), listed, "each call is listed once");
    }
}
