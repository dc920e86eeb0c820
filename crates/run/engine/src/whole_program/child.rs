//! The child process, which confines itself and then becomes the submitted program.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::{counted, listening};
use warpgauge_sandbox::device_worker::Confinement;
use warpgauge_sandbox::enforcement::{Enforcement, die_with_parent};
use warpgauge_sandbox::program::{ChildProgram, Environment};
use warpgauge_sandbox::whole_program::{AttachedTool, ProgramGrants, ProgramLimits, confine};

/// First argument of the child, which selects the hidden subcommand.
pub const COMMAND: &str = "__program";

/// Environment variable that contains the file descriptor to which the emulated device writes its
/// counts.
const REPORT_VARIABLE: &str = "WARPGAUGE_EMULATOR_REPORT_FD";

/// Instructions for a child, which its second argument contains as JSON. The arguments of the
/// program follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Path of the built program.
    pub object: PathBuf,
    /// Path at which the child creates an executable copy of `object`.
    pub program: PathBuf,
    /// Working directory of the program.
    pub directory: PathBuf,
    /// Paths of the libraries that the program loads.
    pub libraries: Vec<PathBuf>,
    /// Limits on the program's resources.
    pub bounds: ProgramLimits,
    /// Directory for files of the tool that runs the program. `None` if no tool runs it.
    pub tool: Option<PathBuf>,
    /// File to which the child reports how it is confined, as one [`Told`] per line.
    pub told: PathBuf,
    /// File to which the emulated device writes its counts.
    pub report: Option<PathBuf>,
}

/// Message of a child, sent before it becomes the program, or because it cannot become the program.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// The child is confined and about to become the program.
    Confined(Confinement),
    /// The child cannot become the program. The text is the reason.
    Failed(String),
}

/// Runs the child, as the main function of its hidden subcommand. Returns only on failure.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let error = match arguments.next().and_then(|setup| setup.into_string().ok()) {
        Some(setup) => begin(&setup, arguments.collect()),
        None => io::Error::other("it received no message"),
    };
    // This is visible only if a user starts the command directly.
    eprintln!("program child: {error}");
    ExitCode::FAILURE
}

fn begin(setup: &str, arguments: Vec<OsString>) -> io::Error {
    let setup: Setup = match serde_json::from_str(setup) {
        Ok(setup) => setup,
        Err(error) => return error.into(),
    };
    let mut told = match OpenOptions::new().append(true).open(&setup.told) {
        Ok(told) => told,
        Err(error) => return error,
    };
    let error = become_program(&setup, arguments, &mut told);
    let _ = tell(&mut told, &Told::Failed(error.to_string()));
    error
}

fn tell(file: &mut File, what: &Told) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    file.write_all(&line)
}

fn become_program(setup: &Setup, arguments: Vec<OsString>, told: &mut File) -> io::Error {
    match confined(setup, told) {
        Ok(program) => {
            let program = program.args(arguments);
            program.to_blocking().stdin(Stdio::inherit()).exec()
        }
        Err(error) => error,
    }
}

fn confined(setup: &Setup, told: &mut File) -> io::Result<ChildProgram> {
    die_with_parent()?;
    let counted = counted::begin()?;
    // Linux does not execute a file that any process has open for writing. For a moment, children
    // of the server inherit its open descriptors. This process starts no more children, so it makes
    // the copy itself. A tool may start this process again, when a read-only copy already exists.
    let _ = std::fs::remove_file(&setup.program);
    std::fs::copy(&setup.object, &setup.program)?;
    // The system restricts a process whose program file is not readable for its user: in the
    // process's /proc directory it can write only the names of threads. So the program cannot lower
    // its score for the out-of-memory killer. A tool must be able to read the file.
    let mode = if setup.tool.is_some() { 0o500 } else { 0o100 };
    std::fs::set_permissions(&setup.program, Permissions::from_mode(mode))?;
    let mut program = ChildProgram::new(&setup.program, Environment::Own);
    program.directory = Some(setup.directory.clone());
    if let Some(report) = &setup.report {
        program = program.variable(REPORT_VARIABLE, inherited(report)?.to_string());
    }
    let ports = match setup.tool {
        Some(_) => listening::ports_of_tool()?,
        None => Vec::new(),
    };
    let granted = ProgramGrants {
        program: &setup.program,
        directory: &setup.directory,
        libraries: &setup.libraries,
        tool: setup.tool.as_deref().map(|directory| AttachedTool { directory, ports: &ports }),
    };
    let mut confinement =
        confine(&granted, setup.bounds).map_err(|error| io::Error::other(error.whole()))?;
    if !counted {
        confinement.calls = confinement.calls.and(Enforcement::Partial);
    }
    tell(told, &Told::Confined(confinement))?;
    Ok(program)
}

/// Opens a file for writing, with a descriptor that stays open when this process becomes the
/// program.
fn inherited(path: &Path) -> io::Result<i32> {
    let file = OpenOptions::new().append(true).open(path)?;
    // The duplicated descriptor lacks the close-on-exec flag.
    let copy = rustix::io::dup(&file)?;
    let number = copy.as_raw_fd();
    let _ = copy.into_raw_fd();
    Ok(number)
}
