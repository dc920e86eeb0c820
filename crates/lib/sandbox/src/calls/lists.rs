//! System calls that children may make with any arguments. Each group has a reason. The main type
//! is [`SyscallGroup`].
//!
//! A call is refused if it is in no group for the child's kind, even if a newer kernel adds it.
//! Calls whose arguments matter are in [`arguments`](super::arguments).

/// System calls that are allowed with any arguments, for a common reason.
#[derive(Debug)]
pub struct SyscallGroup {
    /// The short name of the group in the documentation.
    pub name: &'static str,
    /// The reason why a process needs the calls, and why they do not affect other processes.
    pub reason: &'static str,
    /// The names (`SYS_…`) and numbers of the calls.
    pub calls: &'static [(&'static str, i64)],
}

macro_rules! calls {
    ($($call:ident),* $(,)?) => { &[$((stringify!($call), libc::$call)),*] };
}

/// Calls that map and release the memory of the process itself.
pub const MEMORY: SyscallGroup = SyscallGroup {
    name: "memory",
    reason: "the process maps and releases its own memory; limits bound the amount",
    calls: calls![
        SYS_brk,
        SYS_mmap,
        SYS_munmap,
        SYS_mprotect,
        SYS_mremap,
        SYS_madvise,
        SYS_msync,
        SYS_mlock,
        SYS_munlock,
        SYS_membarrier,
        SYS_mbind,
        SYS_get_mempolicy,
        SYS_set_mempolicy,
    ],
};

/// Calls for the threads of the process itself.
pub const THREADS: SyscallGroup = SyscallGroup {
    name: "threads",
    reason: "threads start with `clone`, wait for each other, and end; no call refers to another \
        process",
    calls: calls![
        SYS_futex,
        SYS_futex_waitv,
        SYS_set_robust_list,
        SYS_rseq,
        SYS_set_tid_address,
        SYS_gettid,
        SYS_exit,
        SYS_exit_group,
        SYS_sched_yield,
        SYS_sched_get_priority_max,
        SYS_sched_get_priority_min,
        SYS_getcpu,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_rt_sigpending,
        SYS_rt_sigsuspend,
        SYS_rt_sigtimedwait,
        SYS_sigaltstack,
        SYS_restart_syscall,
    ],
};

/// Calls that read clocks or wait.
pub const TIME: SyscallGroup = SyscallGroup {
    name: "time",
    reason: "threads read clocks and wait; the timers send signals only to the process itself, and \
        never SIGCONT",
    calls: calls![
        SYS_clock_gettime,
        SYS_clock_getres,
        SYS_clock_nanosleep,
        SYS_nanosleep,
        SYS_gettimeofday,
        SYS_getitimer,
        SYS_setitimer,
        SYS_times,
        SYS_getrusage,
    ],
};

/// Calls on open files, and on files that landlock allows to be opened for reading.
pub const FILES: SyscallGroup = SyscallGroup {
    name: "files",
    reason: "landlock decides which files can be opened; the process reads and writes open files",
    calls: calls![
        SYS_read,
        SYS_readv,
        SYS_pread64,
        SYS_preadv,
        SYS_write,
        SYS_writev,
        SYS_pwrite64,
        SYS_pwritev,
        SYS_lseek,
        SYS_close,
        SYS_close_range,
        SYS_dup,
        SYS_dup3,
        SYS_fstat,
        SYS_newfstatat,
        SYS_statx,
        SYS_statfs,
        SYS_fstatfs,
        SYS_faccessat,
        SYS_faccessat2,
        SYS_readlinkat,
        SYS_getdents64,
        SYS_getcwd,
        SYS_chdir,
        SYS_fchdir,
        SYS_umask,
    ],
};

/// Calls that wait for descriptors.
pub const EVENTS: SyscallGroup = SyscallGroup {
    name: "events",
    reason: "the process waits for descriptors; those that it creates for this are shared with no \
        other process",
    calls: calls![
        SYS_ppoll,
        SYS_pselect6,
        SYS_epoll_create1,
        SYS_epoll_ctl,
        SYS_epoll_pwait,
        SYS_eventfd2,
        SYS_timerfd_create,
        SYS_timerfd_settime,
        SYS_timerfd_gettime,
        SYS_pipe2,
    ],
};

/// Calls on sockets that the process already has.
pub const CHANNELS: SyscallGroup = SyscallGroup {
    name: "channels",
    reason: "the process communicates on the connected sockets that it was given; it has no other \
        sockets that accept an address",
    calls: calls![
        SYS_recvfrom,
        SYS_recvmsg,
        SYS_sendto,
        SYS_sendmsg,
        SYS_getsockname,
        SYS_getpeername,
        SYS_getsockopt,
        SYS_setsockopt,
        SYS_shutdown,
    ],
};

/// Calls that return the identity and the environment of the process.
pub const IDENTITY: SyscallGroup = SyscallGroup {
    name: "identity",
    reason: "the process reads its own ids and limits, the machine's name and size, and random \
        bytes",
    calls: calls![
        SYS_getpid,
        SYS_getppid,
        SYS_getuid,
        SYS_geteuid,
        SYS_getgid,
        SYS_getegid,
        SYS_getgroups,
        SYS_getresuid,
        SYS_getresgid,
        SYS_capget,
        SYS_uname,
        SYS_sysinfo,
        SYS_getrandom,
    ],
};

/// The calls of the groups above, under names that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
pub const OLDER_NAMES: SyscallGroup = SyscallGroup {
    name: "older names",
    reason: "the same as the calls above, under additional names on x86-64",
    calls: calls![
        SYS_poll,
        SYS_select,
        SYS_pause,
        SYS_epoll_create,
        SYS_epoll_wait,
        SYS_eventfd,
        SYS_pipe,
        SYS_dup2,
        SYS_stat,
        SYS_lstat,
        SYS_access,
        SYS_readlink,
        SYS_getdents,
        SYS_getpgrp,
        SYS_getrlimit,
        SYS_time,
        SYS_alarm,
        SYS_arch_prctl,
    ],
};
#[cfg(not(target_arch = "x86_64"))]
pub const OLDER_NAMES: SyscallGroup =
    SyscallGroup { name: "older names", reason: "this architecture has none", calls: &[] };

/// The groups that apply to every child.
pub const EVERY: [&SyscallGroup; 8] =
    [&MEMORY, &THREADS, &TIME, &FILES, &EVENTS, &CHANNELS, &IDENTITY, &OLDER_NAMES];

/// The calls that NVIDIA's driver makes when it starts (traced with driver 580.159 and CUDA 13.0).
pub const DRIVER: SyscallGroup = SyscallGroup {
    name: "driver",
    reason: "the driver starts only if it may listen on a socket with an abstract name and call \
        `unlink` for links below /dev; landlock prevents the removal",
    #[cfg(target_arch = "x86_64")]
    calls: calls![SYS_bind, SYS_listen, SYS_unlink],
    #[cfg(not(target_arch = "x86_64"))]
    calls: calls![SYS_bind, SYS_listen, SYS_unlinkat],
};

/// Calls that create, change and remove files.
pub const FILE_CHANGES: SyscallGroup = SyscallGroup {
    name: "file changes",
    reason: "the process writes files in its own directory, and landlock denies access to all \
        others; owners, modes, times and attributes cannot be changed",
    calls: calls![
        SYS_unlinkat,
        SYS_renameat,
        SYS_renameat2,
        SYS_mkdirat,
        SYS_ftruncate,
        SYS_fallocate
    ],
};

/// The calls of [`FILE_CHANGES`], under names that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
pub const OLDER_FILE_CHANGES: SyscallGroup = SyscallGroup {
    name: "older file changes",
    reason: "the same as the calls above, under additional names on x86-64",
    calls: calls![SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir],
};
#[cfg(not(target_arch = "x86_64"))]
pub const OLDER_FILE_CHANGES: SyscallGroup =
    SyscallGroup { name: "older file changes", reason: "this architecture has none", calls: &[] };

/// Calls that replace the program of a process.
pub const BECOMING: SyscallGroup = SyscallGroup {
    name: "becoming",
    reason: "the child becomes the program that it confines; landlock decides which files execute",
    calls: calls![SYS_execve],
};

/// Calls that start processes and wait for them.
pub const PROCESSES: SyscallGroup = SyscallGroup {
    name: "processes",
    reason: "compilers consist of several programs, and a zygote forks; all of them are confined \
        like their parent, and landlock allows signals only between them",
    #[cfg(target_arch = "x86_64")]
    calls: calls![SYS_fork, SYS_vfork, SYS_wait4, SYS_waitid, SYS_kill, SYS_setpgid],
    #[cfg(not(target_arch = "x86_64"))]
    calls: calls![SYS_wait4, SYS_waitid, SYS_kill, SYS_setpgid],
};

/// Calls that confine the process and its children further.
pub const CONFINING: SyscallGroup = SyscallGroup {
    name: "confining",
    reason: "an interpreter drops further rights once it is warm, and cannot regain them",
    calls: calls![
        SYS_seccomp,
        SYS_landlock_create_ruleset,
        SYS_landlock_add_rule,
        SYS_landlock_restrict_self,
    ],
};

/// Calls that create handles of the processes that a zygote forks.
pub const HANDLES: SyscallGroup = SyscallGroup {
    name: "handles",
    reason: "the zygote creates handles of its forks for their judges",
    calls: calls![SYS_pidfd_open],
};

/// Calls that send signals through handles of processes.
pub const STOPPING: SyscallGroup = SyscallGroup {
    name: "stopping",
    reason: "a judge stops, continues and kills the runners whose handles it was given",
    calls: calls![SYS_pidfd_send_signal],
};

/// Calls that accept connections.
pub const ACCEPTING: SyscallGroup = SyscallGroup {
    name: "accepting",
    reason: "Nsight Compute connects to the code that it injects into a program, under an abstract \
        socket name",
    calls: calls![SYS_accept, SYS_accept4],
};
