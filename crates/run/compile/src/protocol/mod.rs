//! Messages between the compile stage and its child process: one request, one reply.

pub(crate) mod triton;

use std::io::{self, Read};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::artifact::KernelInfo;
use warpgauge_model::FailureCode;
use warpgauge_model::{Diagnostic, ImageFormat};
use warpgauge_sandbox::enforcement::Enforcement;

pub(crate) use triton::{TritonAnswer, TritonBuilt};

/// Version of these messages. Parent and child are the same program, unless it was upgraded in
/// place.
pub(crate) const PROTOCOL_VERSION: u32 = 6;

/// Largest frame, in bytes: machine code is the largest thing that travels.
pub(crate) const MAX_FRAME_BYTES: usize = 64 << 20;

/// Most values in a frame.
const MAX_VALUES: u64 = 1 << 20;

/// Largest object that is built for a Python process, bytes: it fits a frame.
pub(crate) const MAX_OBJECT_BYTES: u64 = 48 << 20;

/// What the child is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildRequest {
    pub protocol: u32,
    /// Private directory of this compilation.
    pub job_dir: PathBuf,
    /// Processor seconds it may take.
    pub cpu_seconds: u64,
    pub work: Work,
}

/// The work itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Compile with the run-time compilation library.
    Nvrtc(NvrtcWork),
    /// Compile with the offline compiler.
    Nvcc(NvccWork),
    /// Make ready for a kernel of Triton, which a [`TritonTask`] tells in a second frame.
    Triton(TritonWork),
    /// Run compilers for something that a Python process loads.
    Build(BuildWork),
    /// Have NVRTC unpack the headers it carries into the job directory.
    UnpackHeaders {
        /// The library.
        library: PathBuf,
        /// Its version as discovery found it.
        version: (u32, u32),
    },
    /// List the machine code of an image.
    Disassemble(DisassembleWork),
    /// Open the library and say what it is.
    Describe {
        /// The library.
        library: PathBuf,
        /// Its version as discovery found it.
        version: (u32, u32),
    },
}

/// A compilation with NVRTC.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NvrtcWork {
    /// The library, absolute.
    pub library: PathBuf,
    /// Its version as discovery found it: a different one is refused, it would poison the cache.
    pub version: (u32, u32),
    pub source: SourceText,
    /// Header directories, in search order.
    pub include_dirs: Vec<PathBuf>,
    /// Caller's options, already checked.
    pub options: Vec<String>,
    /// C++ names to instantiate.
    pub name_expressions: Vec<String>,
    /// `sm_NN` or `compute_NN`.
    pub arch: ArchOption,
    pub lineinfo: bool,
}

/// A compilation with nvcc.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NvccWork {
    /// The compiler driver, absolute.
    pub nvcc: PathBuf,
    /// Root of its installation.
    pub root: PathBuf,
    pub source: SourceText,
    pub include_dirs: Vec<PathBuf>,
    pub options: Vec<String>,
    /// C++ names to instantiate.
    pub name_expressions: Vec<String>,
    pub arch: ArchOption,
    pub lineinfo: bool,
}

/// An interpreter with Triton.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TritonWork {
    /// The interpreter, absolute.
    pub python: PathBuf,
    /// What it reads and executes itself.
    pub roots: Vec<PathBuf>,
    /// Where the package is.
    pub site_packages: PathBuf,
    /// Architecture to compile for, 10 × major + minor.
    pub arch: u32,
    /// Whether machine code is wanted, and not PTX.
    pub machine_code: bool,
}

/// A kernel of Triton.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TritonTask {
    /// What the interpreter is sent, as JSON.
    pub question: String,
}

/// Commands that make one file of several.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuildWork {
    /// What they read beside the system's own files.
    pub read: Vec<PathBuf>,
    /// What they read and execute beside them.
    pub execute: Vec<PathBuf>,
    /// Files of the job's directory, which come first.
    pub files: Vec<(String, String)>,
    /// What is run, one stage after the other, and the steps of each side by side.
    pub stages: Vec<Vec<BuildStep>>,
    /// The file that is wanted.
    pub output: String,
}

/// One command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuildStep {
    /// Its name in the job's directory, where it has a file of that name for its log.
    pub name: String,
    /// The program, absolute.
    pub program: PathBuf,
    /// Its arguments; those after the first are tried where those before do not succeed.
    pub ways: Vec<BuildWay>,
}

/// Arguments of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuildWay {
    /// What is told of it where it succeeded; empty: nothing.
    pub name: String,
    pub arguments: Vec<String>,
}

/// An image whose machine code is to be listed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DisassembleWork {
    /// The program, absolute.
    pub program: PathBuf,
    /// What stands before the image's name.
    pub arguments: Vec<String>,
    /// Directories with the programs that it starts.
    pub search: Vec<PathBuf>,
    /// The image.
    #[serde(with = "warpgauge_model::byte_string")]
    pub image: Vec<u8>,
    /// Most bytes of the listing that are wanted.
    pub max_bytes: u64,
}

/// The program text and what to put around it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SourceText {
    /// As submitted.
    pub text: String,
    /// Toolkit headers are within reach: the prelude may include those that the source implies.
    pub toolkit_headers: bool,
}

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchOption {
    /// 10 × major + minor.
    pub number: u32,
    /// `a`: for this architecture alone; `f`: for its family.
    pub suffix: Option<char>,
    /// Machine code; otherwise PTX.
    pub machine_code: bool,
}

impl ArchOption {
    /// Value of `-arch`.
    pub(crate) fn value(self) -> String {
        let kind = if self.machine_code { "sm" } else { "compute" };
        let suffix = self.suffix.map(String::from).unwrap_or_default();
        format!("{kind}_{}{suffix}", self.number)
    }
}

/// The child's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildReply {
    /// What the sandbox enforced.
    pub sandbox: Option<Enforcement>,
    pub result: Outcome,
}

/// How the work ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// An image.
    Built(Box<Built>),
    /// A file.
    Object(Box<BuiltObject>),
    /// What an interpreter said of a kernel: a stranger's word, since it ran a stranger's code.
    Triton(Box<TritonAnswer>),
    /// The source or an option is at fault.
    Rejected { code: FailureCode, log: String, diagnostics: Vec<Diagnostic> },
    /// The library does not know the architecture; those it knows.
    UnsupportedArch { supported: Vec<u32> },
    /// A listing; `complete` unless there was more than was wanted.
    Listing { text: String, complete: bool },
    /// Headers are in the job directory.
    HeadersUnpacked,
    /// Answer to `Describe`.
    Description { version: (u32, u32), archs: Vec<u32> },
    /// The toolchain does not work.
    Toolchain { what: String },
    /// Anything else.
    Failed { what: String },
}

/// What was built.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Built {
    #[serde(with = "warpgauge_model::byte_string")]
    pub image: Vec<u8>,
    pub format: ImageFormat,
    pub kernels: Vec<KernelInfo>,
    pub log: String,
    pub diagnostics: Vec<Diagnostic>,
    pub compiler_ms: f64,
}

/// A file that was built.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuiltObject {
    #[serde(with = "warpgauge_model::byte_string")]
    pub object: Vec<u8>,
    /// The ways that succeeded, as far as they have names.
    pub ways: Vec<String>,
    pub log: String,
    pub compiler_ms: f64,
}

/// A message that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// It is larger than what is taken.
    #[error("it has {bytes} bytes; at most {MAX_FRAME_BYTES} are taken")]
    TooLong {
        /// What it has.
        bytes: usize,
    },
    /// It cannot be written down.
    #[error(transparent)]
    Encode(#[from] rmp_serde::encode::Error),
}

/// A message as a frame.
pub(crate) fn frame<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let body = rmp_serde::to_vec_named(message)?;
    if body.len() > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong { bytes: body.len() });
    }
    let mut frame = Vec::with_capacity(body.len() + 4);
    // The bound above fits 32 bits.
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(&body);
    Ok(frame)
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    warpgauge_document::from_msgpack_within(MAX_VALUES, body)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn checked_length(prefix: [u8; 4]) -> io::Result<u64> {
    let length = u32::from_le_bytes(prefix);
    if length as usize > MAX_FRAME_BYTES {
        let what = format!("a frame of {length} bytes exceeds the bound of {MAX_FRAME_BYTES}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(u64::from(length))
}

/// Reads one frame.
pub(crate) fn read_frame<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix)?;
    let length = checked_length(prefix)?;
    let mut body = Vec::new();
    // Grows with what arrives, not with what the prefix promises.
    from.take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    decode(&body)
}

/// Writes one frame.
pub(crate) async fn send_frame<T: Serialize>(
    mut to: impl AsyncWrite + Unpin,
    message: &T,
) -> io::Result<()> {
    to.write_all(&frame(message).map_err(io::Error::other)?).await
}

/// Reads one frame.
pub(crate) async fn receive_frame<T: DeserializeOwned>(
    mut from: impl AsyncRead + Unpin,
) -> io::Result<T> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix).await?;
    let length = checked_length(prefix)?;
    let mut body = Vec::new();
    from.take(length).read_to_end(&mut body).await?;
    if (body.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    decode(&body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_survives_the_trip() {
        let bytes = frame(&("text", 7u32)).unwrap();
        let back: (String, u32) = read_frame(bytes.as_slice()).unwrap();
        assert_eq!(back, ("text".into(), 7));
    }

    #[test]
    fn a_cut_frame_is_an_error() {
        let bytes = frame(&"some text").unwrap();
        for cut in 0..bytes.len() {
            assert!(read_frame::<String>(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn an_oversized_frame_is_refused_before_it_is_read() {
        let prefix = u32::MAX.to_le_bytes();
        let error = read_frame::<String>(prefix.as_slice()).unwrap_err();
        assert!(error.to_string().contains("exceeds the bound"), "{error}");
    }
}
