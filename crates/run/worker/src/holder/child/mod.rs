//! The process that holds tensors: `warpgauge __holder`, started by the server with a socket as its
//! standard input. It runs only this module's code, and ends when the server ends.

mod device;
mod host;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::frame::{self, FrameError};
use clap::Parser;
use rustix::process::{Resource, Rlimit, setrlimit};
use uuid::Uuid;
use warpgauge_model::FailureCode;
use warpgauge_sandbox::{device_worker, handed, shared_events};

use crate::holder::protocol::{FILE, FromHolder, ToHolder, VERSION};
use device::DeviceMemory;
use host::HostMemory;
use warpgauge_shared_tensors::{CHUNK_BYTES, ExportedTensor};

/// First argument with which this program becomes a holder of tensors.
pub const COMMAND: &str = "__holder";

/// Arguments of the hidden subcommand `__holder`.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
pub(crate) struct HolderArgs {
    /// CUDA ordinal of the device. Without it, tensors are in the host's memory.
    #[arg(long)]
    pub(crate) device: Option<u32>,
    /// Use the emulator in this file instead of NVIDIA's driver.
    #[arg(long)]
    pub(crate) emulator: Option<PathBuf>,
    /// Directory that the process may write to, for tensors in host memory or for the driver.
    #[arg(long)]
    pub(crate) directory: PathBuf,
}

/// Reason why a request failed. The process continues.
pub(crate) struct Refusal {
    code: FailureCode,
    message: String,
}

impl Refusal {
    fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn unknown(id: Uuid) -> Self {
        Self::new(FailureCode::NotFound, format!("there is no tensor {id} here"))
    }
}

/// A part of a file to copy into a tensor.
struct Piece {
    file: File,
    from: u64,
    bytes: u64,
}

/// The memory that contains the tensors.
trait Memory {
    fn create(&mut self, id: Uuid, bytes: u64) -> Result<(), Refusal>;
    fn fill(&mut self, id: Uuid, offset: u64, piece: &Piece) -> Result<(), Refusal>;
    fn copy(&mut self, from: Uuid, id: Uuid, bytes: u64) -> Result<(), Refusal>;
    fn read(&mut self, id: Uuid, offset: u64, into: &mut [u8]) -> Result<(), Refusal>;
    fn export(&mut self, id: Uuid, event: bool) -> Result<ExportedTensor, Refusal>;
    fn free(&mut self, id: Uuid) -> Result<(), Refusal>;
}

/// Runs the hidden subcommand with the arguments after [`COMMAND`].
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match HolderArgs::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    // A core dump would contain callers' data.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    // Confinement must precede the start of further threads.
    let libraries: Vec<_> = args.emulator.iter().cloned().collect();
    if args.device.is_some() && args.emulator.is_none() {
        device_worker::confine_holder(&args.directory, &libraries);
    } else {
        device_worker::confine(&args.directory, &libraries);
    }
    let ended = run(&args);
    if args.device.is_some() {
        // If the server was killed, no other process removes the shared events.
        shared_events::remove(std::process::id());
    }
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("warpgauge holder: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &HolderArgs) -> Result<(), String> {
    let broken = |error: io::Error| format!("cannot set up the connection to the server: {error}");
    let socket = io::stdin().as_fd().try_clone_to_owned().map_err(broken)?;
    let mut stream = UnixStream::from(socket);
    let mut memory = match open(args) {
        Ok(memory) => memory,
        Err(refusal) => {
            let Refusal { code, message } = refusal;
            let told = FromHolder::Failed { code, message: message.clone() };
            frame::write(&mut stream, &told).map_err(|error| format!("{message}; {error}"))?;
            return Err(message);
        }
    };
    loop {
        let request = match frame::read::<ToHolder>(&mut stream) {
            Ok(request) => request,
            // The server is gone, and only the server can request these tensors.
            Err(FrameError::Closed) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let answer = answer(memory.as_mut(), request, &stream)
            .unwrap_or_else(|Refusal { code, message }| FromHolder::Failed { code, message });
        frame::write(&mut stream, &answer).map_err(|error| error.to_string())?;
    }
}

fn open(args: &HolderArgs) -> Result<Box<dyn Memory>, Refusal> {
    Ok(match args.device {
        Some(ordinal) => {
            Box::new(DeviceMemory::open(ordinal, args.emulator.clone(), &args.directory)?)
        }
        None => Box::new(HostMemory::new(&args.directory)),
    })
}

/// Answers a request. Also receives the file that follows a request to fill a tensor.
fn answer(
    memory: &mut dyn Memory,
    request: ToHolder,
    stream: &UnixStream,
) -> Result<FromHolder, Refusal> {
    Ok(match request {
        ToHolder::Hello { version: VERSION } => FromHolder::Ready { version: VERSION },
        ToHolder::Hello { version } => {
            let text =
                format!("the server uses version {version}, this holder uses version {VERSION}");
            return Err(Refusal::new(FailureCode::InternalError, text));
        }
        ToHolder::Create { id, bytes } => memory.create(id, bytes).map(|()| FromHolder::Done)?,
        ToHolder::Fill { id, offset, from, bytes } => {
            let [file] = handed::receive(stream, FILE)
                .map_err(|error| Refusal::new(FailureCode::InternalError, error.to_string()))?;
            memory.fill(id, offset, &Piece { file: file.into(), from, bytes })?;
            FromHolder::Done
        }
        ToHolder::Copy { from, id, bytes } => {
            memory.copy(from, id, bytes).map(|()| FromHolder::Done)?
        }
        ToHolder::Read { id, offset, bytes } => {
            let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
            if wanted > CHUNK_BYTES {
                let text = format!("{bytes} bytes were requested; the limit is {CHUNK_BYTES}");
                return Err(Refusal::new(FailureCode::TooLarge, text));
            }
            let mut data = vec![0; wanted];
            memory.read(id, offset, &mut data)?;
            FromHolder::Data(data)
        }
        ToHolder::Export { id, event } => FromHolder::Exported(memory.export(id, event)?),
        ToHolder::Free { id } => memory.free(id).map(|()| FromHolder::Done)?,
    })
}
