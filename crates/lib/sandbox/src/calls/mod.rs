//! Lists of the system calls allowed for each kind of child, enforced by seccomp. The main type is
//! [`ChildKind`].
//!
//! A call that is on no list fails with `EPERM`, even if a newer kernel adds it. Deny lists, used
//! earlier, allowed calls that they did not mention (`fchmodat2`, System V shared memory,
//! `fcntl(F_SETSIG)`). The lists come from traces of compilers, PyTorch, Triton and NVIDIA's
//! driver. docs/security.md shows them, and a test compares that page with this code.

mod arguments;
mod lists;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::Engine as _;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, apply_filter_all_threads,
};

use super::enforcement::Enforcement;
use arguments::{Control, Opening, Rules, Sockets};
pub use lists::SyscallGroup;
use lists::{
    ACCEPTING, BECOMING, CONFINING, DRIVER, EVERY, FILE_CHANGES, HANDLES, OLDER_FILE_CHANGES,
    PROCESSES, STOPPING,
};

/// The purpose of a child, which determines the system calls it may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// An interpreter that runs submitted Python on the CPU, for Triton, torch kernels and
    /// functions.
    Interpreter,
    /// An interpreter that runs submitted Python with a GPU, after the driver has created the
    /// context.
    DeviceInterpreter,
    /// An interpreter that has imported its packages, under an NVIDIA tool. Before that, it is
    /// confined as [`ChildKind::WatchedProgram`].
    WatchedInterpreter,
    /// A submitted program. It is confined before it starts.
    Program,
    /// A submitted program into which Nsight Compute has injected code.
    WatchedProgram,
    /// A submitted program into which Nsight Systems has injected code, which connects to its agent
    /// by TCP.
    TracedProgram,
    /// A process that runs kernels or holds tensors on a device, without submitted host code.
    Device,
    /// A device process into which an NVIDIA tool has injected code.
    WatchedDevice,
    /// A judge of torch kernels on a device.
    DeviceJudge,
    /// A judge of torch kernels on the CPU.
    Judge,
    /// An interpreter that forks for each submission, and runs no submission itself.
    Zygote,
    /// A process that reads a report of a profiler.
    Reader,
    /// A compiler that runs in the process started for it (NVRTC).
    Compiler,
    /// Compilers that consist of several programs (nvcc, g++, Triton's).
    Compilers,
}

impl ChildKind {
    /// All kinds of child.
    pub const ALL: [Self; 14] = [
        Self::Interpreter,
        Self::DeviceInterpreter,
        Self::WatchedInterpreter,
        Self::Program,
        Self::WatchedProgram,
        Self::TracedProgram,
        Self::Device,
        Self::WatchedDevice,
        Self::DeviceJudge,
        Self::Judge,
        Self::Zygote,
        Self::Reader,
        Self::Compiler,
        Self::Compilers,
    ];

    /// Returns whether the child runs under an NVIDIA tool, such as Nsight Compute.
    fn is_watched(self) -> bool {
        matches!(
            self,
            Self::WatchedInterpreter
                | Self::WatchedProgram
                | Self::TracedProgram
                | Self::WatchedDevice
        )
    }

    /// Returns a description of the child for the documentation.
    pub fn description(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter of submitted Python, on the CPU",
            Self::DeviceInterpreter => "interpreter of submitted Python, with a GPU",
            Self::WatchedInterpreter => "the same under Nsight Compute, once it is warm",
            Self::Program => "submitted program",
            Self::WatchedProgram => "submitted program or interpreter under Nsight Compute",
            Self::TracedProgram => "submitted program under Nsight Systems",
            Self::Device => "device worker, judge of its launches, holder of tensors",
            Self::WatchedDevice => "device worker under an NVIDIA tool",
            Self::DeviceJudge => "judge of torch kernels, with a GPU",
            Self::Judge => "judge of torch kernels, on the CPU",
            Self::Zygote => "zygote",
            Self::Reader => "reader of reports of profilers",
            Self::Compiler => "compile child with NVRTC",
            Self::Compilers => "compile child with nvcc, g++ or Triton",
        }
    }

    /// Returns the groups of calls in addition to those for every kind.
    fn own_groups(self) -> &'static [&'static SyscallGroup] {
        match self {
            Self::Interpreter | Self::DeviceInterpreter => &[],
            Self::WatchedInterpreter | Self::WatchedDevice => {
                &[&DRIVER, &ACCEPTING, &FILE_CHANGES, &OLDER_FILE_CHANGES]
            }
            Self::Program => &[&DRIVER, &BECOMING],
            Self::WatchedProgram | Self::TracedProgram => {
                &[&DRIVER, &ACCEPTING, &FILE_CHANGES, &OLDER_FILE_CHANGES, &BECOMING, &CONFINING]
            }
            Self::Device => &[&DRIVER, &FILE_CHANGES, &OLDER_FILE_CHANGES],
            Self::DeviceJudge => &[&DRIVER, &STOPPING],
            Self::Judge => &[&STOPPING],
            Self::Zygote => &[&PROCESSES, &BECOMING, &CONFINING, &HANDLES, &DRIVER],
            Self::Reader | Self::Compiler => &[&FILE_CHANGES, &OLDER_FILE_CHANGES],
            Self::Compilers => {
                &[&PROCESSES, &BECOMING, &CONFINING, &FILE_CHANGES, &OLDER_FILE_CHANGES]
            }
        }
    }

    /// Returns the groups of calls that are allowed with any arguments.
    pub fn groups(self) -> impl Iterator<Item = &'static SyscallGroup> {
        EVERY.into_iter().chain(self.own_groups().iter().copied())
    }
}

/// Returns the rules for a kind of child, by system call number.
fn rules(kind: ChildKind) -> Result<Rules, BackendError> {
    let calls = kind.groups().flat_map(|group| group.calls);
    let mut rules: Rules = calls.map(|&(_, number)| (number, Vec::new())).collect();
    arguments::every(&mut rules)?;
    let starts_processes = matches!(kind, ChildKind::Zygote | ChildKind::Compilers);
    if starts_processes {
        arguments::processes(&mut rules)?;
        arguments::own_cores(&mut rules)?;
    } else {
        arguments::threads(&mut rules)?;
    }
    let opening = match kind {
        ChildKind::Interpreter | ChildKind::Judge => Opening::Read,
        // CUPTI opens devices when tracing starts, after the context has been created.
        ChildKind::DeviceInterpreter => Opening::Device,
        _ => Opening::Write,
    };
    arguments::opening(&mut rules, opening)?;
    let confines_itself = kind.groups().any(|group| group.name == CONFINING.name);
    let control = if confines_itself { Control::Confining } else { Control::Itself };
    arguments::control(&mut rules, control)?;
    if !matches!(
        kind,
        ChildKind::Interpreter
            | ChildKind::Judge
            | ChildKind::Reader
            | ChildKind::Compiler
            | ChildKind::Compilers
    ) {
        arguments::devices(&mut rules)?;
    }
    match kind {
        ChildKind::Program | ChildKind::Device | ChildKind::DeviceJudge | ChildKind::Zygote => {
            arguments::sockets(&mut rules, Sockets::Driver)?;
        }
        ChildKind::WatchedProgram | ChildKind::WatchedInterpreter => {
            arguments::sockets(&mut rules, Sockets::Streams)?;
        }
        ChildKind::TracedProgram | ChildKind::WatchedDevice => {
            arguments::sockets(&mut rules, Sockets::Tcp)?
        }
        _ => {}
    }
    if matches!(kind, ChildKind::Judge | ChildKind::DeviceJudge | ChildKind::Compilers) {
        arguments::supervision(&mut rules)?;
    }
    if kind.is_watched() {
        arguments::locks(&mut rules)?;
    }
    if kind == ChildKind::Compiler {
        arguments::file_locks(&mut rules)?;
    }
    if starts_processes || kind == ChildKind::Device {
        arguments::pairs(&mut rules)?;
    }
    if matches!(kind, ChildKind::Device | ChildKind::DeviceJudge | ChildKind::WatchedDevice) {
        arguments::own_end(&mut rules)?;
        // Workers connect to NVIDIA's multi-process service through a socket in the file system.
        rules.insert(libc::SYS_connect, Vec::new());
    }
    // The other filter refuses `clone3` with `ENOSYS`.
    rules.extend(no_clone3());
    Ok(rules)
}

/// Returns the calls that the extra filter answers with `ENOSYS`. The arguments of `clone3` are in
/// memory, which a filter cannot read. A C library that receives this error starts threads with
/// `clone` instead.
fn no_clone3() -> Rules {
    BTreeMap::from([(libc::SYS_clone3, Vec::new())])
}

fn compiled(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    BpfProgram::try_from(SeccompFilter::new(rules, others, listed, arch)?)
}

/// Returns the filters for a kind of child, in the order of installation. After the last one, most
/// kinds of child cannot install further filters.
fn programs(kind: ChildKind) -> Result<[BpfProgram; 2], BackendError> {
    let errno = |errno: i32| SeccompAction::Errno(errno.cast_unsigned());
    Ok([
        compiled(no_clone3(), SeccompAction::Allow, errno(libc::ENOSYS))?,
        compiled(rules(kind)?, errno(libc::EPERM), SeccompAction::Allow)?,
    ])
}

/// Makes the kernel refuse all calls outside the lists for this kind of child. This applies to all
/// threads of this process and to all processes that it starts, and cannot be undone.
pub fn allow_only(kind: ChildKind) -> Enforcement {
    let applied = programs(kind)
        .map_err(seccompiler::Error::from)
        .and_then(|programs| programs.iter().try_for_each(|one| apply_filter_all_threads(one)));
    match applied {
        Ok(()) => Enforcement::Full,
        Err(error) => {
            Enforcement::None { reason: format!("the kernel refuses the filter: {error}") }
        }
    }
}

/// Returns a filter that makes the kernel ask a supervisor before a thread starts, as instructions
/// for the kernel (`struct sock_filter`, eight bytes each). It must be installed before the other
/// filters, after which most kinds of child cannot install any.
pub fn asking() -> Vec<u8> {
    // The offsets of the call number and of the first argument in a filter's data (`struct
    // seccomp_data`).
    const CALL: u32 = 0;
    const FIRST_ARGUMENT: u32 = 16;
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const IF_SET: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let call = u32::try_from(libc::SYS_clone).unwrap_or(u32::MAX);
    // The other filters check the architecture to which the number belongs.
    let instructions: [(u32, u8, u8, u32); 6] = [
        (LOAD, 0, 0, CALL),
        (IF_EQUAL, 0, 3, call),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (IF_SET, 0, 1, libc::CLONE_THREAD.cast_unsigned()),
        (RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        (RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let bytes = instructions.into_iter().flat_map(|(code, if_true, if_false, value)| {
        let [first, second, ..] = code.to_le_bytes();
        let code = u16::from_le_bytes([first, second]).to_ne_bytes();
        let value = value.to_ne_bytes();
        [code[0], code[1], if_true, if_false, value[0], value[1], value[2], value[3]]
    });
    bytes.collect()
}

/// Returns the filters for a kind of child in base64, starting with [`asking`]. An interpreter
/// installs them itself before it reads submitted code, with `allow_only` from the prelude of
/// [`python`](super::python).
///
/// # Errors
/// No filter exists for this machine's architecture.
pub fn encoded_with_asking(kind: ChildKind) -> Result<Vec<String>, BackendError> {
    let asking = base64::engine::general_purpose::STANDARD.encode(asking());
    Ok(std::iter::once(asking).chain(encoded(kind)?).collect())
}

/// Returns the filters for a kind of child in the kernel's format (consecutive `struct
/// sock_filter`), in base64.
fn encoded(kind: ChildKind) -> Result<Vec<String>, BackendError> {
    let encode = |program: &BpfProgram| {
        let mut bytes = Vec::with_capacity(8 * program.len());
        for instruction in program {
            bytes.extend(instruction.code.to_ne_bytes());
            bytes.extend([instruction.jt, instruction.jf]);
            bytes.extend(instruction.k.to_ne_bytes());
        }
        base64::engine::general_purpose::STANDARD.encode(bytes)
    };
    Ok(programs(kind)?.iter().map(encode).collect())
}
