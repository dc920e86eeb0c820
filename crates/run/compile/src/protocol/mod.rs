//! Messages between the compile stage and its child process: one request, one reply.

pub(crate) mod triton;

use std::borrow::Cow;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::artifact::KernelInfo;
use warpgauge_code::source::whole;
use warpgauge_model::FailureCode;
use warpgauge_model::{Diagnostic, ImageFormat};
use warpgauge_sandbox::enforcement::Enforcement;

pub(crate) use triton::{TritonAnswer, TritonBuilt};

/// Version of these messages. Parent and child are the same program, unless it was upgraded in
/// place.
pub(crate) const PROTOCOL_VERSION: u32 = 8;

/// Maximum size of a frame, bytes. The largest content is machine code.
pub(crate) const MAX_FRAME_BYTES: usize = 64 << 20;

/// Maximum number of values in a message.
const MAX_VALUES: u64 = 1 << 20;

/// Maximum size of an object that is built for a Python process, bytes. It must fit in a frame.
pub(crate) const MAX_OBJECT_BYTES: u64 = 48 << 20;

/// Directory for the files of a source, within the job's directory. The compiler receives a
/// relative path of it, because images contain the paths of files. No path of a submitted file
/// contains `~`.
pub(crate) const FILES: &str = "files~";

/// Removes the directory [`FILES`] from the paths in a compiler's log.
pub(crate) fn without_directory(log: &str) -> String {
    log.replace(&format!("{FILES}/"), "")
}

/// Request to a compile child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildRequest {
    pub protocol: u32,
    /// Private directory of this compilation.
    pub job_dir: PathBuf,
    /// Limit of processor time, seconds.
    pub cpu_seconds: u64,
    pub work: Work,
}

/// The work that a compile child is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Compiles a source with NVRTC.
    Nvrtc(NvrtcWork),
    /// Compiles a source with nvcc.
    Nvcc(NvccWork),
    /// Prepares for a Triton kernel. A second frame contains the kernel as a [`TritonTask`].
    Triton(TritonWork),
    /// Runs compilers that build a file for a Python process to load.
    Build(BuildWork),
    /// Makes NVRTC unpack its bundled headers into the job directory.
    UnpackHeaders {
        library: PathBuf,
        /// Version of the library that the search for compilers found.
        version: (u32, u32),
    },
    /// Lists the machine code of an image as text.
    Disassemble(DisassembleWork),
    /// Opens a library and returns its version and architectures.
    Describe {
        library: PathBuf,
        /// Version of the library that the search for compilers found.
        version: (u32, u32),
    },
}

/// A source to compile with NVRTC.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NvrtcWork {
    /// Absolute path of the library.
    pub library: PathBuf,
    /// Version of the library that the search for compilers found. The child rejects a library with
    /// another version, because its results would be cached under a wrong key.
    pub version: (u32, u32),
    pub source: SourceText,
    /// Header directories, in search order.
    pub include_dirs: Vec<PathBuf>,
    /// All options except directories. Those of the caller have been checked.
    pub options: Vec<String>,
    /// C++ names to instantiate.
    pub name_expressions: Vec<String>,
    /// Paths of the structure fields whose layout is requested.
    pub fields: Vec<String>,
    /// Architecture: `sm_NN` for machine code, or `compute_NN` for PTX.
    pub arch: ArchOption,
    pub lineinfo: bool,
}

/// A source to compile with nvcc.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NvccWork {
    /// Absolute path of the compiler driver.
    pub nvcc: PathBuf,
    /// Root directory of the installation.
    pub root: PathBuf,
    pub source: SourceText,
    pub include_dirs: Vec<PathBuf>,
    /// All options except directories and files. Those of the caller have been checked.
    pub options: Vec<String>,
    /// C++ names to instantiate.
    pub name_expressions: Vec<String>,
    /// Paths of the structure fields whose layout is requested.
    pub fields: Vec<String>,
    pub arch: ArchOption,
    pub lineinfo: bool,
}

/// Request to start a Python interpreter and to import Triton, before the kernel is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TritonWork {
    /// Absolute path of the interpreter.
    pub python: PathBuf,
    /// Files and directories that the interpreter itself reads and executes.
    pub roots: Vec<PathBuf>,
    /// Directory that contains the package `triton`.
    pub site_packages: PathBuf,
    /// Architecture to compile for, 10 × major + minor.
    pub arch: u32,
    /// Whether to produce machine code instead of PTX.
    pub machine_code: bool,
}

/// A Triton kernel to compile.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TritonTask {
    /// Request to the interpreter, as JSON.
    pub question: String,
}

/// Commands that build one file from several.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuildWork {
    /// Paths that the commands read, in addition to system files.
    pub read: Vec<PathBuf>,
    /// Paths that the commands also execute.
    pub execute: Vec<PathBuf>,
    /// Files to write into the job's directory before the commands run: path and content.
    pub files: Vec<(String, String)>,
    /// Stages of commands. Stages run in sequence, and the steps of a stage concurrently.
    pub stages: Vec<Vec<BuildStep>>,
    /// Name of the file that the commands create.
    pub output: String,
}

/// One command of a build.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuildStep {
    /// Name of the step, and of its log file in the job's directory.
    pub name: String,
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Alternative arguments, tried in order until one succeeds.
    pub ways: Vec<BuildWay>,
}

/// Arguments of a command, one of several alternatives.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuildWay {
    /// Name that the result reports if these arguments succeeded. It is empty if the result reports
    /// none.
    pub name: String,
    pub arguments: Vec<String>,
}

/// An image whose machine code is to be listed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DisassembleWork {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments that precede the image's name.
    pub arguments: Vec<String>,
    /// Directories with programs that the program starts.
    pub search: Vec<PathBuf>,
    #[serde(with = "warpgauge_model::byte_string")]
    pub image: Vec<u8>,
    /// Maximum length of the listing, bytes.
    pub max_bytes: u64,
}

/// A source text, with facts that its prelude depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceText {
    /// The submitted text. It includes files by their paths.
    pub text: String,
    /// Path and content of each file.
    pub files: Vec<(String, String)>,
    /// Whether toolkit headers are available. If so, the prelude may include headers that the
    /// source needs but does not include.
    pub toolkit_headers: bool,
}

impl SourceText {
    /// Returns the text and all files concatenated, for searches.
    pub(crate) fn whole(&self) -> Cow<'_, str> {
        whole(&self.text, &self.files)
    }
}

/// Architecture and kind of the compiler's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchOption {
    /// Number of the architecture, 10 × major + minor.
    pub number: u32,
    /// Suffix of the architecture: `a` for code that runs only on this architecture, `f` for its
    /// family.
    pub suffix: Option<char>,
    /// Whether to produce machine code instead of PTX.
    pub machine_code: bool,
}

impl ArchOption {
    /// Returns the value of the compiler option `-arch`.
    pub(crate) fn value(self) -> String {
        let kind = if self.machine_code { "sm" } else { "compute" };
        let suffix = self.suffix.map(String::from).unwrap_or_default();
        format!("{kind}_{}{suffix}", self.number)
    }
}

/// A compile child's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildReply {
    /// Sandbox rules that were enforced.
    pub sandbox: Option<Enforcement>,
    pub result: Outcome,
}

/// Outcome of a compile child's work.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Built(Box<Built>),
    /// A file that was built.
    Object(Box<BuiltObject>),
    /// The interpreter's answer about a kernel. It is not trusted, since the interpreter ran
    /// submitted code.
    Triton(Box<TritonAnswer>),
    /// The source or an option caused the failure.
    Rejected {
        code: FailureCode,
        log: String,
        diagnostics: Vec<Diagnostic>,
    },
    /// The library does not support the architecture; `supported` lists those that it supports.
    UnsupportedArch {
        supported: Vec<u32>,
    },
    /// A listing. `complete` is false if it exceeded the limit.
    Listing {
        text: String,
        complete: bool,
    },
    /// The headers are in the job directory.
    HeadersUnpacked,
    /// Description of a library, as [`Work::Describe`] requests it.
    Description {
        version: (u32, u32),
        archs: Vec<u32>,
    },
    /// A compiler of the toolchain does not work.
    Toolchain {
        what: String,
    },
    /// The work failed for any other reason.
    Failed {
        what: String,
    },
}

/// A compiled image.
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

impl Built {
    /// Inserts notes before the other diagnostics.
    pub(crate) fn begin_with(&mut self, notes: Vec<Diagnostic>) {
        self.diagnostics.splice(0..0, notes);
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BuiltObject {
    #[serde(with = "warpgauge_model::byte_string")]
    pub object: Vec<u8>,
    /// Names of the alternatives that succeeded, if they have names.
    pub ways: Vec<String>,
    pub log: String,
    pub compiler_ms: f64,
}

/// Reason why a message cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// The message exceeds [`MAX_FRAME_BYTES`].
    #[error("it has {bytes} bytes; at most {MAX_FRAME_BYTES} are accepted")]
    TooLong {
        /// Size of the message, bytes.
        bytes: usize,
    },
    /// The message cannot be serialised.
    #[error(transparent)]
    Encode(#[from] rmp_serde::encode::Error),
}

/// Serialises a message as a frame.
pub(crate) fn frame<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let body = rmp_serde::to_vec_named(message)?;
    if body.len() > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong { bytes: body.len() });
    }
    let mut frame = Vec::with_capacity(body.len() + 4);
    // The limit above ensures that the length fits in 32 bits.
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

/// Reads one frame and deserialises its message.
pub(crate) fn read_frame<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix)?;
    let length = checked_length(prefix)?;
    let mut body = Vec::new();
    // The vector grows as data arrives, so a length prefix reserves nothing.
    from.take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    decode(&body)
}

/// Writes a message as one frame.
pub(crate) async fn send_frame<T: Serialize>(
    mut to: impl AsyncWrite + Unpin,
    message: &T,
) -> io::Result<()> {
    to.write_all(&frame(message).map_err(io::Error::other)?).await
}

/// Reads one frame and deserialises its message, asynchronously.
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
