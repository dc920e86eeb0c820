//! Starts the zygote, or a runner under a tool. A process of this program confines its file access,
//! and then becomes a Python interpreter.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use warpgauge_sandbox::calls::{self, ChildKind};
use warpgauge_sandbox::device_worker::files_of_driver;
use warpgauge_sandbox::enforcement::{self, FileAccess, ResourceLimits};
use warpgauge_sandbox::own_root::{self, Processes};
use warpgauge_sandbox::proc_files;
use warpgauge_sandbox::program::{ChildProgram, Environment};
use warpgauge_sandbox::python;
use warpgauge_sandbox::whole_program::{self, AttachedTool, ProgramGrants, ProgramLimits};

/// First argument with which this program becomes a Python interpreter with PyTorch.
pub const COMMAND: &str = "__torch";

/// Python source that the interpreter runs.
pub(crate) const SOURCE: &str = concat!(
    include_str!("python/zygote.py"),
    include_str!("python/confine.py"),
    include_str!("python/session.py"),
    include_str!("python/structures.py"),
    include_str!("python/values.py"),
    include_str!("python/device.py"),
    include_str!("python/timeline.py"),
    include_str!("python/backward.py"),
    include_str!("python/missing.py"),
    include_str!("python/building.py"),
    include_str!("python/jit.py"),
    include_str!("python/inductor.py"),
    include_str!("python/module.py"),
    include_str!("python/suggest.py"),
    // The module that the Python package uses also encodes the values that functions return.
    include_str!("../../../../python/src/warpgauge/values.py"),
    include_str!("python/program.py"),
    include_str!("python/fingerprint.py"),
    include_str!("python/split.py"),
    include_str!("python/programs.py"),
    include_str!("python/function.py"),
    "\nmain()\n"
);

/// Limit of a runner's address space, bytes: 8 GiB for the submission's data, and the mappings of
/// PyTorch with CUDA's libraries.
const ADDRESS_SPACE: u64 = 12 << 30;

/// Limit of the private memory of a runner with a device, bytes.
const DATA: u64 = 64 << 30;

/// Limit of the processor time of a runner and of the zygote, seconds: more than the longest
/// deadline needs on many cores.
const CPU_SECONDS: u64 = 24 * 3600;

/// Maximum number of open files of the zygote: a few for each of its forks.
const OPEN_FILES: u64 = 512;

/// Maximum size of a file that a process under a tool may write, bytes. The tool's library inside
/// that process writes files.
const TOOL_FILE_BYTES: u64 = 1 << 30;

/// System paths that an interpreter may read and execute.
const SYSTEM: [&str; 5] = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"];

/// Files that PyTorch and its libraries read to select code for the processor.
const READ: [&str; 6] = [
    "/dev/urandom",
    "/dev/null",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
];

/// Settings of the zygote or of a runner under a tool, from the command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub python: PathBuf,
    pub site_packages: PathBuf,
    /// Directories that contain the interpreter's files.
    pub roots: Vec<PathBuf>,
    /// Number of threads that PyTorch uses for computation.
    pub threads: usize,
    /// The device of the runners, as in `CUDA_VISIBLE_DEVICES`; `None` means the CPU.
    pub device: Option<String>,
    /// Directory for the files of the tool around this process. The process then becomes the only
    /// runner.
    pub tool: Option<PathBuf>,
}

/// Settings of a device, for runners that use one.
#[derive(Serialize)]
struct DeviceSettings<'a> {
    visible: &'a str,
    /// Paths that a fork may read, in addition to its own files in /proc.
    read: Vec<PathBuf>,
    /// Directories that a fork may list.
    list: Vec<PathBuf>,
    /// Paths that a fork may read and write.
    modify: Vec<PathBuf>,
    /// Files in /proc that describe the fork itself and that it may read.
    own: &'static [&'static str],
    data: u64,
}

/// Settings of the interpreter, from its command line.
#[derive(Serialize)]
struct Settings<'a> {
    site_packages: &'a Path,
    threads: usize,
    address_space: u64,
    /// Seccomp programs that restrict a fork, base64.
    filters: Vec<String>,
    device: Option<DeviceSettings<'a>>,
    /// Whether the process is already confined, and becomes the only runner.
    alone: bool,
}

/// Runs the child for the program's hidden subcommand. Returns only on failure.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let error = match arguments.next().and_then(|setup| setup.into_string().ok()) {
        Some(setup) => become_interpreter(&setup),
        None => Err(io::Error::other("its settings are missing from the command line")),
    };
    eprintln!("torch child: {}", error.map_or_else(|e| e.to_string(), |()| String::new()));
    ExitCode::FAILURE
}

fn become_interpreter(setup: &str) -> io::Result<()> {
    let setup: Setup = serde_json::from_str(setup)?;
    let program = program(&setup)?;
    match &setup.tool {
        None => confine_zygote(&setup)?,
        Some(directory) => confine_alone(&setup, directory)?,
    }
    let control = Stdio::from(io::stdin().as_fd().try_clone_to_owned()?);
    Err(program.to_blocking().stdin(control).exec())
}

/// Drops the rights that neither the zygote nor a fork needs. Each fork drops more rights.
fn confine_zygote(setup: &Setup) -> io::Result<()> {
    let limits = ResourceLimits {
        address_space: u64::MAX,
        cpu_seconds: CPU_SECONDS,
        file_size: 0,
        open_files: OPEN_FILES,
    };
    enforcement::limit_resources(&limits).map_err(io::Error::other)?;
    let mut access = access(setup);
    if setup.device.is_some() {
        // Each fork has entries in /proc that do not exist yet. The fork itself blocks its access
        // to those of other processes.
        access.modify.push("/proc".into());
    }
    own_root::confine(&access, Processes::All).map_err(io::Error::other)?;
    calls::allow_only(ChildKind::Zygote);
    Ok(())
}

/// Returns the paths that a runner may read and execute and, with a device, the paths that it may
/// write to. Its own files in /proc are not included.
fn access(setup: &Setup) -> FileAccess {
    let mut execute = there(&SYSTEM);
    execute.extend(installed(setup));
    let mut access = FileAccess { read: there(&READ), execute, ..FileAccess::default() };
    if setup.device.is_some() {
        let driver = files_of_driver();
        // The driver's libraries are executed, not only read.
        access.execute.extend(driver.read);
        access.modify.extend(driver.modify);
        access.list.extend(driver.list);
    }
    access
}

/// Confines a runner before the process becomes a Python interpreter. The tool's library in that
/// process starts threads, which a confinement from within the interpreter would miss.
fn confine_alone(setup: &Setup, directory: &Path) -> io::Result<()> {
    let mut libraries = there(&SYSTEM);
    libraries.extend(there(&READ));
    libraries.extend(installed(setup));
    let granted = ProgramGrants {
        program: &setup.python,
        directory: &setup.site_packages,
        libraries: &libraries,
        tool: Some(AttachedTool { directory, ports: &[] }),
    };
    let bounds = ProgramLimits {
        data_bytes: enforcement::within_memory(DATA),
        open_files: OPEN_FILES,
        file_bytes: TOOL_FILE_BYTES,
    };
    whole_program::confine(&granted, bounds).map_err(io::Error::other)?;
    Ok(())
}

/// Returns those of the paths that exist.
fn there(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).filter(|path| path.exists()).collect()
}

/// Returns the paths of the interpreter and its packages.
fn installed(setup: &Setup) -> impl Iterator<Item = PathBuf> {
    setup.roots.iter().chain([&setup.python, &setup.site_packages]).cloned()
}

fn program(setup: &Setup) -> io::Result<ChildProgram> {
    let files = access(setup);
    let kind = match (&setup.tool, &setup.device) {
        (Some(_), _) => ChildKind::WatchedInterpreter,
        (None, None) => ChildKind::Interpreter,
        (None, Some(_)) => ChildKind::DeviceInterpreter,
    };
    let settings = Settings {
        site_packages: &setup.site_packages,
        threads: setup.threads,
        address_space: ADDRESS_SPACE,
        filters: calls::encoded_with_asking(kind).map_err(io::Error::other)?,
        device: setup.device.as_deref().map(|visible| DeviceSettings {
            visible,
            read: files.read.iter().chain(&files.execute).cloned().collect(),
            list: files.list.clone(),
            modify: files.modify.clone(),
            own: &proc_files::OWN,
            data: enforcement::within_memory(DATA),
        }),
        alone: setup.tool.is_some(),
    };
    let mut program = python::interpreter(&setup.python, SOURCE, &settings)?
        // PyTorch's compiler needs these when it is imported: a user name, which it could not read
        // from a file, and a cache directory, which it would create.
        .variable("USER", "nobody")
        .variable("TORCHINDUCTOR_CACHE_DIR", "/")
        // PyTorch's compiler starts processes on import if it may use more than one.
        .variable("TORCHINDUCTOR_COMPILE_THREADS", "1")
        .variable("OMP_NUM_THREADS", setup.threads.to_string())
        // A thread that spins while it waits takes time from other threads if they share cores. A
        // call of 10 µs was observed to take 8 ms.
        .variable("OMP_WAIT_POLICY", "PASSIVE")
        // A process that forks must have only one thread, but numpy's library would start more
        // threads when it is loaded.
        .variable("OPENBLAS_NUM_THREADS", "1")
        // The zygote must not search for a device or open its driver before a fork does.
        .variable("CUDA_VISIBLE_DEVICES", "");
    if setup.tool.is_some() {
        // The tool configures its library in the process through environment variables.
        program.environment = Environment::Own;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::SOURCE;

    /// The parts form one text: of two functions with the same name, every caller would get the
    /// later one.
    #[test]
    fn no_name_of_the_interpreters_text_is_defined_twice() {
        let mut names = BTreeSet::new();
        for line in SOURCE.lines() {
            let defined = line.strip_prefix("def ").or_else(|| line.strip_prefix("class "));
            let Some(defined) = defined else { continue };
            let name = defined.split(['(', ':']).next().unwrap_or_default();
            assert!(names.insert(name), "`{name}` is defined in two parts");
        }
        assert!(names.contains("main") && names.len() > 50, "{names:?}");
    }
}
