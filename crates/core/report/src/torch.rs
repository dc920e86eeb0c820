//! Wire types of the details about a Python kernel beside its verdict. The main type is
//! [`TorchReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_tensor::{Dtype, TensorInit};

/// How a torch kernel was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchReport {
    /// Version of PyTorch.
    pub torch: String,
    /// Version of Python.
    pub python: String,
    /// Where it computed, and by which clock it was timed. Times of different clocks are never compared,
    /// and times of the CPU rank nothing.
    pub clock: TorchClock,
    /// Why not on a GPU, if the machine has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_on_gpu: Option<String>,
    /// Whether the CPU stood in for a GPU, since the source names `cuda` and ran without one: `.cuda()` and
    /// `device="cuda"` left tensors on the CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stand_in: bool,
    /// The GPU that it computed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What its clocks say, where it computed on a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<TorchClocks>,
    /// Threads that it computed with.
    pub threads: u32,
    /// What was called, e.g. `Model.forward`. Absent where nothing was found to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Seed of PyTorch's generator when the object was made, on both sides of a comparison.
    pub seed: u64,
    /// Whether each call was forward and backward: gradients of inputs and parameters are among the outputs, as
    /// `grad.NAME` and `grad.parameters.NAME`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// Where its arguments came from. Absent where it got none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<TorchInputs>,
    /// Parameters and buffers of its module, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<TorchParameters>,
    /// What was compiled for its process while it ran (`load_inline`, kernels of Triton's), in order; the
    /// first 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<TorchExtension>,
    /// The submission's part of the traceback, where it raised an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// For the reference of a comparison: the job that evaluated it, in the ten minutes before and on the same device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
}

/// Something that was compiled for a torch kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchExtension {
    /// Name of the module, where it has one.
    pub name: String,
    /// `extension`: a module from C++ and CUDA C++; `c`: a module from C, as Triton starts kernels with;
    /// `ptxas`: machine code of a kernel of Triton's.
    pub kind: String,
    /// How long it took, looking for it in the cache included.
    pub seconds: f64,
    /// Whether it was compiled; if not, the process got the reason.
    pub built: bool,
    /// Whether it had been compiled before.
    pub cached: bool,
    /// How its sources were compiled: `lean headers`, those of PyTorch's that a source uses, or `whole headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
}

/// The clock of a torch kernel's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TorchClock {
    /// It computed on the CPU. The clock is that of the process that judges it, round each call.
    Cpu,
    /// It computed on a GPU. The clock is that of CUDA events round each call, in the process that has the
    /// submission; that of the process which judges, round batches of calls, does not say more.
    #[serde(rename = "cuda_events")]
    Events,
    /// It computed on a GPU. The clock is that of the process that judges it, round batches of calls: it says
    /// more than the events do.
    #[serde(rename = "judge")]
    Judge,
}

/// What the clocks of a torch kernel on a GPU say, of one call, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchClocks {
    /// Median of CUDA events round each call. L2 is flushed before, and the host launches meanwhile.
    pub events_ms: f64,
    /// Median of the judge's clock over single calls. It runs from the moment when the call's inputs can be read,
    /// which are encrypted until then, to the moment when its results are settled by their hash; `overhead_ms` is
    /// deducted. L2 holds what of the inputs it has room for.
    pub judge_ms: f64,
    /// Such calls that follow one another.
    pub calls: u32,
    /// What decrypting the inputs and hashing the results of a call take, measured without a call.
    pub overhead_ms: f64,
    /// What is not known of `overhead_ms`.
    pub resolution_ms: f64,
    /// Whether the calls wait for the device themselves. The judge's clock has the host's part in it then; otherwise
    /// a call is queued as a whole before the clock runs.
    pub waits: bool,
    /// Whether the judge's clock says no more than the events do, but for a hundredth and `resolution_ms`. Otherwise
    /// the judge's counts: the calls wait for the device, what is deducted took longer beside the call, or the events
    /// are not what they seem.
    pub agree: bool,
}

/// The arguments of a torch kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchInputs {
    /// Who says what they are.
    pub source: TorchInputSource,
    /// The rule by which they were generated, where the request gives no inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Each of them, as in the first call.
    pub arguments: Vec<TorchArgument>,
}

/// Who says what the arguments of a torch kernel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TorchInputSource {
    /// The contract.
    Contract,
    /// `get_inputs()` of the kernel, or of the reference that it is compared with.
    GetInputs,
    /// Nobody: they were generated.
    Generated,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchArgument {
    /// Its name in the contract or in the signature, or its place.
    pub name: String,
    /// Element type of a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Shape of a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// What a generated tensor was filled with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<TensorInit>,
}

/// Parameters and buffers of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TorchParameters {
    /// How many there are.
    pub count: u32,
    /// Of those, how many hold the reference's values, since name, type and shape agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_over: Option<u32>,
    /// Names of the reference's that have no counterpart, the first of them: they have values by the same
    /// seed, if they are made in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_counterpart: Vec<String>,
    /// How the module was made, where there is a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<TorchMaking>,
}

/// How a module was made on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TorchMaking {
    /// With the GPU as PyTorch's default device.
    OnDevice,
    /// As its source has it, and moved to the GPU: its constructor raised an exception with the GPU as the default.
    AsWritten,
}
