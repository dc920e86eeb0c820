//! What a child process may touch: files by landlock, resources by limits.
//!
//! A child calls [`close_file_system`] before it looks at anything a stranger wrote. The rules hold
//! for the calling thread and all it starts, and cannot be lifted.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Newest landlock interface the rules are written for; older kernels enforce what they know.
const ABI_WRITTEN_FOR: ABI = ABI::V6;

/// How much of the rules the kernel enforces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// All of them.
    Full,
    /// File rules hold, newer ones (network, signals) do not: the kernel is older.
    Partial,
    /// None: the kernel has no landlock, or it is switched off.
    None {
        /// Why, and what to do about it.
        reason: String,
    },
}

impl Enforcement {
    /// What holds where both are needed: the weaker of them.
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

/// What a child may reach in the file system. Everything else is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAccess {
    /// Files and directory trees to read.
    pub read: Vec<PathBuf>,
    /// Files and directory trees to read and execute.
    pub execute: Vec<PathBuf>,
    /// Files, devices and directory trees whose files exist, to read and write.
    #[serde(default)]
    pub modify: Vec<PathBuf>,
    /// Directory trees to read, write, create and delete in; single files to read and write.
    pub write: Vec<PathBuf>,
    /// Directory trees to read, write and create in, from which nothing is removed.
    #[serde(default)]
    pub create: Vec<PathBuf>,
    /// Directory trees to list, whose files stay closed.
    #[serde(default)]
    pub list: Vec<PathBuf>,
    /// Directory trees to list, whose files are written and not read.
    #[serde(default)]
    pub label: Vec<PathBuf>,
    /// Whether processes that are not confined with it may be sent signals.
    #[serde(default)]
    pub signals: bool,
    /// TCP ports that may be connected to.
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// Rules could not be made or applied.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A path to grant could not be opened.
    #[error("cannot open {} to grant access to it", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        source: landlock::PathFdError,
    },
    /// The kernel refused the rules.
    #[error("cannot apply landlock rules")]
    Rules {
        /// Why.
        #[from]
        source: landlock::RulesetError,
    },
    /// Capabilities over namespaces of this process could not be dropped.
    #[error("cannot drop the capabilities of this process")]
    Capabilities {
        /// Why.
        source: io::Error,
    },
    /// A resource limit could not be set.
    #[error("cannot set the limit of {what} to {value}")]
    Limit {
        /// Which one.
        what: &'static str,
        /// Value wanted.
        value: u64,
        /// Why.
        source: io::Error,
    },
}

impl SandboxError {
    /// What is wrong, with its reason.
    pub fn whole(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

/// Closes the file system, TCP and, unless they are granted, signals to others for the calling thread and all it starts.
///
/// Paths that do not exist are an error: a rule that silently vanished would show as a puzzling
/// failure later.
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
    // A file takes no directory rights; asking for them would be an error, not a no-op.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI_WRITTEN_FOR) };
    Ok(rules.add_rule(PathBeneath::new(fd, access))?)
}

/// Limits on what a child may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Address space, bytes.
    pub address_space: u64,
    /// Processor time, seconds; the process is killed at the end of it.
    pub cpu_seconds: u64,
    /// Largest file it may write, bytes.
    pub file_size: u64,
    /// Open files.
    pub open_files: u64,
}

/// Applies `limits` to this process and all it starts. Core dumps are off.
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

/// Applies limits to this process and all it starts: what each is called, which it is, and its value.
pub(crate) fn limit(wanted: &[(&'static str, Resource, u64)]) -> Result<(), SandboxError> {
    for &(what, resource, value) in wanted {
        let hard = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        // Never above what the process was given: raising the hard limit needs a privilege.
        let limit = Some(value.min(hard));
        setrlimit(resource, Rlimit { current: limit, maximum: limit })
            .map_err(|e| SandboxError::Limit { what, value, source: e.into() })?;
    }
    Ok(())
}

/// Has this process, and all that it starts, take a smaller share of the processor where others want it, too.
pub fn yield_to_others() {
    // Refused nowhere: only the other direction needs a privilege.
    let _ = rustix::process::nice(5);
}

/// What of so many bytes a process may take: three quarters of the machine's memory at most, so that a limit
/// fails an allocation before memory runs out.
pub fn within_memory(bytes: u64) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().split(' ').next());
    let total = total.and_then(|kib| kib.parse::<u64>().ok()).and_then(|kib| kib.checked_mul(1024));
    total.map_or(bytes, |total| bytes.min(total / 4 * 3))
}

/// Score of processes that run what strangers wrote, for [`end_before_others`].
pub const STRANGERS: u16 = 800;

/// Score of compilers, which read what strangers wrote.
pub const COMPILERS: u16 = 700;

/// Score of processes that run no host code of a stranger's, but keep what a stranger's kernel makes.
pub const WORKERS: u16 = 500;

/// Has the kernel end this process, and what it becomes, before the server where memory runs out; of several
/// such processes the one with the highest score ends first. Where the system refuses that, the kernel
/// chooses by size alone.
///
/// A process with `CAP_SYS_RESOURCE` thereby sets the least value to which its children can go back.
pub fn end_before_others(score: u16) {
    const FILE: &str = "/proc/self/oom_score_adj";
    let current =
        std::fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse::<i32>().ok());
    if current.is_none_or(|current| current < i32::from(score)) {
        let _ = std::fs::write(FILE, score.to_string());
    }
}

/// Has the kernel kill this process when the thread that started it ends.
///
/// The parent must have started it from a thread that lives as long as the child should.
pub fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// What [`close_file_system`] would enforce here, without applying anything.
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
