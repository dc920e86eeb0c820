//! The confinement of a submitted program to its own file, libraries, a GPU and its own memory. The
//! main function is [`confine`].
//!
//! The program cannot write files or start processes; it can only print. A process applies the
//! confinement and then becomes the program, so no code of the program runs before that.

use std::path::{Path, PathBuf};

use rustix::process::Resource;
use serde::{Deserialize, Serialize};

use super::calls::{ChildKind, allow_only};
use super::device_worker::{Confinement, files_of_driver, has_driver};
use super::enforcement::{FileAccess, SandboxError, limit};
use super::own_root::{self, Processes};
use super::proc_files::{self, OWN_THREADS};

/// The dynamic loaders, if they exist. The system starts them in place of the program.
const LOADERS: [&str; 3] =
    ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib64/ld64.so.2"];

/// Limits for the resources of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLimits {
    /// The maximum private memory, in bytes. The address space is unlimited, since a driver
    /// reserves addresses for the whole device.
    pub data_bytes: u64,
    /// The maximum number of open files.
    pub open_files: u64,
    /// The maximum size of a file that the program received open for writing, in bytes.
    pub file_bytes: u64,
}

/// The paths that a program may read, in addition to those for every program that uses a GPU.
#[derive(Debug, Clone)]
pub struct ProgramGrants<'a> {
    /// The program, which may be read and executed.
    pub program: &'a Path,
    /// The working directory, which may only be read.
    pub directory: &'a Path,
    /// The libraries that the program loads, as files or directories.
    pub libraries: &'a [PathBuf],
    /// The tool that observes the program, if any.
    pub tool: Option<AttachedTool<'a>>,
}

/// A tool that observes a program.
#[derive(Debug, Clone, Copy)]
pub struct AttachedTool<'a> {
    /// The directory in which the tool stores files.
    pub directory: &'a Path,
    /// The TCP ports to which the code that the tool injects into the program may connect.
    pub ports: &'a [u16],
}

/// Confines this process, which is about to become the program. Must be called while the process is
/// single-threaded.
///
/// # Errors
/// A limit cannot be set, a path does not exist, or the rules or capabilities cannot be changed.
pub fn confine(
    granted: &ProgramGrants<'_>,
    bounds: ProgramLimits,
) -> Result<Confinement, SandboxError> {
    let limits = [
        ("memory", Resource::Data, bounds.data_bytes),
        ("open files", Resource::Nofile, bounds.open_files),
        ("file size", Resource::Fsize, bounds.file_bytes),
        ("core dumps", Resource::Core, 0),
    ];
    limit(&limits)?;
    let processes = if granted.tool.is_some() { Processes::All } else { Processes::Own };
    let files = own_root::confine(&access(granted), processes)?;
    let kind = match granted.tool {
        None => ChildKind::Program,
        Some(AttachedTool { ports: [], .. }) => ChildKind::WatchedProgram,
        Some(_) => ChildKind::TracedProgram,
    };
    Ok(Confinement { files, calls: allow_only(kind) })
}

fn access(granted: &ProgramGrants<'_>) -> FileAccess {
    let mut access = files_of_driver();
    access.read.extend(proc_files::own());
    access.read.push(granted.directory.to_owned());
    access.read.extend(granted.libraries.iter().filter(|path| path.exists()).cloned());
    access.label.extend(has_driver().then(|| OWN_THREADS.into()));
    let loaders = LOADERS.iter().map(PathBuf::from).filter(|path| path.exists());
    access.execute = loaders.chain([granted.program.to_owned()]).collect();
    if let Some(tool) = granted.tool {
        // The code that the tool injects communicates with the tool and writes files there.
        access.create.push(tool.directory.to_owned());
        access.ports = tool.ports.to_vec();
    }
    access
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::enforcement::Enforcement;

    const BECOMES: &str = "whole_program::tests::become_a_program";
    const TRIES: &str = "whole_program::tests::try_what_a_program_might";

    /// Returns the attempts of a program that succeed. `directory` is for its files and those of a
    /// tool. `tool` is the port on which the tool listens, if there is one.
    fn attempts_that_succeed(directory: &Path, tool: Option<u16>, other: u16) -> BTreeSet<String> {
        let port = |port: Option<u16>| port.map_or_else(String::new, |port| port.to_string());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", BECOMES])
            .env("WARPGAUGE_TEST_DATA", directory)
            .env("WARPGAUGE_TEST_TOOL", port(tool))
            .env("WARPGAUGE_TEST_PORT", port(Some(other)))
            .output()
            .unwrap();
        let said = String::from_utf8(child.stdout).unwrap();
        assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
        let lines = said.lines().filter_map(|line| Some(line.split_once("succeeded: ")?.1));
        lines.map(str::to_owned).collect()
    }

    #[test]
    #[ignore = "runs in processes that the test below starts"]
    fn become_a_program() {
        let variable = |name: &str| std::env::var(name).unwrap();
        let directory = PathBuf::from(variable("WARPGAUGE_TEST_DATA"));
        let program = std::env::current_exe().unwrap();
        let ports: Vec<u16> = variable("WARPGAUGE_TEST_TOOL").parse().into_iter().collect();
        let granted = ProgramGrants {
            program: &program,
            directory: &directory,
            libraries: &[],
            tool: (!ports.is_empty())
                .then_some(AttachedTool { directory: &directory, ports: &ports }),
        };
        let bounds = ProgramLimits { data_bytes: 4 << 30, open_files: 64, file_bytes: 1 << 20 };
        let confinement = confine(&granted, bounds).unwrap();
        assert_eq!(confinement.calls, Enforcement::Full);
        assert_eq!(confinement.files, Enforcement::Full, "the tests need Linux 6.12 or later");
        let error =
            Command::new(&program).args(["--exact", "--ignored", "--nocapture", TRIES]).exec();
        panic!("{error}");
    }

    #[test]
    #[ignore = "runs in processes that the test below starts"]
    fn try_what_a_program_might() {
        use std::net::{TcpStream, UdpSocket};
        let directory = PathBuf::from(std::env::var("WARPGAUGE_TEST_DATA").unwrap());
        let connect = |name: &str| {
            let port: u16 = std::env::var(name).unwrap().parse().unwrap_or(1);
            TcpStream::connect(("127.0.0.1", port)).map(drop)
        };
        let parent = format!("/proc/{}/cmdline", std::os::unix::process::parent_id());
        let attempts: [(&str, std::io::Result<()>); 16] = [
            ("read its directory", std::fs::read(directory.join("given")).map(drop)),
            ("write in its directory", std::fs::write(directory.join("made"), "own")),
            ("remove from its directory", std::fs::remove_file(directory.join("made"))),
            ("write beside it", std::fs::write(directory.with_extension("made"), "own")),
            ("read its own memory map", std::fs::read("/proc/self/maps").map(drop)),
            ("read the machine's sockets", std::fs::read("/proc/self/net/unix").map(drop)),
            ("read them as a thread", std::fs::read("/proc/thread-self/net/unix").map(drop)),
            ("read the command line of another", std::fs::read(parent).map(drop)),
            ("read the users", std::fs::read("/etc/passwd").map(drop)),
            ("start a program", Command::new("/bin/true").status().map(drop)),
            ("start itself", Command::new("/proc/self/exe").status().map(drop)),
            ("connect to the tool", connect("WARPGAUGE_TEST_TOOL")),
            ("connect to another", connect("WARPGAUGE_TEST_PORT")),
            (
                "send by UDP",
                UdpSocket::bind("127.0.0.1:0")
                    .and_then(|it| it.send_to(b"x", "127.0.0.1:9"))
                    .map(drop),
            ),
            ("start a thread", std::thread::Builder::new().spawn(|| ()).map(drop)),
            ("name a thread", std::fs::write("/proc/thread-self/comm", "stranger")),
        ];
        for (what, result) in attempts {
            if result.is_ok() {
                println!("\nsucceeded: {what}");
            }
        }
    }

    #[test]
    fn a_program_reaches_its_own_and_under_a_tool_the_tool() {
        let data = tempfile::tempdir().unwrap();
        let directory = data.path().join("run");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("given"), "to read").unwrap();
        let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (tool, other) = (listen(), listen());
        let port = |listener: &std::net::TcpListener| listener.local_addr().unwrap().port();
        let set =
            |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        let mut own = vec!["read its directory", "read its own memory map", "start a thread"];
        own.extend(has_driver().then_some("name a thread"));
        let alone = attempts_that_succeed(&directory, None, port(&other));
        assert_eq!(alone, set(&own));
        let watched = attempts_that_succeed(&directory, Some(port(&tool)), port(&other));
        let more = ["connect to the tool", "write in its directory"];
        assert_eq!(watched, set(&[&own[..], &more].concat()));
    }
}
