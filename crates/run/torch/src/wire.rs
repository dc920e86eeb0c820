//! Messages between the judge and a runner: JSON frames, whose length the receiver bounds.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::layout::TensorAt;
use warpgauge_tensor::{Dtype, TensorInit};

/// Maximum size of a runner's frame, bytes. Frames do not contain tensor data.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// A Python value: tensors, numbers and strings in lists and dictionaries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeOf<T> {
    Tensor(T),
    /// A number, a string, or `None`.
    Value(Scalar),
    /// A list or a tuple.
    List(Vec<TreeOf<T>>),
    /// A dictionary, in the order of its entries.
    Dict(Vec<(String, TreeOf<T>)>),
    /// A structure of another kind: the kind, the name of its class if it has one, and its parts
    /// with their keys.
    Record(RecordKind, String, Vec<(Scalar, TreeOf<T>)>),
}

/// Kind of a structure, so that a runner can create it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// A tuple. Its keys are its indices.
    Tuple,
    NamedTuple,
    /// A dataclass instance.
    Dataclass,
    /// A dictionary whose keys are not all strings.
    Dict,
    /// A NumPy array. Its only part is a tensor of its elements.
    Numpy,
    /// A complex tensor. Its only part is a real tensor whose last dimension holds the real and
    /// imaginary parts.
    Complex,
}

/// A Python value whose tensors are in a runner's memory.
pub type Tree = TreeOf<TensorAt>;

/// A Python number, string, or `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `True` or `False`.
    Bool(bool),
    /// An integer that fits into a signed 64-bit number.
    Int(i64),
    /// An integer that fits only into an unsigned 64-bit number.
    Large(u64),
    /// A floating-point number as text, because JSON cannot represent infinities.
    Float {
        /// The number as text that Python writes and parses.
        float: String,
    },
    /// A type, function or class of PyTorch itself, which a constructor may receive.
    Object {
        /// Qualified name, such as `torch.float32`.
        object: String,
    },
    Text(String),
    None,
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(value) => value.fmt(f),
            Self::Large(value) => value.fmt(f),
            Self::Float { float: text } | Self::Object { object: text } => f.write_str(text),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::None => f.write_str("None"),
        }
    }
}

impl<T> TreeOf<T> {
    /// Returns the tensors and values in order, each with its path below `root`, such as
    /// `root[0].name`.
    pub fn leaves<'a>(&'a self, root: &str) -> Vec<(String, &'a TreeOf<T>)> {
        let mut found = Vec::new();
        self.collect(root.to_owned(), &mut found);
        found
    }

    fn collect<'a>(&'a self, place: String, found: &mut Vec<(String, &'a TreeOf<T>)>) {
        match self {
            Self::Tensor(_) | Self::Value(_) => found.push((place, self)),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.collect(format!("{place}[{index}]"), found);
                }
            }
            Self::Dict(items) => {
                for (key, item) in items {
                    item.collect(format!("{place}.{key}"), found);
                }
            }
            Self::Record(kind, _, items) => {
                for (index, (key, item)) in items.iter().enumerate() {
                    let part = match (kind, key) {
                        (RecordKind::Numpy | RecordKind::Complex, _) => String::new(),
                        (RecordKind::Dataclass | RecordKind::NamedTuple, Scalar::Text(name)) => {
                            format!(".{name}")
                        }
                        (RecordKind::Dict, key) => format!("[{key}]"),
                        _ => format!("[{index}]"),
                    };
                    item.collect(format!("{place}{part}"), found);
                }
            }
        }
    }

    /// Returns whether both trees have the same structure and equal tensors. Does not compare
    /// values.
    pub fn is_alike(&self, other: &Self) -> bool
    where
        T: PartialEq,
    {
        match (self, other) {
            (Self::Tensor(one), Self::Tensor(other)) => one == other,
            (Self::Value(_), Self::Value(_)) => true,
            (Self::List(ones), Self::List(others)) => {
                ones.len() == others.len() && ones.iter().zip(others).all(|(a, b)| a.is_alike(b))
            }
            (Self::Dict(ones), Self::Dict(others)) => {
                let alike = |((a, one), (b, other)): (&(String, Self), &(String, Self))| {
                    a == b && one.is_alike(other)
                };
                ones.len() == others.len() && ones.iter().zip(others).all(alike)
            }
            (Self::Record(kind, _, ones), Self::Record(of_other, _, others)) => {
                let alike = |((a, one), (b, other)): (&(Scalar, Self), &(Scalar, Self))| {
                    a == b && one.is_alike(other)
                };
                (kind, ones.len()) == (of_other, others.len()) && ones.iter().zip(others).all(alike)
            }
            _ => false,
        }
    }

    /// Returns a tree of the same structure with other tensors.
    pub fn map<U>(&self, with: &mut impl FnMut(&T) -> U) -> TreeOf<U> {
        match self {
            Self::Tensor(tensor) => TreeOf::Tensor(with(tensor)),
            Self::Value(value) => TreeOf::Value(value.clone()),
            Self::List(items) => TreeOf::List(items.iter().map(|item| item.map(with)).collect()),
            Self::Dict(items) => {
                let mapped = items.iter().map(|(key, item)| (key.clone(), item.map(with)));
                TreeOf::Dict(mapped.collect())
            }
            Self::Record(kind, name, items) => {
                let mapped = items.iter().map(|(key, item)| (key.clone(), item.map(with)));
                TreeOf::Record(*kind, name.clone(), mapped.collect())
            }
        }
    }
}

/// The function or class to call, as the contract names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPoint {
    /// Name of a function of the module.
    pub function: Option<String>,
    /// Name of a class of the module.
    pub class: Option<String>,
    /// Name of the class's method; `None` means `forward`.
    pub method: Option<String>,
}

/// A question of the judge to a runner.
#[derive(Debug, Serialize)]
pub(crate) struct Asked<'a> {
    /// A number that the submission cannot predict. The answer must repeat it.
    pub turn: u64,
    #[serde(flatten)]
    pub what: Question<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Question<'a> {
    Nothing,
    Load {
        source: &'a str,
        entry: &'a EntryPoint,
        /// Classes to choose from if the contract names none.
        preferred: &'a [String],
        /// Arguments to bind to parameters by name; empty if the source has separate arguments.
        given: &'a [super::session::GivenArgument],
        /// Arguments of the constructor that replace the module's own.
        init: Option<&'a TreeOf<()>>,
        seed: u64,
    },
    Parameters,
    Suggest,
    /// Requests the result of a call of a copy of the object. The tensors of the call have these
    /// layouts and are filled with zeros; otherwise, the submission's own arguments are used.
    Probe {
        arguments: Option<&'a TreeOf<super::session::TensorLayout>>,
        seed: u64,
    },
    /// Makes the following calls with a copy of the object, or with the object itself again.
    Aside {
        begin: bool,
        /// Whether to record the types of the tensors that the copy computes.
        watch: bool,
    },
    /// Requests the 16-bit floating-point types in which the watched copy computed.
    ShorterTypes,
    /// Computes gradients in each following call. The upstream gradients are passed after the
    /// arguments.
    Backward {
        upstream: &'a [GradientInput],
    },
    Allocate {
        arguments: &'a TreeOf<super::session::TensorLayout>,
    },
    MakeInputs {
        seed: u64,
    },
    Draw {
        seeds: &'a [u64],
    },
    Call {
        seed: u64,
    },
    Open {
        handle: &'a str,
        bytes: u64,
    },
    Prepare {
        arguments: &'a TreeOf<super::session::LentTensor>,
        /// Distance in bytes from the arguments of one call to those of the next.
        stride: u64,
        count: u32,
        seed: u64,
        /// Number of bytes that are written before each call to flush the cache; 0 means that the
        /// cache is not flushed.
        flush: u64,
        /// Gate and hash settings, if the arguments are encrypted.
        locked: &'a Option<super::locked::LockedOrder>,
    },
    /// Frees the device memory that is not in use, holds `padding` bytes until the next such
    /// question, and opens other memory of the judge.
    Relocate {
        padding: u64,
        handle: &'a str,
        bytes: u64,
    },
    /// Loads the kernels that hold calls back and hash results, and requests the address of their
    /// page.
    Gate {
        image: &'a str,
    },
    Run,
    /// Makes the prepared calls once more, and traces the device.
    Trace,
    /// Makes the prepared calls once more, while a tool profiles them.
    Count,
    Times,
}

/// A runner's answer to a question of the judge.
#[derive(Debug, Deserialize)]
pub(crate) struct Answered {
    pub turn: u64,
    #[serde(flatten)]
    pub answer: Answer,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Loaded(LoadedModule),
    Parameters(Vec<ModuleParameter>),
    Made(Tree),
    Drawn(Vec<Tree>),
    Suggested(SuggestedInputs),
    Done(Option<Tree>),
    ShorterTypes(Vec<Dtype>),
    Ran(Vec<Tree>),
    Times(Vec<f64>),
    Traced(DeviceTrace),
    Gate(u64),
    Refused(RunnerError),
}

/// A trace of a device during some calls, as the submission's process reports it; microseconds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct DeviceTrace {
    /// Names of kernels, copies and functions.
    pub names: Vec<String>,
    /// Activities of the device: index of the name, start, duration.
    pub device: Vec<(usize, f64, f64)>,
    /// Calls of CUDA functions: index of the name, count, total duration.
    pub calls: Vec<(usize, u64, f64)>,
    /// Number of entries that the trace leaves out.
    pub left: u64,
}

/// A submission that a runner has loaded.
#[derive(Debug, Clone, Deserialize)]
pub struct LoadedModule {
    /// Qualified name of the function to call, e.g. `Model.forward`.
    pub entry: String,
    /// Arguments of the constructor; `None` if they cannot be described.
    pub init: Option<TreeOf<()>>,
    /// Whether the module creates its inputs itself.
    pub has_inputs: bool,
    /// Whether the object was created with the device as PyTorch's default device. Otherwise the
    /// constructor ran without a default device.
    pub on_device: bool,
    /// Whether the CPU is used instead of a GPU that the source names.
    pub stands_in: bool,
    pub parameters: Vec<ModuleParameter>,
}

/// A parameter or a buffer of a PyTorch module.
#[derive(Debug, Clone, Deserialize)]
pub struct ModuleParameter {
    /// Name of the parameter or buffer in PyTorch.
    pub name: String,
    /// Whether it is a parameter. Otherwise it is a buffer, which a call may change.
    pub trained: bool,
    /// Location of the parameter or buffer in memory.
    pub tensor: TensorAt,
}

/// Gradient of an output, from which a backward pass starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GradientInput {
    /// Name or path of the output that the gradient belongs to.
    pub place: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
}

/// Inputs that the submission accepted in a trial.
#[derive(Debug, Clone, Deserialize)]
pub struct SuggestedInputs {
    /// The inputs, in the order of the parameters.
    pub arguments: Vec<SuggestedInput>,
    /// Description of how the inputs were found.
    pub rule: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum SuggestedInput {
    Tensor {
        /// Name of the parameter.
        name: String,
        dtype: Dtype,
        shape: Vec<u64>,
        /// Content of the tensor, without the seed.
        init: Box<TensorInit>,
    },
    Value {
        /// Name of the parameter.
        name: String,
        value: Scalar,
    },
}

/// An error that a runner reports.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RunnerError {
    /// Stable code for programs.
    pub code: String,
    pub message: String,
    /// Line of the submission at which the error occurred, if known.
    pub line: Option<u32>,
    /// The submission's part of the traceback.
    pub log: String,
}

/// Versions of the software that the zygote has imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of PyTorch.
    pub torch: String,
    /// Version of Python.
    pub python: String,
    /// Version of CUDA that PyTorch is built for; `None` if PyTorch is built without CUDA.
    #[serde(default)]
    pub cuda: Option<String>,
    /// Compiler settings for extensions of this PyTorch.
    #[serde(default)]
    pub building: ExtensionSettings,
}

/// Compiler settings for extensions of an installed PyTorch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionSettings {
    /// Directory that contains `Python.h`.
    pub include: std::path::PathBuf,
    /// The C++ standard, e.g. `c++17`.
    pub standard: String,
    /// Macros that select the binary interface.
    pub defines: Vec<String>,
}

/// Reason why a submission gave no valid answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerFault {
    /// The runner reports an error.
    Refused(RunnerError),
    /// The runner did not answer in time.
    TimedOut,
    /// The process ended; the text describes how.
    Died(String),
    /// The process ended, and so did its parent, which would have reported its exit status.
    DiedWithParent,
    /// A thread of the process did not stop.
    Running(String),
    /// A thread ran after all had stopped, or the system is so busy that it seems so.
    Woken(String),
    /// The system does not show whether the process is stopped.
    NotObserved(String),
    /// The answer does not match the question.
    Forged(String),
}

impl RunnerFault {
    /// Returns the fault of a runner that answered correctly but whose tensors cannot be judged.
    pub fn unusable(message: String) -> Self {
        let code = "unusable_output".to_owned();
        Self::Refused(RunnerError { code, message, line: None, log: String::new() })
    }
}

/// Sends a frame. Fails if the deadline passes first.
pub(crate) fn send(
    stream: &UnixStream,
    message: &impl Serialize,
    deadline: Instant,
) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    send_all(stream, &frame, deadline)
}

/// Sends bytes. Fails if the deadline passes first.
pub(crate) fn send_all(stream: &UnixStream, bytes: &[u8], deadline: Instant) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        let written = (&*stream).write(rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

/// Receives the bytes of a frame. Fails if the deadline passes first.
pub(crate) fn receive(stream: &UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    fill(stream, &mut prefix, 4, deadline)?;
    let length = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize;
    if length > MAX_FRAME_BYTES {
        let what = format!("the frame has {length} bytes; the limit is {MAX_FRAME_BYTES}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut body = Vec::new();
    fill(stream, &mut body, length, deadline)?;
    Ok(body)
}

/// Reads until `into` has `count` bytes. Memory grows with the bytes that arrive.
pub(crate) fn fill(
    stream: &UnixStream,
    into: &mut Vec<u8>,
    count: usize,
    deadline: Instant,
) -> io::Result<()> {
    use std::io::Read as _;
    let mut part = [0; 16 << 10];
    while into.len() < count {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let wanted = part.len().min(count - into.len());
        let mut from: &UnixStream = stream;
        match from.read(&mut part[..wanted]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => into.extend_from_slice(&part[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the time until the deadline, or an error if it has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn values_have_places() {
        let tree: TreeOf<u8> = serde_json::from_str(
            r#"{"list": [{"tensor": 7}, {"dict": [["a", {"value": null}], ["b", {"list": []}]]},
                {"value": {"float": "inf"}}]}"#,
        )
        .unwrap();
        let places: Vec<_> = tree.leaves("out").into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, ["out[0]", "out[1].a", "out[2]"]);
        assert_eq!(tree.map(&mut |n| n + 1).leaves("")[0].1, &TreeOf::Tensor(8));
        let scalars: Vec<Scalar> =
            serde_json::from_str(r#"[true, -1, 18446744073709551615, "t", null]"#).unwrap();
        assert_eq!(scalars[2], Scalar::Large(u64::MAX));
        assert_eq!(scalars[4], Scalar::None);
    }

    #[test]
    fn structures_have_kinds_and_places() {
        let tree: TreeOf<u8> = serde_json::from_str(
            r#"{"record": ["dict", "", [
                [0, {"record": ["numpy", "", [[0, {"tensor": 7}]]]}],
                ["b", {"record": ["namedtuple", "Pair", [["x", {"tensor": 8}]]]}],
                [null, {"record": ["tuple", "", [[0, {"value": 1}], [1, {"value": 2}]]]}],
                [{"float": "0.5"}, {"record": ["dataclass", "Batch", [["rows", {"tensor": 9}]]]}]]]}"#,
        )
        .unwrap();
        let places: Vec<_> = tree.leaves("in").into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, ["in[0]", "in['b'].x", "in[None][0]", "in[None][1]", "in[0.5].rows"]);
        assert!(tree.is_alike(&tree) && !tree.is_alike(&tree.map(&mut |n| n + 1)));
        let tuple = |kind| TreeOf::<u8>::Record(kind, String::new(), Vec::new());
        assert!(!tuple(RecordKind::Tuple).is_alike(&tuple(RecordKind::Dict)));
        assert_eq!(serde_json::from_value::<TreeOf<u8>>(serde_json::json!(tree)).unwrap(), tree);
    }

    #[test]
    fn frames_are_bounded_and_in_time() {
        let (near, far) = UnixStream::pair().unwrap();
        let soon = || Instant::now() + LONG;
        send(&near, &"hello", soon()).unwrap();
        assert_eq!(receive(&far, soon()).unwrap(), b"\"hello\"");
        (&near).write_all(&(1u32 << 30).to_le_bytes()).unwrap();
        let error = receive(&far, soon()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(receive(&far, Instant::now()).unwrap_err().kind(), io::ErrorKind::TimedOut);
        (&near).write_all(&[9, 0, 0, 0, 1]).unwrap();
        drop(near);
        assert_eq!(receive(&far, soon()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
