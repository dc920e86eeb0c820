//! Wire types of details about the run of a Python kernel. The main type is [`TorchReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_tensor::{Dtype, TensorInit};

/// Run of a torch kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchReport {
    /// Version of PyTorch.
    pub torch: String,
    /// Version of Python.
    pub python: String,
    /// Clock of the times, which depends on where the kernel computed. Times of different clocks are never compared,
    /// and times of the CPU are not ranked.
    pub clock: TorchClock,
    /// Reason why the kernel did not compute on a GPU. Absent if it did, or if the machine has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_on_gpu: Option<String>,
    /// Whether the CPU replaced a GPU: the source names `cuda` and ran without a GPU, so `.cuda()` and
    /// `device="cuda"` left tensors on the CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stand_in: bool,
    /// GPU that the kernel computed on. Absent if it computed on the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Readings of the clocks. Absent if the kernel computed on the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<TorchClocks>,
    /// Number of CPU threads that the kernel computed with.
    pub threads: u32,
    /// Function that was called, e.g. `Model.forward`. Absent if the source contains no function to
    /// call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Seed of PyTorch's generator when the object was created. Both kernels of a comparison have
    /// the same seed.
    pub seed: u64,
    /// Whether each call was forward and backward. Gradients of inputs and parameters are then outputs, as
    /// `grad.NAME` and `grad.parameters.NAME`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// Origin of the arguments. Absent if the function has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<TorchInputs>,
    /// Parameters and buffers of the module. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<TorchParameters>,
    /// Code that was compiled for the kernel's process while it ran (`load_inline`, Triton kernels), in order. Only
    /// the first 64 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<TorchExtension>,
    /// Part of the traceback that refers to the submission. Absent unless the submission raised an
    /// exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// Job that evaluated the reference of a comparison earlier: within the last ten minutes, on
    /// the same device. Absent if the reference was evaluated in this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
}

/// Code that was compiled for a torch kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchExtension {
    /// Name of the module. Empty if it has none.
    pub name: String,
    /// Kind of code. `extension`: a module from C++ and CUDA C++; `c`: a C module with which Triton launches kernels;
    /// `ptxas`: machine code of a Triton kernel.
    pub kind: String,
    /// Time of the compilation, including the look-up in the cache, seconds.
    pub seconds: f64,
    /// Whether the code compiled. If not, the kernel's process received the compiler's errors.
    pub built: bool,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Headers that the sources were compiled with: `lean headers` (only the PyTorch headers that a source uses) or
    /// `whole headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
}

/// Clock of a torch kernel's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TorchClock {
    /// The kernel computed on the CPU. The clock of the judging process times each call.
    Cpu,
    /// The kernel computed on a GPU. CUDA events time each call, in the process that runs the submission. The clock
    /// of the judging process, over batches of calls, does not show longer times.
    #[serde(rename = "cuda_events")]
    Events,
    /// The kernel computed on a GPU. The clock of the judging process times batches of calls, because it shows longer
    /// times than the events do.
    #[serde(rename = "judge")]
    Judge,
}

/// Readings of the clocks of a torch kernel on a GPU, for one call, milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchClocks {
    /// Median time of a call by CUDA events. L2 is flushed before the call, and the host launches the call's kernels
    /// during the measured time.
    pub events_ms: f64,
    /// Median time of a single call by the judge's clock. Inputs are encrypted until the clock starts, and a hash
    /// fixes the results before it stops. `overhead_ms` is deducted. L2 may hold as much of the inputs as fits.
    pub judge_ms: f64,
    /// Number of calls that the judge's clock timed, one after the other.
    pub calls: u32,
    /// Time of decrypting the inputs and hashing the results of a call, measured without the call
    /// itself.
    pub overhead_ms: f64,
    /// Uncertainty of `overhead_ms`, milliseconds.
    pub resolution_ms: f64,
    /// Whether the calls themselves wait for the device. The judge's clock then includes the host's part; otherwise a
    /// call is queued as a whole before the clock starts.
    pub waits: bool,
    /// Whether the judge's clock shows no more than the events do, within 1 % and `resolution_ms`. Otherwise the
    /// judge's time counts. Possible reasons: the calls wait for the device, the overhead is longer next to a call,
    /// or the events are not genuine.
    pub agree: bool,
}

/// Arguments of a torch kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchInputs {
    /// Origin of the arguments.
    pub source: TorchInputSource,
    /// Rule by which the arguments were generated. Absent unless they were generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Arguments of the first call.
    pub arguments: Vec<TorchArgument>,
}

/// Origin of the arguments of a torch kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TorchInputSource {
    /// The contract gives the arguments.
    Contract,
    /// `get_inputs()` of the kernel, or of its reference, gives the arguments.
    GetInputs,
    /// The arguments were generated, because neither the contract nor the source gives them.
    Generated,
}

/// Argument of a torch kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchArgument {
    /// Name in the contract or in the signature, or position.
    pub name: String,
    /// Element type. Absent unless the argument is a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Shape. Absent unless the argument is a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Rule of a generated tensor's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<TensorInit>,
}

/// Parameters and buffers of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TorchParameters {
    /// Number of parameters and buffers.
    pub count: u32,
    /// Number of parameters and buffers that got the reference's values, because name, type and
    /// shape agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_over: Option<u32>,
    /// Names of the reference's parameters without a counterpart, up to a maximum number. A
    /// parameter with another name has the same values only if both modules create their parameters
    /// in the same order, from the same seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_counterpart: Vec<String>,
    /// Device on which the module was created. Absent if there is no GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<TorchMaking>,
}

/// Device on which a module was created, if there is a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TorchMaking {
    /// The module was created with the GPU as PyTorch's default device.
    OnDevice,
    /// The module was created on the device that the source specifies, and then moved to the GPU.
    /// Its constructor raised an exception with the GPU as the default device.
    AsWritten,
}
