//! System calls that are allowed only with certain arguments. With other arguments they fail like
//! calls that are on no list. The main type is [`Rules`].

use std::collections::BTreeMap;

use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// The rules for each system call number. A call without rules is allowed with any arguments.
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

type Result<T> = std::result::Result<T, BackendError>;

/// The ways in which a process may open files. Landlock decides which files it can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    Read,
    /// Existing files may be opened for reading, or for reading and writing, as devices require.
    /// Files that landlock allows only to be written, such as `/proc/self/task/*/oom_score_adj`,
    /// cannot be opened.
    Device,
    /// Named files may be opened for reading and writing, and created.
    Write,
}

/// The kinds of sockets that a process may create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Only the kind that NVIDIA's driver creates: `AF_UNIX`, `SOCK_SEQPACKET`.
    Driver,
    /// In addition, stream sockets, because the code that NVIDIA's tools inject listens on one.
    Streams,
    /// In addition, TCP over IPv4. Landlock restricts the ports.
    Tcp,
}

/// The options of `prctl` that a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// Setting the names of threads, and queries.
    Itself,
    /// In addition, setting the parent death signal and filters, for a process that confines itself
    /// further.
    Confining,
}

fn condition(argument: u8, operation: SeccompCmpOp, value: i32) -> Result<SeccompCondition> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

/// Creates the condition that an argument equals this value.
fn is(argument: u8, value: i32) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::Eq, value)
}

/// Creates the condition that an argument equals this value after a mask is applied.
fn masked(argument: u8, mask: i32, value: i32) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::MaskedEq(u64::from(mask.cast_unsigned())), value)
}

fn one_of(argument: u8, values: &[i32]) -> Result<Vec<SeccompRule>> {
    values.iter().map(|value| SeccompRule::new(vec![is(argument, *value)?])).collect()
}

/// Adds the rules that apply to every child: calls whose arguments affect only the process itself.
pub(super) fn every(rules: &mut Rules) -> Result<()> {
    rules.insert(libc::SYS_fcntl, one_of(1, &FCNTL)?);
    // If `F_SETFL` sets `O_ASYNC`, the kernel sends signals, which would wake a stopped process.
    let without_signals =
        SeccompRule::new(vec![is(1, libc::F_SETFL)?, masked(2, libc::O_ASYNC, 0)?])?;
    rules.entry(libc::SYS_fcntl).or_default().push(without_signals);
    rules.insert(libc::SYS_ioctl, one_of(1, &IOCTL)?);
    // The limits of the process itself, which it can only lower without a capability.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(0, 0)?])?]);
    // `abort` sends the signal that ends a broken process. A process sends itself no other signal
    // with this call.
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![is(2, libc::SIGABRT)?])?]);
    // Queries about the process itself, whose id is given as 0.
    let of_itself = [
        libc::SYS_getpgid,
        libc::SYS_getsid,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_getparam,
        libc::SYS_sched_getscheduler,
        libc::SYS_sched_rr_get_interval,
    ];
    for call in of_itself {
        rules.insert(call, vec![SeccompRule::new(vec![is(0, 0)?])?]);
    }
    // All users of a machine share its huge pages.
    rules.insert(libc::SYS_mmap, vec![SeccompRule::new(vec![masked(3, libc::MAP_HUGETLB, 0)?])?]);
    Ok(())
}

/// The commands of `fcntl` except `F_SETFL`.
const FCNTL: [i32; 7] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_GETPIPE_SZ,
    libc::F_GET_SEALS,
];

/// The `ioctl` requests that are allowed on any descriptor. They query whether it is a terminal,
/// and how it is read.
const IOCTL: [i32; 7] = [
    cast(libc::TCGETS),
    // TCGETS2, which newer C libraries use.
    0x802c_542a_u32.cast_signed(),
    cast(libc::TIOCGWINSZ),
    cast(libc::FIONREAD),
    cast(libc::FIONBIO),
    cast(libc::FIOCLEX),
    cast(libc::FIONCLEX),
];

/// Converts an `ioctl` request to the 32 bits that the kernel uses.
const fn cast(request: libc::c_ulong) -> i32 {
    request as u32 as i32
}

/// Allows threads but not processes: a call must have exactly the flags that create a thread, and
/// may add flags that affect only the process's own memory.
pub(super) fn threads(rules: &mut Rules) -> Result<()> {
    let needed = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
    // CLONE_DETACHED has no effect, but some C libraries set it.
    let optional = libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID
        | libc::CLONE_CHILD_SETTID
        | libc::CLONE_DETACHED;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![masked(0, !optional, needed)?])?]);
    Ok(())
}

/// Allows threads and processes in the namespaces of their parent.
pub(super) fn processes(rules: &mut Rules) -> Result<()> {
    let spaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_PTRACE;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![masked(0, spaces, 0)?])?]);
    Ok(())
}

pub(super) fn opening(rules: &mut Rules, opening: Opening) -> Result<()> {
    // An unnamed file is in no directory, so its size would not be counted.
    let nameless = libc::O_TMPFILE & !libc::O_DIRECTORY;
    let changing = libc::O_CREAT | libc::O_TRUNC | nameless;
    // The relevant flags, and their allowed values.
    let (mask, values): (i32, &[i32]) = match opening {
        Opening::Read => (libc::O_ACCMODE | changing, &[libc::O_RDONLY]),
        Opening::Device => (libc::O_ACCMODE | changing, &[libc::O_RDONLY, libc::O_RDWR]),
        Opening::Write => (nameless, &[0]),
    };
    let rule = |flags: u8| -> Result<Vec<SeccompRule>> {
        values.iter().map(|value| SeccompRule::new(vec![masked(flags, mask, *value)?])).collect()
    };
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, rule(1)?);
    rules.insert(libc::SYS_openat, rule(2)?);
    Ok(())
}

pub(super) fn control(rules: &mut Rules, control: Control) -> Result<()> {
    let mut options = vec![
        libc::PR_SET_NAME,
        libc::PR_GET_NAME,
        libc::PR_GET_DUMPABLE,
        libc::PR_GET_PDEATHSIG,
        libc::PR_GET_SECCOMP,
        libc::PR_GET_NO_NEW_PRIVS,
        libc::PR_SET_NO_NEW_PRIVS,
        libc::PR_CAPBSET_READ,
        libc::PR_GET_TIMERSLACK,
        libc::PR_SET_TIMERSLACK,
        libc::PR_GET_THP_DISABLE,
        libc::PR_SET_THP_DISABLE,
        libc::PR_SET_VMA,
    ];
    if control == Control::Confining {
        options.extend([libc::PR_SET_PDEATHSIG, libc::PR_SET_SECCOMP]);
    }
    rules.insert(libc::SYS_prctl, one_of(0, &options)?);
    Ok(())
}

/// Allows requests to NVIDIA's driver, and the locks that workers of the emulated device use on a
/// shared file.
pub(super) fn devices(rules: &mut Rules) -> Result<()> {
    let ioctl = rules.entry(libc::SYS_ioctl).or_default();
    // Requests to the devices, of type 'F' in Linux's scheme (`NV_IOCTL_MAGIC`).
    ioctl.push(SeccompRule::new(vec![masked(1, 0xff00, 0x4600)?])?);
    // Requests to /dev/nvidia-uvm: plain numbers (`UVM_IOCTL_BASE`), and the requests that
    // initialise and deinitialise it.
    ioctl.push(SeccompRule::new(vec![masked(1, !0xff, 0)?])?);
    ioctl.push(SeccompRule::new(vec![masked(1, !0x3, 0x3000_0000)?])?);
    rules
        .entry(libc::SYS_fcntl)
        .or_default()
        .extend(one_of(1, &[libc::F_OFD_GETLK, libc::F_OFD_SETLK])?);
    Ok(())
}

/// Allows receiving the kernel's notifications about processes whose threads are counted, and
/// answering them. The requests are of type '!' in Linux's scheme.
pub(super) fn supervision(rules: &mut Rules) -> Result<()> {
    let requests = [libc::SECCOMP_IOCTL_NOTIF_RECV, libc::SECCOMP_IOCTL_NOTIF_SEND].map(cast);
    rules.entry(libc::SYS_ioctl).or_default().extend(one_of(1, &requests)?);
    Ok(())
}

/// Allows locks on open files. Nsight Compute waits for one before it measures a launch.
pub(super) fn locks(rules: &mut Rules) -> Result<()> {
    let commands = [libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW];
    rules.entry(libc::SYS_fcntl).or_default().extend(one_of(1, &commands)?);
    Ok(())
}

/// Allows locks on whole files. NVRTC takes one while it unpacks its headers (since 13.5).
pub(super) fn file_locks(rules: &mut Rules) -> Result<()> {
    rules.insert(libc::SYS_flock, one_of(1, &[libc::LOCK_EX, libc::LOCK_UN])?);
    Ok(())
}

pub(super) fn sockets(rules: &mut Rules, sockets: Sockets) -> Result<()> {
    let kind = |family, kind| -> Result<SeccompRule> {
        SeccompRule::new(vec![is(0, family)?, masked(1, KIND, kind)?, is(2, 0)?])
    };
    let mut allowed = vec![kind(libc::AF_UNIX, libc::SOCK_SEQPACKET)?];
    if sockets != Sockets::Driver {
        allowed.push(kind(libc::AF_UNIX, libc::SOCK_STREAM)?);
    }
    if sockets == Sockets::Tcp {
        for protocol in [0, libc::IPPROTO_TCP] {
            let tcp =
                vec![is(0, libc::AF_INET)?, masked(1, KIND, libc::SOCK_STREAM)?, is(2, protocol)?];
            allowed.push(SeccompRule::new(tcp)?);
        }
        // An IPv4 address has 16 bytes, which is too short for the socket file of a service.
        let connect = SeccompRule::new(vec![is(2, 16)?])?;
        rules.insert(libc::SYS_connect, vec![connect]);
        // With this flag, sending can also connect a socket.
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2)] {
            rules
                .insert(call, vec![SeccompRule::new(vec![masked(flags, libc::MSG_FASTOPEN, 0)?])?]);
        }
    }
    rules.insert(libc::SYS_socket, allowed);
    Ok(())
}

/// The mask for the kind of a socket, without the flags that are combined with it.
const KIND: i32 = !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);

/// Allows pairs of connected sockets, except datagram sockets, which could send to other addresses.
pub(super) fn pairs(rules: &mut Rules) -> Result<()> {
    let pair = |kind| -> Result<SeccompRule> {
        SeccompRule::new(vec![is(0, libc::AF_UNIX)?, masked(1, KIND, kind)?, is(2, 0)?])
    };
    rules.insert(libc::SYS_socketpair, vec![pair(libc::SOCK_STREAM)?, pair(libc::SOCK_SEQPACKET)?]);
    Ok(())
}

/// Allows the signal that this process uses to end itself without exit handlers, which could wait
/// for a device.
pub(super) fn own_end(rules: &mut Rules) -> Result<()> {
    let own = std::process::id().cast_signed();
    rules.insert(libc::SYS_kill, vec![SeccompRule::new(vec![is(0, own)?, is(1, libc::SIGKILL)?])?]);
    Ok(())
}

/// Allows the calling thread to set its own cores.
pub(super) fn own_cores(rules: &mut Rules) -> Result<()> {
    rules.insert(libc::SYS_sched_setaffinity, vec![SeccompRule::new(vec![is(0, 0)?])?]);
    Ok(())
}
