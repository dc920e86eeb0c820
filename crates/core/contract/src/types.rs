//! Wire types of a request: the kernel, its arguments, its launch and its expected outputs. The
//! main type is [`EvaluateRequest`].
//!
//! The field names and defaults of `kernel`, `io` and `metadata` are those of the CUDA Evaluation Server's contract,
//! which is accepted unchanged. The other fields are extensions. Unknown fields are errors, except those that
//! `compatible` removes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compare_as::CompareAs;
use super::compatible::RequestWarning;
use super::content::TensorSpec;
use super::keep::KeepOutput;
use super::kernel_type::{KernelFamily, KernelType};
use super::launches::{self, LaunchStep};
use super::library::LibraryFunction;
use super::named::{MatrixPart, MatrixUsed};
use super::settings::{Isolation, MeasureSpec, ProfileSpec, ReturnOutputs, Sanitize, Tolerance};
use super::shared::TensorUsed;
use super::surface::SurfaceSpec;
use super::texture::TextureSpec;
use warpgauge_model::{Library, Requirements, Work};
use warpgauge_tensor::{Blob, OutputEncoding, TensorData};

/// Request of `POST /evaluate` and `warpgauge eval`: a kernel, its arguments, and the expectations of its outputs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateRequest {
    /// Kernel to evaluate, with its arguments and launch.
    pub kernel: KernelCode,
    /// Number of timed launches, 1–10000. Default: the number that the preset's precision requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_trials: Option<u32>,
    /// Time limit of the kernel from the start of its execution, seconds, 0.1–600. The same limit, but at least 10 s
    /// and at most the server's limit, applies to a compilation. The time in the queue does not count.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 0.1, max = 600))]
    pub timeout: f64,
    /// Expectations of outputs, by argument name. Without expectations, the verdict of a correct
    /// run is `not_checked`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expected: BTreeMap<String, Expected>,
    /// Tolerance of the comparison with expectations. By default it is derived from the rounding
    /// errors of the expectation; it is 0 for integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// Rules for outputs that have more than one correct content, by argument name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compare_as: BTreeMap<String, CompareAs>,
    /// Whether a kernel may get the verdict `correct` although a useless kernel would pass, too. Otherwise the
    /// verdict is `weak`.
    #[serde(default)]
    pub allow_weak: bool,
    /// Minimum work that the kernel must do, for the roofline and the speed-of-light floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Settings of the measurement.
    #[serde(default)]
    pub measure: MeasureSpec,
    /// Device metrics to collect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileSpec>,
    /// Memory and race checks to run: `false`, `true` or `all`, or the name of one compute-sanitizer tool. On a GPU
    /// each check is a separate run under compute-sanitizer.
    #[serde(default)]
    pub sanitize: Sanitize,
    /// Outputs that the report contains: `none`, `all`, or a list of names.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub return_outputs: ReturnOutputs,
    /// Encoding of returned outputs.
    #[serde(default)]
    pub output_encoding: OutputEncoding,
    /// Outputs, by name, that become shared tensors of the caller (`GET /tensors`) if the kernel has run and was not
    /// found wrong. `kept_outputs` of the report contains their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep_outputs: BTreeMap<String, KeepOutput>,
    /// Processes that run and judge the kernel. `warm` (default): a running worker; `fresh`: a new process; `sealed`:
    /// a process that contains only the kernel, judged by another process.
    #[serde(default)]
    pub isolation: Isolation,
    /// Requirements for the device and the installed tools.
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    pub requires: Requirements,
    /// Matrices whose content the request contains. The caller's program lists those that it read from files; the
    /// server adds the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub matrices: Vec<MatrixUsed>,
    /// Shared tensors whose content the request contains. The server adds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub tensors: Vec<TensorUsed>,
    /// Ignored fields of the request, and missing fields that were filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub warnings: Vec<RequestWarning>,
}

fn default_timeout() -> f64 {
    120.0
}

/// Kernel: its code, arguments and launch.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelCode {
    /// Source text. Absent for `cubin`, `fatbin` and `library`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_code: Option<String>,
    /// Further text files by relative path, e.g. `include/tile.cuh` or `ops/common.py`. A `cuda` or `program` source
    /// includes them; a `triton` source imports them. At most 256 files, and 4 MiB with the source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Path of `source_code` among `files`, e.g. `src/kernel.cu`. Required if the source includes or imports files
    /// relative to its own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// Machine code in base64, for `cubin` and `fatbin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_b64: Option<Blob>,
    /// Type of the code.
    pub kernel_type: KernelType,
    /// Arguments and launch configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoContract>,
    /// Steps of a kernel of several launches, in place of `io.launch` and of host code. The steps are timed as a
    /// whole, and each step also separately.
    #[serde(default, deserialize_with = "launches::steps", skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchStep>,
    /// Untimed steps before `launches`. They fill tensors of `role: scratch`, and depend only on shapes and scalars.
    #[serde(default, deserialize_with = "launches::steps", skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<LaunchStep>,
    /// Entry point and compiler settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<KernelMetadata>,
}

impl KernelCode {
    /// Returns the family of its type.
    pub fn family(&self) -> KernelFamily {
        self.kernel_type.family()
    }

    /// Returns the name of the kernel to run. If there are several, returns the first.
    pub fn entry_name(&self) -> Option<&str> {
        let launched = self.launches.iter().find_map(LaunchStep::first_kernel);
        launched.or_else(|| self.metadata.as_ref().and_then(KernelMetadata::name))
    }

    /// Returns the names of the kernels that `setup` and `launches` launch, each once.
    pub fn launched_kernels(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.setup.iter().chain(&self.launches).for_each(|step| step.add_kernels(&mut names));
        names
    }

    /// Returns whether the request asks for gradients.
    pub fn wants_backward(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.backward)
    }

    /// Returns the arguments of a program's command line.
    pub fn arguments(&self) -> &[String] {
        self.metadata.as_ref().map_or(&[], |metadata| &metadata.arguments)
    }
}

/// Arguments in the order of the kernel's parameters, and the launch configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "GivenIo")]
#[schemars(!from, deny_unknown_fields)]
pub struct IoContract {
    /// Arguments in the order of the parameters. A kernel in `expected` may leave them out; it then takes the
    /// candidate's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<ArgSpec>,
    /// Launch configuration, required for a kernel that runs. By default, a kernel in `expected` has the candidate's
    /// launch, and a candidate of a comparison has the reference's. This applies if both or neither are Triton
    /// kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
}

/// Serialised form of [`IoContract`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenIo {
    #[serde(default)]
    args: Vec<ArgSpec>,
    #[serde(default)]
    launch: Option<Launch>,
}

impl From<GivenIo> for IoContract {
    fn from(GivenIo { args, launch }: GivenIo) -> Self {
        let mut io = Self { args, launch };
        io.settle_shapes();
        io
    }
}

/// Argument of a kernel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgSpec {
    /// Name, unique in the contract. Expressions and `expected` refer to it.
    pub name: String,
    /// Kind of the argument.
    #[serde(rename = "type")]
    pub kind: ArgKind,
    /// Value of a scalar. A floating-point value may also be one of the strings `inf`, `-inf` and `nan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Integers come before other numbers, because generated clients take the first type that fits,
    // and would send 1.0 for 1.
    #[schemars(extend(
        "nullable" = true,
        "anyOf" = [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"type": "string"}],
    ))]
    pub value: Option<serde_json::Value>,
    /// Property of a sparse matrix, e.g. `num_rows`, in place of `value`. Only for arguments of
    /// type `int`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_of: Option<MatrixPart>,
    /// Shape, element type and content of a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_spec: Option<TensorSpec>,
    /// Values of a structure's fields, by name. A value is a number, an expression, or the name of an argument: a
    /// pointer to a tensor, or the value of a scalar. It may also be null (a null pointer), an array, or the fields
    /// of a nested structure.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// Entries of an array of pointers in device memory, 1–65536. An entry is the name of a tensor, an element of a
    /// tensor such as `a + 64`, null (a null pointer), or `{"tensor": "a", "step": "m*k", "count": 8}` for pointers
    /// to every `step`-th element of a tensor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<serde_json::Value>,
    /// Tensor that a texture object reads, with its layout and the addressing and filter modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texture: Option<TextureSpec>,
    /// Tensor that a surface object reads and writes, with its layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceSpec>,
    /// Name of the `__constant__` or `__device__` variable that holds the tensor, e.g. `ns::filter`, in place of a
    /// parameter. Only for `cuda`, `ptx` and `cubin`. The variable is filled before each launch, and read after it if
    /// the tensor is an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Direction: whether the kernel reads the argument, writes it, or both.
    #[serde(default)]
    pub role: Role,
    /// Whether the argument is a compile-time constant of a Triton kernel, passed by name, and not a run-time
    /// argument.
    #[serde(default)]
    pub is_meta: bool,
    /// Settings of a tensor descriptor. If they are given, a Triton kernel gets the tensor as a descriptor, and not
    /// as a pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<TensorDescriptor>,
    /// C type of the parameter, e.g. `float` or `int64_t`, for machine code without this information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c_type: Option<String>,
}

/// Settings of a tensor descriptor, as Triton's host code would create it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorDescriptor {
    /// Shape of the block that one access moves, with one extent for each dimension of the tensor.
    pub block_shape: Vec<u32>,
    /// Value of a load beyond the tensor's extents.
    #[serde(default)]
    pub padding: Padding,
}

/// Value of a load beyond the extents of a tensor that is read through a descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Padding {
    /// Loads beyond the tensor's extents return 0.
    #[default]
    Zero,
    /// NaN, which only floating-point element types support.
    Nan,
}

/// Kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgKind {
    /// Device buffer, passed as a pointer.
    Tensor,
    /// Integer scalar.
    Int,
    /// Floating-point scalar.
    Float,
    /// Boolean scalar.
    Bool,
    /// String. Only for torch kernels, and for compile-time constants of Triton kernels.
    Str,
    /// No value: a null pointer of a CUDA kernel, and `None` of a Triton or torch kernel.
    None,
    /// Structure of a CUDA kernel, passed by value.
    Struct,
    /// Array of pointers to tensors, in device memory, passed as a pointer to its first entry.
    Pointers,
    /// Texture object over a tensor.
    Texture,
    /// Surface object over a tensor.
    Surface,
}

impl ArgKind {
    /// Returns whether the argument is a texture or a surface object.
    pub fn is_object(self) -> bool {
        matches!(self, Self::Texture | Self::Surface)
    }
}

/// Direction of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The kernel reads the argument.
    #[default]
    Input,
    /// The kernel writes the argument. Its content before a launch is undefined.
    Output,
    /// The kernel reads and writes the argument.
    Inout,
    /// Working memory of the kernel. Its content before a launch is undefined, and its content after a launch is not
    /// verified.
    Scratch,
}

/// Launch configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Number of blocks in the grid. Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Dim3>,
    /// Number of threads in a block. Required, except for Triton, whose blocks have 32 ×
    /// `num_warps` threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Dim3>,
    /// Dynamic shared memory per block, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory_bytes: Option<Extent>,
    /// Number of blocks in a thread block cluster (compute capability 9.0 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Dim3>,
    /// Whether the launch is cooperative: the whole grid is resident and can synchronise.
    #[serde(default)]
    pub cooperative: bool,
    /// Number of warps per block (Triton).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_warps: Option<u32>,
    /// Number of pipeline stages (Triton).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_stages: Option<u32>,
    /// Number of blocks in a cluster over which one Triton program is spread (compute capability 9.0 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_ctas: Option<u32>,
    /// Maximum number of registers per thread (Triton).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxnreg: Option<u32>,
}

/// Extents in x, y and z. At least one is required; the default of the others is 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "GivenExtents")]
#[schemars(!try_from, default, deny_unknown_fields)]
pub struct Dim3 {
    /// Extent in x.
    pub x: Extent,
    /// Extent in y.
    pub y: Extent,
    /// Extent in z.
    pub z: Extent,
}

/// Serialised form of [`Dim3`]. `{}` is an error, and not equivalent to 1×1×1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenExtents {
    #[serde(default, deserialize_with = "given")]
    x: Option<Extent>,
    #[serde(default, deserialize_with = "given")]
    y: Option<Extent>,
    #[serde(default, deserialize_with = "given")]
    z: Option<Extent>,
}

/// Deserialises an extent that must not be null.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Extent>, D::Error> {
    Extent::deserialize(deserializer).map(Some)
}

impl TryFrom<GivenExtents> for Dim3 {
    type Error = &'static str;

    fn try_from(given: GivenExtents) -> Result<Self, Self::Error> {
        if given.x.is_none() && given.y.is_none() && given.z.is_none() {
            return Err(
                "contains no extent; give at least one of x, y and z, for instance {\"x\": 256}",
            );
        }
        let or_one = |extent: Option<Extent>| extent.unwrap_or_default();
        Ok(Self { x: or_one(given.x), y: or_one(given.y), z: or_one(given.z) })
    }
}

/// Number, or an expression over scalar arguments and shapes, e.g. `ceil_div(n, 256)`.
#[derive(Debug, Clone, PartialEq)]
pub enum Extent {
    /// A number.
    Value(u64),
    /// An expression, which is evaluated when the contract is resolved.
    Expression(String),
}

impl Default for Extent {
    fn default() -> Self {
        Extent::Value(1)
    }
}

/// Entry point and compiler settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelMetadata {
    /// Name of the kernel to run, as in the source or in the symbol table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Options for the compiler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiler_options: Vec<String>,
    /// Compiler of CUDA C++: `nvrtc` (default) or `nvcc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// C++ template instances to compile, e.g. `scale<float>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name_expressions: Vec<String>,
    /// Index of the configuration of `@triton.autotune` to compile, from 0. Default: the best configuration is
    /// chosen. Only for Triton.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<u32>,
    /// Accepted for compatibility, without effect. C++ features are always on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitify: Option<bool>,
    /// Library that is called. Only for kernels of type `library`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// Function of the library: `spmv` of `cusparse` or `gemm` of `cublas`. Only for kernels of type `library`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<LibraryFunction>,
    /// Function to call. Only for Python kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_name: Option<String>,
    /// Class to instantiate. Only for Python kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// Method to call. Only for Python kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method_name: Option<String>,
    /// Function to call, a synonym of `function_name`. Only for Python kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_point: Option<String>,
    /// Whether each call is forward and backward. Gradients are then compared and timed, too. Only for torch kernels.
    /// In a comparison it applies to all kernels if any of them has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// Command-line arguments after the program's name. Only for programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Standard input; empty by default. Only for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Free text, stored with the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl KernelMetadata {
    /// Returns the name of the kernel to run. A blank name counts as absent.
    pub fn name(&self) -> Option<&str> {
        self.kernel_name.as_deref().filter(|name| !name.trim().is_empty())
    }
}

/// Compiler of CUDA C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// NVRTC, the run-time compilation library.
    #[default]
    Nvrtc,
    /// nvcc, the offline compiler driver, if it is installed.
    Nvcc,
}

/// Expectation of an output: exactly one of `data`, `kernel` and `matrix`. For a program, the expectation of `stdout`
/// has `text`, `contains` or both, and that of `exit_code` has `code`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Expected elements, as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<TensorData>,
    /// Reference kernel that computes the expected elements. By default it takes the candidate's arguments. Its `io`
    /// may have other scalars, scratch memory, constants, and another launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Box<KernelCode>>,
    /// Tolerance of each element, as `float64` elements of the output's shape. It is for results whose rounding
    /// errors differ and are known, such as sums of different lengths. Only together with `data`. The bound is added
    /// to `tolerance`, whose `atol` and `rtol` are then 0 unless they are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<TensorData>,
    /// Name of a sparse matrix. The expectation is its product with the vector `times`, which the CPU computes in
    /// binary64 with a bound for each row's rounding error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// Name of the argument that is the vector. Required together with `matrix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<String>,
    /// Complete text that a program must print. White space at the ends of lines and of the text is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Text that must occur in the output of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Exit code of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 255))]
    pub code: Option<u8>,
}
