//! System calls that children may make with any arguments, in groups with reasons. The main type is
//! [`SyscallGroup`].
//!
//! A call in no group of a child's kind is refused, also if a newer kernel adds it. Calls with
//! relevant arguments are in [`arguments`](super::arguments).

/// System calls that are allowed with any arguments, for one reason.
#[derive(Debug)]
pub struct SyscallGroup {
    /// Short name in the documentation.
    pub name: &'static str,
    /// Reason why a process needs them, and why they do not affect other processes.
    pub reason: &'static str,
    /// Names (`SYS_…`) and numbers.
    pub calls: &'static [(&'static str, i64)],
}

macro_rules! calls {
    ($($call:ident),* $(,)?) => { &[$((stringify!($call), libc::$call)),*] };
}

/// Memory of the process itself.
pub const MEMORY: SyscallGroup = SyscallGroup {
    name: "memory",
    reason: "the process maps and releases its own memory; limits bound how much",
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

/// Threads of the process itself.
pub const THREADS: SyscallGroup = SyscallGroup {
    name: "threads",
    reason: "threads start with `clone`, wait for each other, and end; nothing names another process",
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

/// Reading clocks and waiting.
pub const TIME: SyscallGroup = SyscallGroup {
    name: "time",
    reason: "clocks are read, and a thread waits; the timers send signals to the process alone, and no \
             SIGCONT",
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

/// Open files, and files that landlock allows to open for reading.
pub const FILES: SyscallGroup = SyscallGroup {
    name: "files",
    reason: "landlock decides what opens; the process reads and writes what it has open",
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

/// Waiting for descriptors.
pub const EVENTS: SyscallGroup = SyscallGroup {
    name: "events",
    reason: "the process waits for descriptors, with descriptors that it shares with no other process",
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

/// Sockets that the process has.
pub const CHANNELS: SyscallGroup = SyscallGroup {
    name: "channels",
    reason: "the process talks on the connected sockets that it was given; it has no others that take an \
             address",
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

/// Identity and environment of the process.
pub const IDENTITY: SyscallGroup = SyscallGroup {
    name: "identity",
    reason: "the process reads its own numbers and limits, the machine's name and size, and random bytes",
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

/// The calls above by names that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
pub const OLDER_NAMES: SyscallGroup = SyscallGroup {
    name: "older names",
    reason: "the same as the calls above, by the names that x86-64 has beside them",
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

/// Groups of every child.
pub const EVERY: [&SyscallGroup; 8] =
    [&MEMORY, &THREADS, &TIME, &FILES, &EVENTS, &CHANNELS, &IDENTITY, &OLDER_NAMES];

/// Calls of NVIDIA's driver at start (traced with driver 580.159 and CUDA 13.0).
pub const DRIVER: SyscallGroup = SyscallGroup {
    name: "driver",
    reason: "the driver does not start without a socket that listens under an abstract name, nor without \
             removing links below /dev, of which landlock lets it remove none",
    #[cfg(target_arch = "x86_64")]
    calls: calls![SYS_bind, SYS_listen, SYS_unlink],
    #[cfg(not(target_arch = "x86_64"))]
    calls: calls![SYS_bind, SYS_listen, SYS_unlinkat],
};

/// Creating, changing and removing files.
pub const FILE_CHANGES: SyscallGroup = SyscallGroup {
    name: "file changes",
    reason: "the process keeps files in its own directory, and landlock closes all others; owners, modes, \
             times and attributes stay as they are",
    calls: calls![
        SYS_unlinkat,
        SYS_renameat,
        SYS_renameat2,
        SYS_mkdirat,
        SYS_ftruncate,
        SYS_fallocate
    ],
};

/// The same by older names.
#[cfg(target_arch = "x86_64")]
pub const OLDER_FILE_CHANGES: SyscallGroup = SyscallGroup {
    name: "older file changes",
    reason: "the same as the calls above, by the names that x86-64 has beside them",
    calls: calls![SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir],
};
#[cfg(not(target_arch = "x86_64"))]
pub const OLDER_FILE_CHANGES: SyscallGroup =
    SyscallGroup { name: "older file changes", reason: "this architecture has none", calls: &[] };

/// Replacing one program by another.
pub const BECOMING: SyscallGroup = SyscallGroup {
    name: "becoming",
    reason: "the child becomes the program that it confines; landlock decides which files execute",
    calls: calls![SYS_execve],
};

/// Starting processes and waiting for them.
pub const PROCESSES: SyscallGroup = SyscallGroup {
    name: "processes",
    reason: "compilers consist of several programs, and a zygote forks; all of them are confined as their \
             parent is, and landlock keeps signals among them",
    #[cfg(target_arch = "x86_64")]
    calls: calls![SYS_fork, SYS_vfork, SYS_wait4, SYS_waitid, SYS_kill, SYS_setpgid],
    #[cfg(not(target_arch = "x86_64"))]
    calls: calls![SYS_wait4, SYS_waitid, SYS_kill, SYS_setpgid],
};

/// Confining the process and its children further.
pub const CONFINING: SyscallGroup = SyscallGroup {
    name: "confining",
    reason: "an interpreter gives up more once it is warm; what is given up does not come back",
    calls: calls![
        SYS_seccomp,
        SYS_landlock_create_ruleset,
        SYS_landlock_add_rule,
        SYS_landlock_restrict_self,
    ],
};

/// Handles of processes that a zygote forks.
pub const HANDLES: SyscallGroup = SyscallGroup {
    name: "handles",
    reason: "the zygote makes handles of its forks for their judges",
    calls: calls![SYS_pidfd_open],
};

/// Sending signals through handles.
pub const STOPPING: SyscallGroup = SyscallGroup {
    name: "stopping",
    reason: "a judge stops, continues and ends the runners whose handles it was given",
    calls: calls![SYS_pidfd_send_signal],
};

/// Accepting connections.
pub const ACCEPTING: SyscallGroup = SyscallGroup {
    name: "accepting",
    reason: "Nsight Compute connects to what it puts into a program, under an abstract name",
    calls: calls![SYS_accept, SYS_accept4],
};
