//! Starts a program and reports how it ended. The main type is [`WholeProgram`].

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use warpgauge_sandbox::contained::{self, CapturedText, ProcessEnd, ProcessLaunch};
use warpgauge_sandbox::device_worker::Confinement;
use warpgauge_sandbox::enforcement::within_memory;
use warpgauge_sandbox::program::ChildProgram;
use warpgauge_sandbox::whole_program::ProgramLimits;

use super::child::{COMMAND, Setup, Told};

/// Maximum private memory of a program, in bytes: the same as for a PyTorch runner with a device.
const DATA_BYTES: u64 = 64 << 30;

/// Maximum number of open files of a program.
const OPEN_FILES: u64 = 512;

/// Number of bytes that are kept from the beginning of a program's standard output. Some bytes of
/// the end are kept, too.
const STDOUT_BYTES: usize = 1 << 20;

/// Maximum size of a file that a process may write in a run without a tool, in bytes.
const FILE_BYTES: u64 = 2 << 30;

/// Maximum size of a file that a tool may write within the program, in bytes.
const TOOL_FILE_BYTES: u64 = 256 << 20;

/// Maximum number of bytes that are read from a file that the child or the emulated device wrote.
/// Without a tool, the value also limits the size of the files that the confined program received
/// open for writing.
const TOLD_BYTES: u64 = 8 << 20;

/// Names of the files and directories of one run.
const TOLD: &str = "told.json";
const REPORT: &str = "counted.json";
const OWN_DIRECTORY: &str = "cwd";
const LIBRARIES: &str = "lib";
const PROGRAM: &str = "program";

/// File name under which programs search for the CUDA driver.
const DRIVER: &str = "libcuda.so.1";

/// The device that a program uses.
#[derive(Debug, Clone)]
pub enum ProgramDevice {
    /// A GPU, given by its UUID.
    Gpu(String),
    /// Path of the library that implements the emulated device.
    Emulated(PathBuf),
}

/// A program to run, with its device, input and limits.
#[derive(Debug, Clone)]
pub struct WholeProgram {
    /// Path of the warpgauge program, from which the child starts.
    pub server: PathBuf,
    /// Path of the built program.
    pub object: PathBuf,
    pub arguments: Vec<String>,
    /// Content of the program's standard input.
    pub stdin: Vec<u8>,
    pub device: ProgramDevice,
    /// Directories of the libraries that the program is linked with.
    pub libraries: Vec<PathBuf>,
    /// A private, empty directory for one run.
    pub directory: PathBuf,
}

/// How a program ended.
#[derive(Debug)]
pub struct ProgramEnd {
    /// Exit status. `None` if the program did not end in time.
    pub status: Option<ExitStatus>,
    pub stdout: CapturedText,
    pub stderr: CapturedText,
    /// Time from the start of the program to its end.
    pub wall: Duration,
    /// How the program was confined.
    pub confinement: Confinement,
    /// The emulated device's report as text. It is untrusted, since the program can write to the
    /// same file.
    pub counted: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// A file operation of the run failed.
    #[error("cannot {operation} {}", path.display())]
    Files { operation: &'static str, path: PathBuf, source: io::Error },
    /// The child could not become the program.
    #[error("the program was not started: {0}")]
    NotStarted(String),
}

fn files(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NotRun {
    let path = path.to_owned();
    move |source| NotRun::Files { operation, path, source }
}

impl WholeProgram {
    /// Creates the files and directories of a run in `directory`.
    ///
    /// # Errors
    /// Fails if a file or directory cannot be created.
    pub fn prepare(&self) -> Result<(), NotRun> {
        let make = |name: &str| {
            let path = self.directory.join(name);
            std::fs::create_dir(&path).map_err(files("create", &path))
        };
        make(OWN_DIRECTORY)?;
        let told = self.directory.join(TOLD);
        File::create(&told).map_err(files("create", &told))?;
        if let ProgramDevice::Emulated(library) = &self.device {
            make(LIBRARIES)?;
            let link = self.directory.join(LIBRARIES).join(DRIVER);
            std::os::unix::fs::symlink(library, &link).map_err(files("link", &link))?;
            let report = self.directory.join(REPORT);
            File::create(&report).map_err(files("create", &report))?;
        }
        Ok(())
    }

    /// Returns the command that starts the child. The caller may run it under a tool whose files
    /// are in the directory `tool`.
    ///
    /// # Errors
    /// Fails if the instructions for the child cannot be serialised, which is a bug.
    pub fn command(&self, tool: Option<&Path>) -> Result<ChildProgram, NotRun> {
        let own = self.directory.join(OWN_DIRECTORY);
        let mut libraries = self.libraries.clone();
        let mut report = None;
        if let ProgramDevice::Emulated(library) = &self.device {
            libraries.extend([self.directory.join(LIBRARIES), library.clone()]);
            report = Some(self.directory.join(REPORT));
        }
        let setup = Setup {
            object: self.object.clone(),
            program: self.directory.join(PROGRAM),
            directory: own.clone(),
            libraries,
            bounds: ProgramLimits {
                data_bytes: within_memory(DATA_BYTES),
                open_files: OPEN_FILES,
                file_bytes: if tool.is_some() { TOOL_FILE_BYTES } else { TOLD_BYTES },
            },
            tool: tool.map(Path::to_owned),
            told: self.directory.join(TOLD),
            report,
        };
        let setup =
            serde_json::to_string(&setup).map_err(|error| NotRun::NotStarted(error.to_string()))?;
        let program =
            contained::tool(&self.server, &own).args([COMMAND, &setup]).args(&self.arguments);
        // The confined program cannot open files for writing, so the driver cannot keep a
        // compilation cache.
        let program = program.variable("CUDA_CACHE_DISABLE", "1");
        Ok(match &self.device {
            ProgramDevice::Gpu(uuid) => program.variable("CUDA_VISIBLE_DEVICES", uuid),
            ProgramDevice::Emulated(_) => program
                .variable("LD_LIBRARY_PATH", self.directory.join(LIBRARIES))
                .variable("WARPGAUGE_EMULATOR_DEVICES", "1"),
        })
    }

    /// Runs the program until it ends or `limit` has passed.
    ///
    /// # Errors
    /// Fails if the program was not started.
    pub async fn run(&self, limit: Duration) -> Result<ProgramEnd, NotRun> {
        self.prepare()?;
        let launch = ProcessLaunch {
            program: self.command(None)?,
            input: self.stdin.clone(),
            stdout_bytes: STDOUT_BYTES,
            file_bytes: FILE_BYTES,
        };
        let end = contained::run(&launch, limit).await.map_err(files("start", &self.server))?;
        self.ended(end)
    }

    fn ended(&self, end: ProcessEnd) -> Result<ProgramEnd, NotRun> {
        let lines = self.read(TOLD)?;
        let mut told = lines.lines().map(serde_json::from_str::<Told>);
        let confinement = match told.next() {
            Some(Ok(Told::Confined(confinement))) => confinement,
            Some(Ok(Told::Failed(why))) => return Err(NotRun::NotStarted(why)),
            _ => return Err(NotRun::NotStarted(format!("it ended early ({})", end.description()))),
        };
        if let Some(Ok(Told::Failed(why))) = told.next() {
            return Err(NotRun::NotStarted(why));
        }
        let counted = match &self.device {
            ProgramDevice::Gpu(_) => None,
            ProgramDevice::Emulated(_) => Some(self.read(REPORT)?),
        };
        let ProcessEnd { status, stdout, stderr, wall } = end;
        Ok(ProgramEnd { status, stdout, stderr, wall, confinement, counted })
    }

    fn read(&self, name: &str) -> Result<String, NotRun> {
        let path = self.directory.join(name);
        let mut content = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(TOLD_BYTES).read_to_end(&mut content));
        read.map_err(files("read", &path))?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }
}
