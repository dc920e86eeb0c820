//! Starting a program, and what is told of its end.

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

/// Memory of a program's own, bytes: as much as a runner of PyTorch's has with a device.
const DATA_BYTES: u64 = 64 << 30;

/// Open files of a program.
const OPEN_FILES: u64 = 512;

/// Bytes of its output that are kept: the beginning, and some of the end beside.
const STDOUT_BYTES: usize = 1 << 20;

/// Bytes of each file that the child, the emulated device or a tool round it writes.
const FILE_BYTES: u64 = 2 << 30;

/// Bytes of a file that a tool keeps within the program.
const TOOL_FILE_BYTES: u64 = 256 << 20;

/// Bytes that are read of what the child and the emulated device told.
const TOLD_BYTES: u64 = 8 << 20;

/// Names of files beside a program.
const TOLD: &str = "told.json";
const REPORT: &str = "counted.json";
const OWN_DIRECTORY: &str = "cwd";
const LIBRARIES: &str = "lib";
const PROGRAM: &str = "program";

/// The name under which programs look for the driver.
const DRIVER: &str = "libcuda.so.1";

/// The device that a program finds.
#[derive(Debug, Clone)]
pub enum ProgramDevice {
    /// A GPU, by its UUID.
    Gpu(String),
    /// The emulated one: the library that stands for it.
    Emulated(PathBuf),
}

/// A program to run.
#[derive(Debug, Clone)]
pub struct WholeProgram {
    /// This program, which the child begins as.
    pub server: PathBuf,
    /// The program's file.
    pub object: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What it reads from its standard input.
    pub stdin: Vec<u8>,
    /// The device.
    pub device: ProgramDevice,
    /// Directories of libraries that it is linked with.
    pub libraries: Vec<PathBuf>,
    /// A private directory for one run, which is empty.
    pub directory: PathBuf,
}

/// How a program ended.
#[derive(Debug)]
pub struct ProgramEnd {
    /// Its exit status; `None` if it did not end in time.
    pub status: Option<ExitStatus>,
    /// What it printed.
    pub stdout: CapturedText,
    /// What it printed of errors.
    pub stderr: CapturedText,
    /// From its start to its end.
    pub wall: Duration,
    /// What it could touch.
    pub confinement: Confinement,
    /// What the emulated device counted, as it wrote it: a program could write there, too.
    pub counted: Option<String>,
}

/// Why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// The machine does not let us.
    #[error("cannot {operation} {}", path.display())]
    Files {
        /// What was tried.
        operation: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The child could not become the program.
    #[error("the program was not started: {0}")]
    NotStarted(String),
}

fn files(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NotRun {
    let path = path.to_owned();
    move |source| NotRun::Files { operation, path, source }
}

impl WholeProgram {
    /// Makes its directory ready.
    ///
    /// # Errors
    /// A file cannot be made.
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

    /// What is started: the child that becomes the program. A tool can be put before it, which has its files
    /// in the directory `tool`.
    ///
    /// # Errors
    /// It cannot be described, which is a bug.
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
        // It may write no file, so the driver keeps nothing of what it compiles.
        let program = program.variable("CUDA_CACHE_DISABLE", "1");
        Ok(match &self.device {
            ProgramDevice::Gpu(uuid) => program.variable("CUDA_VISIBLE_DEVICES", uuid),
            ProgramDevice::Emulated(_) => program
                .variable("LD_LIBRARY_PATH", self.directory.join(LIBRARIES))
                .variable("WARPGAUGE_EMULATOR_DEVICES", "1"),
        })
    }

    /// Runs it to its end, or to that of the time it has.
    ///
    /// # Errors
    /// It was not started.
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
