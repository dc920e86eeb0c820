//! The confinement of processes that run submitted kernels on a device. The main type is
//! [`Confinement`].
//!
//! The driver decides which files it opens, and NVIDIA publishes no list. This list was found by
//! trial on an H200 (driver 580, CUDA 13). It is wider where other versions are known to need more;
//! see docs/security.md. It contains no user data: no home directory, and of the data directories
//! only the run directory of this server.

use std::path::{Path, PathBuf};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use serde::{Deserialize, Serialize};

use super::calls::{ChildKind, allow_only};
use super::enforcement::{Enforcement, FileAccess, close_file_system};
use super::proc_files::{self, OWN_THREADS};
use super::shared_events;

/// Paths that the process may read: libraries, and descriptions of the machine.
const READ: [&str; 13] = [
    "/usr",
    "/lib",
    "/lib64",
    "/opt",
    "/sys",
    "/run/nvidia",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/nvidia",
    "/etc/nvidia-container-runtime",
    "/dev/urandom",
    "/dev/random",
];

/// Devices of the Linux kernel, which the process may read and write.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/zero"];

/// The prefix of the entries in `/dev` that belong to NVIDIA GPUs.
const GPU: &str = "nvidia";

/// The default directory of NVIDIA's multi-process service (MPS).
const MPS: &str = "/tmp/nvidia-mps";

/// The extent to which a process is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Whether landlock restricts files, TCP and signals.
    pub files: Enforcement,
    /// Whether seccomp restricts system calls.
    pub calls: Enforcement,
}

impl Confinement {
    /// Returns the state of a process that is not confined, with the reason.
    pub fn none(reason: &str) -> Self {
        let none = Enforcement::None { reason: reason.to_owned() };
        Self { files: none.clone(), calls: none }
    }
}

impl std::fmt::Display for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.calls {
            Enforcement::Full | Enforcement::Partial => {
                write!(f, "{}; seccomp: enforced", self.files)
            }
            Enforcement::None { reason } => {
                write!(f, "{}; seccomp: not enforced ({reason})", self.files)
            }
        }
    }
}

/// Confines this process before it starts other threads. `run_dir` becomes writable. All files in
/// the directories of `libraries` become readable.
pub fn confine(run_dir: &Path, libraries: &[PathBuf]) -> Confinement {
    confined(access(run_dir, libraries), ChildKind::Device)
}

/// Confines a judge, which runs no submitted kernels and stops the processes that run them.
pub fn confine_judge(run_dir: &Path) -> Confinement {
    // The judge reads in /proc whether these processes have stopped.
    let mut access = FileAccess { signals: true, ..access(run_dir, &[]) };
    access.read.push("/proc".into());
    confined(access, ChildKind::DeviceJudge)
}

/// Confines a holder process, which runs no kernels, and shares GPU memory and events with other
/// processes.
pub fn confine_holder(run_dir: &Path, libraries: &[PathBuf]) -> Confinement {
    let mut access = access(run_dir, libraries);
    access.write.extend(Some(PathBuf::from(shared_events::DIRECTORY)).filter(|path| path.exists()));
    confined(access, ChildKind::Device)
}

/// Confines only the system calls of this process, because a tool inside it writes files.
pub fn confine_watched() -> Confinement {
    let reason = "a tool that observes this process writes files".to_owned();
    Confinement { files: Enforcement::None { reason }, calls: allow_only(ChildKind::WatchedDevice) }
}

/// Returns the files that a driver reads and writes in any process. The files with the names of its
/// threads are not included.
pub fn files_of_driver() -> FileAccess {
    let mut access = access(Path::new("/"), &[]);
    access.label.clear();
    FileAccess { write: Vec::new(), ..access }
}

fn confined(mut access: FileAccess, kind: ChildKind) -> Confinement {
    // If a process is not dumpable, its user can write only the names of its threads in /proc. The
    // process therefore cannot lower its out-of-memory score.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    access.read.extend(proc_files::own());
    let files = close_file_system(&access)
        .unwrap_or_else(|error| Enforcement::None { reason: error.whole() });
    Confinement { files, calls: allow_only(kind) }
}

/// Returns the GPUs of this machine and the devices that belong to them.
fn gpus() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let gpus = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(GPU));
    gpus.map(|entry| entry.path()).collect()
}

/// Returns whether NVIDIA's driver is present. The driver names its threads in [`OWN_THREADS`].
pub(crate) fn has_driver() -> bool {
    !gpus().is_empty()
}

fn access(run_dir: &Path, libraries: &[PathBuf]) -> FileAccess {
    let there = |path: &PathBuf| path.exists();
    let mut read: Vec<PathBuf> = READ.map(PathBuf::from).to_vec();
    read.extend(proc_files::machine());
    read.extend(std::env::current_exe());
    let beside = libraries.iter().filter_map(|library| Some(library.parent()?.to_owned()));
    read.extend(beside);
    // The dynamic loader uses this variable. An empty entry means the working directory, which is
    // never intended.
    let search = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    read.extend(std::env::split_paths(&search).filter(|path| path.is_absolute()));
    let mut devices: Vec<PathBuf> = DEVICES.map(PathBuf::from).to_vec();
    let gpus = gpus();
    let has_driver = !gpus.is_empty();
    devices.extend(gpus);
    let pipes = std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").map_or(MPS.into(), PathBuf::from);
    devices.push(pipes);
    read.retain(there);
    devices.retain(there);
    FileAccess {
        read,
        execute: Vec::new(),
        modify: devices,
        write: vec![run_dir.to_owned()],
        create: Vec::new(),
        list: vec!["/dev".into()],
        label: has_driver.then(|| OWN_THREADS.into()).into_iter().collect(),
        signals: false,
        ports: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{ErrorKind, Result};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::Command;

    use super::*;

    const CHILD: &str = "device_worker::tests::try_what_a_stranger_might";

    /// Returns the attempts that succeed in a separate process.
    fn attempts_that_succeed(
        confined: bool,
        data: &Path,
        server: &TcpListener,
    ) -> BTreeSet<String> {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", CHILD])
            .env("WARPGAUGE_TEST_CONFINED", confined.to_string())
            .env("WARPGAUGE_TEST_DATA", data)
            .env("WARPGAUGE_TEST_PORT", server.local_addr().unwrap().port().to_string())
            .output()
            .unwrap();
        let said = String::from_utf8(child.stdout).unwrap();
        assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
        let lines = said.lines().filter_map(|line| Some(line.split_once("succeeded: ")?.1));
        lines.map(str::to_owned).collect()
    }

    #[test]
    #[ignore = "runs in processes that the tests below start"]
    fn try_what_a_stranger_might() {
        let variable = |name: &str| std::env::var(name).unwrap();
        let data = PathBuf::from(variable("WARPGAUGE_TEST_DATA"));
        let run = data.join("run");
        if variable("WARPGAUGE_TEST_CONFINED") == "true" {
            let confinement = confine(&run, &[]);
            assert_eq!(confinement.calls, Enforcement::Full);
            assert_eq!(confinement.files, Enforcement::Full, "the tests need Linux 6.12 or later");
        }
        let port: u16 = variable("WARPGAUGE_TEST_PORT").parse().unwrap();
        let parent = rustix::process::getppid().unwrap();
        let permitted = |result: rustix::io::Result<()>| result.map_err(std::io::Error::from);
        let attempts: [(&str, Result<()>); 16] = [
            ("read the database", std::fs::read(data.join("warpgauge.db")).map(drop)),
            ("list the data directory", std::fs::read_dir(&data).map(drop)),
            ("write beside the database", std::fs::write(data.join("planted.cubin"), "code")),
            ("read the users", std::fs::read("/etc/passwd").map(drop)),
            ("start a program", Command::new("/bin/true").status().map(drop)),
            ("connect by TCP", TcpStream::connect(("127.0.0.1", port)).map(drop)),
            ("send by UDP", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("signal the server", permitted(rustix::process::test_kill_process(parent))),
            ("write in the run directory", std::fs::write(run.join("scratch"), "own")),
            ("read what the system tells", std::fs::read("/proc/meminfo").map(drop)),
            ("read its own memory map", std::fs::read("/proc/self/maps").map(drop)),
            ("read the machine's sockets", std::fs::read("/proc/self/net/unix").map(drop)),
            ("read them as a thread", std::fs::read("/proc/thread-self/net/unix").map(drop)),
            ("name a thread", std::fs::write("/proc/thread-self/comm", "stranger")),
            ("start a thread", std::thread::Builder::new().spawn(|| ()).map(drop)),
            ("make a local socket", std::os::unix::net::UnixStream::pair().map(drop)),
        ];
        for (what, result) in attempts {
            match result {
                Ok(()) => println!("\nsucceeded: {what}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{what}"),
            }
        }
    }

    #[test]
    fn a_confined_process_reaches_its_own_and_nothing_of_others() {
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(data.path().join("run")).unwrap();
        std::fs::write(data.path().join("warpgauge.db"), "somebody's").unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        // Without confinement all attempts succeed, so the confinement causes the refusals.
        let free = attempts_that_succeed(false, data.path(), &server);
        assert_eq!(free.len(), 16, "{free:?}");
        std::fs::remove_file(data.path().join("planted.cubin")).unwrap();
        let confined = attempts_that_succeed(true, data.path(), &server);
        let own = [
            "make a local socket",
            "read its own memory map",
            "read what the system tells",
            "start a thread",
            "write in the run directory",
        ];
        let mut own: BTreeSet<String> = own.map(str::to_owned).into();
        own.extend(has_driver().then(|| "name a thread".to_owned()));
        assert_eq!(confined, own);
        assert!(!data.path().join("planted.cubin").exists());
    }

    #[test]
    fn nothing_is_granted_that_is_not_there_or_is_somebodys() {
        let run_dir = tempfile::tempdir().unwrap();
        let libraries = [PathBuf::from("/nonexistent/lib.so"), run_dir.path().join("lib.so")];
        let access = access(run_dir.path(), &libraries);
        let granted = [&access.read, &access.modify, &access.write].into_iter().flatten();
        let granted: Vec<&PathBuf> = granted.collect();
        assert!(granted.iter().all(|path| path.exists()), "{granted:?}");
        for closed in ["/", "/dev", "/etc", "/home", "/root", "/tmp", "/var", "/run"] {
            assert!(granted.iter().all(|path| path.as_path() != Path::new(closed)), "{closed}");
        }
        assert_eq!(access.write, [run_dir.path().to_owned()]);
        assert!(access.execute.is_empty());
    }

    #[test]
    fn what_is_in_force_is_said() {
        let none = Confinement::none("under a tool").to_string();
        assert_eq!(
            none,
            "landlock: not enforced (under a tool); seccomp: not enforced (under a tool)"
        );
        let full = Confinement { files: Enforcement::Full, calls: Enforcement::Full }.to_string();
        assert_eq!(full, "landlock: fully enforced; seccomp: enforced");
    }
}
