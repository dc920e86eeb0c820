//! Restrictions for child processes: file access through landlock, and resource limits. The main
//! function is [`close_file_system`].
//!
//! A child calls [`close_file_system`] before it reads untrusted input. The rules apply to the
//! calling thread and to all processes that it starts, and cannot be undone.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The newest landlock interface that the rules use. Older kernels enforce the part that they
/// support.
const ABI_WRITTEN_FOR: ABI = ABI::V6;

/// The extent to which the kernel enforces the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The kernel enforces all rules.
    Full,
    /// The kernel is older. It enforces the rules for files, but not all rules for the network and
    /// signals.
    Partial,
    /// The kernel enforces nothing, for example because it has no landlock or landlock is disabled.
    None {
        /// The reason why nothing is enforced, with a remedy.
        reason: String,
    },
}

impl Enforcement {
    /// Returns the weaker of two levels, for a process that needs both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (none @ Self::None { .. }, _) | (_, none @ Self::None { .. }) => none,
            (Self::Partial, _) | (_, Self::Partial) => Self::Partial,
            (Self::Full, Self::Full) => Self::Full,
        }
    }
}

impl std::fmt::Display for Enforcement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => f.write_str("landlock: fully enforced"),
            Self::Partial => f.write_str("landlock: files enforced, network and signals not"),
            Self::None { reason } => write!(f, "landlock: not enforced ({reason})"),
        }
    }
}

/// The parts of the file system that a child may access. It cannot access any other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAccess {
    /// Files and directory trees that the child may read.
    pub read: Vec<PathBuf>,
    /// Files and directory trees that the child may read and execute.
    pub execute: Vec<PathBuf>,
    /// Files, devices and directory trees in which the child may read and write existing files.
    #[serde(default)]
    pub modify: Vec<PathBuf>,
    /// Directory trees in which the child may read, write, create and delete files, and single
    /// files that it may read and write.
    pub write: Vec<PathBuf>,
    /// Directory trees in which the child may read, write and create files, but not delete them.
    #[serde(default)]
    pub create: Vec<PathBuf>,
    /// Directory trees that the child may list. It cannot open their files.
    #[serde(default)]
    pub list: Vec<PathBuf>,
    /// Directory trees that the child may list. It may write their files but not read them.
    #[serde(default)]
    pub label: Vec<PathBuf>,
    /// Whether the child may send signals to processes outside the confinement.
    #[serde(default)]
    pub signals: bool,
    /// The TCP ports to which the child may connect.
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// Reasons why rules cannot be created or applied.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A granted path could not be opened.
    #[error("cannot open {} to grant access to it", path.display())]
    Path { path: PathBuf, source: landlock::PathFdError },
    /// The kernel refused the rules.
    #[error("cannot apply landlock rules")]
    Rules {
        #[from]
        source: landlock::RulesetError,
    },
    /// The capabilities over the namespaces of this process could not be dropped.
    #[error("cannot drop the capabilities of this process")]
    Capabilities { source: io::Error },
    /// A resource limit could not be set.
    #[error("cannot set the limit of {what} to {value}")]
    Limit {
        /// The name of the limit.
        what: &'static str,
        /// The value that was requested.
        value: u64,
        source: io::Error,
    },
}

impl SandboxError {
    /// Returns the message of the error, followed by the cause.
    pub fn whole(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

/// Closes the file system, TCP and, unless they are granted, signals to other processes. This
/// applies to the calling thread and to all processes that it starts.
///
/// A path that does not exist is an error, because a missing rule would cause a confusing failure
/// later.
pub fn close_file_system(access: &FileAccess) -> Result<Enforcement, SandboxError> {
    let mut scopes = Scope::from_all(ABI_WRITTEN_FOR);
    if access.signals {
        scopes.remove(Scope::Signal);
    }
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI_WRITTEN_FOR))?
        .handle_access(AccessNet::from_all(ABI_WRITTEN_FOR))?
        .scope(scopes)?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    for path in &access.read {
        rules = grant(rules, path, read)?;
    }
    for path in &access.execute {
        rules = grant(rules, path, read | AccessFs::Execute)?;
    }
    let modify = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    for path in &access.modify {
        rules = grant(rules, path, modify)?;
    }
    for path in &access.list {
        rules = grant(rules, path, AccessFs::ReadDir.into())?;
    }
    for path in &access.label {
        rules = grant(rules, path, AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::Truncate)?;
    }
    let write = AccessFs::from_all(ABI_WRITTEN_FOR)
        & !(AccessFs::Execute
            | AccessFs::MakeSym
            | AccessFs::MakeSock
            | AccessFs::MakeFifo
            | AccessFs::MakeChar
            | AccessFs::MakeBlock
            | AccessFs::Refer);
    for path in &access.write {
        rules = grant(rules, path, write)?;
    }
    let create = write & !(AccessFs::RemoveFile | AccessFs::RemoveDir);
    for path in &access.create {
        rules = grant(rules, path, create)?;
    }
    for port in &access.ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    let status = rules.restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Enforcement::Full,
        RulesetStatus::PartiallyEnforced => Enforcement::Partial,
        RulesetStatus::NotEnforced => Enforcement::None { reason: NO_LANDLOCK.into() },
    })
}

const NO_LANDLOCK: &str = "this kernel has no landlock; use Linux 5.13 or newer with \
    CONFIG_SECURITY_LANDLOCK and `landlock` in the `lsm=` boot parameter";

fn grant(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxError> {
    let fd =
        PathFd::new(path).map_err(|source| SandboxError::Path { path: path.into(), source })?;
    // A rule that grants directory rights for a file would be an error.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI_WRITTEN_FOR) };
    Ok(rules.add_rule(PathBeneath::new(fd, access))?)
}

/// Limits for the resources of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// The maximum address space, in bytes.
    pub address_space: u64,
    /// The maximum processor time, in seconds. The process is killed when it has used this time.
    pub cpu_seconds: u64,
    /// The size of the largest file that the child may write, in bytes.
    pub file_size: u64,
    /// The maximum number of open files.
    pub open_files: u64,
}

/// Applies `limits` to this process and to all processes that it starts. Core dumps are disabled.
pub fn limit_resources(limits: &ResourceLimits) -> Result<(), SandboxError> {
    let wanted = [
        ("address space", Resource::As, limits.address_space),
        ("processor time", Resource::Cpu, limits.cpu_seconds),
        ("file size", Resource::Fsize, limits.file_size),
        ("open files", Resource::Nofile, limits.open_files),
        ("core dumps", Resource::Core, 0),
    ];
    limit(&wanted)
}

/// Applies limits to this process and to all processes that it starts. Each limit consists of a
/// name, a resource and a value.
pub(crate) fn limit(wanted: &[(&'static str, Resource, u64)]) -> Result<(), SandboxError> {
    for &(what, resource, value) in wanted {
        let hard = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        // The limit never exceeds the current hard limit, since raising that needs a privilege.
        let limit = Some(value.min(hard));
        setrlimit(resource, Rlimit { current: limit, maximum: limit })
            .map_err(|e| SandboxError::Limit { what, value, source: e.into() })?;
    }
    Ok(())
}

/// Lowers the processor priority of this process and of all processes that it starts.
pub fn yield_to_others() {
    // This never fails, since only raising the priority needs a privilege.
    let _ = rustix::process::nice(5);
}

/// Returns `bytes`, but at most three quarters of the machine's memory. With such a limit, an
/// allocation fails before the machine's memory runs out.
pub fn within_memory(bytes: u64) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().split(' ').next());
    let total = total.and_then(|kib| kib.parse::<u64>().ok()).and_then(|kib| kib.checked_mul(1024));
    total.map_or(bytes, |total| bytes.min(total / 4 * 3))
}

/// The out-of-memory score of processes that run submitted host code, for [`end_before_others`].
pub const STRANGERS: u16 = 800;

/// The out-of-memory score of compilers, which read submitted code.
pub const COMPILERS: u16 = 700;

/// The out-of-memory score of processes without submitted host code that hold the data of submitted
/// kernels.
pub const WORKERS: u16 = 500;

/// Makes the kernel end this process, and the program that it becomes, before the server if memory
/// runs out. Among such processes, the one with the highest score usually ends first. If the system
/// refuses the score, the kernel chooses by size alone.
///
/// With `CAP_SYS_RESOURCE`, this also sets the lowest score to which children can return.
pub fn end_before_others(score: u16) {
    const FILE: &str = "/proc/self/oom_score_adj";
    let current =
        std::fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse::<i32>().ok());
    if current.is_none_or(|current| current < i32::from(score)) {
        let _ = std::fs::write(FILE, score.to_string());
    }
}

/// Makes the kernel kill this process when the thread that started it ends.
///
/// The parent must start the process from a thread that lives as long as the child should.
pub fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// Returns what [`close_file_system`] would enforce on this machine, without enforcing it.
pub fn probe() -> Enforcement {
    let creates = |abi: ABI| {
        let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        rules = rules.handle_access(AccessFs::from_all(abi))?;
        if AccessNet::from_all(abi) != BitFlags::EMPTY {
            rules = rules.handle_access(AccessNet::from_all(abi))?;
        }
        if Scope::from_all(abi) != BitFlags::EMPTY {
            rules = rules.scope(Scope::from_all(abi))?;
        }
        rules.create()
    };
    if creates(ABI_WRITTEN_FOR).is_ok() {
        return Enforcement::Full;
    }
    match creates(ABI::V1) {
        Ok(_) => Enforcement::Partial,
        Err(_) => Enforcement::None { reason: NO_LANDLOCK.into() },
    }
}
