//! Wire types of a request: the kernel, its arguments, its launch and its expected outputs. The
//! main type is [`EvaluateRequest`].
//!
//! The field names and defaults of `kernel`, `io` and `metadata` are those of the CUDA Evaluation
//! Server's contract, which is accepted unchanged; the rest is ours. Unknown fields are errors, except those that
//! `compatible` leaves out.

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

/// What `POST /evaluate` and `warpgauge eval` take.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateRequest {
    /// The kernel to evaluate and its IO contract.
    pub kernel: KernelCode,
    /// Timed launches: exactly this many, 1–10000. Without it, as many as the preset's precision
    /// needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_trials: Option<u32>,
    /// Seconds the kernel may take once it starts to execute, 0.1–600; and seconds that a compilation
    /// may take, at least 10, and at most what the server allows. Queueing does not count.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 0.1, max = 600))]
    pub timeout: f64,
    /// What each output must hold, by argument name. Without it the verdict is `not_checked`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expected: BTreeMap<String, Expected>,
    /// How close is close enough. Defaults depend on the element type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// How outputs are compared that are right in more than one way, by argument name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compare_as: BTreeMap<String, CompareAs>,
    /// Whether a kernel that passes is called correct although a useless one would pass too, by what the
    /// contract expects. If not, the verdict is `weak`.
    #[serde(default)]
    pub allow_weak: bool,
    /// The work the kernel must do at least: for the roofline and the speed-of-light floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// How to measure.
    #[serde(default)]
    pub measure: MeasureSpec,
    /// Hardware metrics to collect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileSpec>,
    /// Memory and race checks to run: `false`, `true` or `all`, or a compute-sanitizer tool name. On
    /// a GPU each is a run of its own under compute-sanitizer.
    #[serde(default)]
    pub sanitize: Sanitize,
    /// Which outputs travel back: `none`, `all`, or a list of names.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub return_outputs: ReturnOutputs,
    /// Encoding of returned outputs.
    #[serde(default)]
    pub output_encoding: OutputEncoding,
    /// Outputs, by name, that become shared tensors of the caller's (`GET /tensors`) once the kernel has
    /// run and was not found wrong. `kept_outputs` of the report has their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep_outputs: BTreeMap<String, KeepOutput>,
    /// `warm`: a running worker; `fresh`: a process of its own.
    #[serde(default)]
    pub isolation: Isolation,
    /// What the device must be, and what must be installed beside it.
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    pub requires: Requirements,
    /// Matrices that stand in it already, of files that the caller's own program read; the server adds
    /// the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub matrices: Vec<MatrixUsed>,
    /// Shared tensors whose content is in it. The server adds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub tensors: Vec<TensorUsed>,
    /// What the request had that is ignored, and what it lacked that is filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub warnings: Vec<RequestWarning>,
}

fn default_timeout() -> f64 {
    120.0
}

/// A kernel: its code, and how to call it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelCode {
    /// Source text (all but `cubin`, `fatbin` and `library`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_code: Option<String>,
    /// Further files of a `cuda` or `program` source, which it includes, or of a `triton` source, which imports them:
    /// their texts by their relative paths, such as `include/tile.cuh` or `ops/common.py`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Path of `source_code` among `files`, such as `src/kernel.cu`, if it includes or imports files relative to its own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// Machine code, base64 (`cubin`, `fatbin`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_b64: Option<Blob>,
    /// What the code is.
    pub kernel_type: KernelType,
    /// Arguments and launch configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoContract>,
    /// A program of several launches, in place of `io.launch`: what host code would do, step by step. It is timed as a
    /// whole, and each launch on its own.
    #[serde(default, deserialize_with = "launches::steps", skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchStep>,
    /// Steps before `launches` that are not timed. They fill tensors of `role: scratch`, and depend on shapes and
    /// scalars alone.
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

    /// Returns the name of the kernel to run; of several, the first.
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

    /// Returns whether gradients should be computed too.
    pub fn wants_backward(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.backward)
    }

    /// Returns the arguments of a program's command line.
    pub fn arguments(&self) -> &[String] {
        self.metadata.as_ref().map_or(&[], |metadata| &metadata.arguments)
    }
}

/// Arguments in the order of the kernel's parameters, and how to launch.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "GivenIo")]
#[schemars(!from, deny_unknown_fields)]
pub struct IoContract {
    /// Arguments, in parameter order. None for a kernel in `expected`: it gets the candidate's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<ArgSpec>,
    /// Launch configuration: required of a kernel that is run. Without it a kernel in `expected`, or
    /// one that is compared, has that of the kernel beside it, if both are Triton's or neither is.
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

/// One kernel argument.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgSpec {
    /// Name: unique in the contract, usable in expressions and in `expected`.
    pub name: String,
    /// Kind of the argument.
    #[serde(rename = "type")]
    pub kind: ArgKind,
    /// Value of a scalar. Floats may also be the strings `inf`, `-inf`, `nan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Integers come first: generated clients take the first type that fits, and would send 1.0 for
    // 1.
    #[schemars(extend(
        "nullable" = true,
        "anyOf" = [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"type": "string"}],
    ))]
    pub value: Option<serde_json::Value>,
    /// In place of `value`, of an `int`: a number of a sparse matrix, such as its `num_rows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_of: Option<MatrixPart>,
    /// Shape, element type and content of a tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_spec: Option<TensorSpec>,
    /// Values of a structure's fields by their names: numbers, names of arguments (a pointer to a tensor, or the value of
    /// a scalar), expressions, null for a null pointer, arrays, and the fields of a structure in it.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// Entries of an array of pointers in device memory: names of tensors, elements of tensors such as `a + 64`, null for a
    /// null pointer, and `{"tensor": "a", "step": "m*k", "count": 8}` for pointers to every `step`-th element of a
    /// tensor. 1–65536 pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<serde_json::Value>,
    /// The texture that a texture object reads: its tensor, and how it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texture: Option<TextureSpec>,
    /// The surface that a surface object reads and writes: its tensor, and how that is laid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceSpec>,
    /// CUDA: the `__constant__` or `__device__` variable that holds the tensor, such as `ns::filter`, in place of a
    /// parameter. It is filled before each launch, and read after it if the tensor is an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Whether the kernel reads it, writes it, or both.
    #[serde(default)]
    pub role: Role,
    /// A compile-time constant of a Triton kernel, given by its name; not a run-time argument.
    #[serde(default)]
    pub is_meta: bool,
    /// Triton: the tensor is passed as a tensor descriptor, and not as a pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<TensorDescriptor>,
    /// C type of the parameter, for machine code that does not have it (e.g. `float`, `int64_t`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c_type: Option<String>,
}

/// What Triton's host code would make a tensor descriptor with, beside the tensor itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorDescriptor {
    /// Extents of the block that one access moves, as many as the tensor has dimensions.
    pub block_shape: Vec<u32>,
    /// What a load finds beyond the tensor's extents.
    #[serde(default)]
    pub padding: Padding,
}

/// What lies beyond the extents of a tensor that is read through a descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Padding {
    /// Zeros.
    #[default]
    Zero,
    /// NaN, for elements that have one.
    Nan,
}

/// Kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgKind {
    /// A device buffer, passed as a pointer.
    Tensor,
    /// An integer scalar.
    Int,
    /// A floating-point scalar.
    Float,
    /// A boolean scalar.
    Bool,
    /// A string (Python kernels only).
    Str,
    /// No value: a null pointer of a CUDA kernel, and `None` of a Triton or torch kernel.
    None,
    /// A structure of a CUDA kernel, passed by value.
    Struct,
    /// An array of pointers to tensors, in device memory, passed as a pointer to its first entry.
    Pointers,
    /// A texture object over a tensor.
    Texture,
    /// A surface object over a tensor.
    Surface,
}

impl ArgKind {
    /// Returns whether it is a texture or a surface object.
    pub fn is_object(self) -> bool {
        matches!(self, Self::Texture | Self::Surface)
    }
}

/// Direction of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read only.
    #[default]
    Input,
    /// Written; its former content is not defined.
    Output,
    /// Read and written.
    Inout,
    /// Memory that the kernel uses while it runs: its content before is not defined, and its content after is not
    /// verified.
    Scratch,
}

/// Launch configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Blocks in the grid; required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Dim3>,
    /// Threads in a block; required, but for Triton, which has 32 × `num_warps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Dim3>,
    /// Dynamic shared memory per block, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory_bytes: Option<Extent>,
    /// Blocks in a thread block cluster (compute capability 9.0 and up).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Dim3>,
    /// Cooperative launch: the whole grid is resident and can synchronise.
    #[serde(default)]
    pub cooperative: bool,
    /// Warps per block (Triton).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_warps: Option<u32>,
    /// Pipeline stages (Triton).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_stages: Option<u32>,
    /// Blocks in a cluster that one program of Triton is spread over (compute capability 9.0 and up).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_ctas: Option<u32>,
    /// Most registers of a thread (Triton).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxnreg: Option<u32>,
}

/// Three extents, at least one of them given; the others are 1.
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

/// Serialised form of [`Dim3`]. `{}` is an error and does not mean 1×1×1.
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
                "names no extent; give at least one of x, y and z, for instance {\"x\": 256}",
            );
        }
        let or_one = |extent: Option<Extent>| extent.unwrap_or_default();
        Ok(Self { x: or_one(given.x), y: or_one(given.y), z: or_one(given.z) })
    }
}

/// A number, or an expression over scalar arguments and shapes such as `ceil_div(n, 256)`.
#[derive(Debug, Clone, PartialEq)]
pub enum Extent {
    /// A given number.
    Value(u64),
    /// An expression, evaluated when the contract is resolved.
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
    /// Name of the kernel to run, as in the source or as in the symbol table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Options for the compiler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiler_options: Vec<String>,
    /// Compiler: `nvrtc` (default) or `nvcc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// C++ template instances to compile, e.g. `scale<float>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name_expressions: Vec<String>,
    /// Triton: which configuration of `@triton.autotune` to compile, by its place in the list, from 0.
    /// Without it one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<u32>,
    /// Accepted for compatibility; C++ features are always on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitify: Option<bool>,
    /// Kernels of type `library`: which library is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// Kernels of type `library`: its function, `spmv` of `cusparse` or `gemm` of `cublas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<LibraryFunction>,
    /// Python kernels: function to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_name: Option<String>,
    /// Python kernels: class to instantiate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// Python kernels: method to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method_name: Option<String>,
    /// Python kernels: function to call, as `function_name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_point: Option<String>,
    /// Python that is run: each call is forward and backward, and gradients are compared and timed, too. In a
    /// comparison it holds for all kernels if one of them has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// Programs: what stands behind the program's name on its command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Programs: what they read from their standard input. Without it that is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Free text, kept with the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl KernelMetadata {
    /// Returns the name of the kernel to run. A blank name is none.
    pub fn name(&self) -> Option<&str> {
        self.kernel_name.as_deref().filter(|name| !name.trim().is_empty())
    }
}

/// Compiler of CUDA C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The run-time compilation library.
    #[default]
    Nvrtc,
    /// The offline compiler driver, where installed.
    Nvcc,
}

/// What an output must hold: exactly one of `data`, `kernel` and `matrix`. Of a program, `stdout` has `text`
/// or `contains`, and `exit_code` has `code`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<TensorData>,
    /// A kernel that computes them. Its arguments are the candidate's; `io.launch` may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Box<KernelCode>>,
    /// Beside `data`: how far each element may be off, as `float64` elements of the output's shape. It is
    /// added to what `tolerance` allows, which is then 0 where it is not given. For results whose
    /// rounding errors are known one by one, such as sums of different lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<TensorData>,
    /// The product of the sparse matrix of this name and the vector `times`, as the CPU computes it in
    /// binary64, with a bound of the rounding error of each row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// Beside `matrix`: name of the argument that it is multiplied by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<String>,
    /// All that a program prints. White space at the ends of lines, and of the whole, does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What stands somewhere in what a program prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// The exit code of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 255))]
    pub code: Option<u8>,
}
