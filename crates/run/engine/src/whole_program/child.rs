//! The child: confines itself, and becomes the program.

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

/// First argument of the child.
pub const COMMAND: &str = "__program";

/// Where the emulated device writes what it counted.
const REPORT_VARIABLE: &str = "WARPGAUGE_EMULATOR_REPORT_FD";

/// What a child is told, as its second argument; the program's own follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The program's file.
    pub object: PathBuf,
    /// What becomes of it: a copy that can be executed.
    pub program: PathBuf,
    /// Where it runs.
    pub directory: PathBuf,
    /// What it loads.
    pub libraries: Vec<PathBuf>,
    /// What it may take.
    pub bounds: ProgramLimits,
    /// Where a tool round it has its files.
    pub tool: Option<PathBuf>,
    /// Where the child tells how the program was confined.
    pub told: PathBuf,
    /// Where the emulated device tells what it counted.
    pub report: Option<PathBuf>,
}

/// What a child tells before there is a program, or where there is none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// It is about to become the program.
    Confined(Confinement),
    /// It cannot.
    Failed(String),
}

/// Runs the child; the program calls this for its hidden subcommand. Comes back only if it fails.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let error = match arguments.next().and_then(|setup| setup.into_string().ok()) {
        Some(setup) => begin(&setup, arguments.collect()),
        None => io::Error::other("it was told nothing"),
    };
    // Only who starts it by hand sees this.
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
    // A file cannot be executed while somebody has it open to write, and every process that the server
    // starts has its descriptors for a moment: this one starts none.
    // A tool may start it again, where a copy is that nobody may write to.
    let _ = std::fs::remove_file(&setup.program);
    std::fs::copy(&setup.object, &setup.program)?;
    // Of a program that its user cannot read, /proc shows the user nothing but the names of its threads to
    // write to: so it cannot lower its score for when memory runs out. Tools read what they look into.
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

/// Opens a file to write for the program too: a descriptor that stays open when this process becomes it.
fn inherited(path: &Path) -> io::Result<i32> {
    let file = OpenOptions::new().append(true).open(path)?;
    // A copy that has not the flag by which a descriptor is closed then.
    let copy = rustix::io::dup(&file)?;
    let number = copy.as_raw_fd();
    let _ = copy.into_raw_fd();
    Ok(number)
}
