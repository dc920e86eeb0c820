//! Results of a compilation; the main type is [`CompiledModule`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::binary::ImageVariable;
use super::ctype::CType;
use warpgauge_model::{Diagnostic, ImageFormat, Resources, TensorMap};

/// A module that the driver can load, with facts about its kernels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompiledModule {
    /// The image. PTX text has no terminating NUL here.
    #[serde(with = "image_bytes")]
    pub image: Arc<[u8]>,
    pub format: ImageFormat,
    /// Kernels in the image, in symbol-table order.
    pub kernels: Vec<KernelInfo>,
    /// Variables that tensors of a contract can fill. The list is empty if the image does not list
    /// them.
    #[serde(default)]
    pub variables: Vec<ImageVariable>,
    /// Index in `kernels` of the kernel to run.
    pub entry: usize,
    /// Compiler and version, e.g. `nvrtc 13.0.88`; `passthrough` for binaries.
    pub compiler: String,
    /// Options of the compiler, without directories and files. The list is empty if no compiler
    /// ran, and for Triton kernels that earlier versions stored.
    #[serde(default)]
    pub options: Vec<String>,
    /// Complete compiler log, including warnings, up to a maximum length.
    pub log: String,
    /// Warnings in the log, parsed into structured messages.
    pub diagnostics: Vec<Diagnostic>,
    /// Content address: hex form of the BLAKE3 hash of every input of the compilation.
    pub key: String,
    /// Whether the image came from the cache.
    pub cache_hit: bool,
    pub timings: CompileTimings,
    /// Launch of the kernel. `None` unless the kernel's compiler determines the launch.
    #[serde(default)]
    pub launch: Option<CompiledLaunch>,
    /// Intermediate forms of the source by language (`ttir`, `ttgir`, `llir`, `ptx`).
    #[serde(default)]
    pub stages: Vec<(String, String)>,
}

impl CompiledModule {
    /// Returns the kernel to run.
    pub fn entry_kernel(&self) -> &KernelInfo {
        &self.kernels[self.entry]
    }

    /// Returns whether both kernels have the same machine code, regardless of their names. Returns
    /// `None` unless both images are cubins that contain their kernels.
    pub fn same_code(&self, other: &CompiledModule) -> Option<bool> {
        if self.format != ImageFormat::Cubin || other.format != ImageFormat::Cubin {
            return None;
        }
        let (own, theirs) = (&self.entry_kernel().symbol, &other.entry_kernel().symbol);
        super::binary::same_code((&self.image, own), (&other.image, theirs))
    }

    /// Returns whether the images agree in every byte that affects how they run, and have the same
    /// kernel to run. Launches of the two with the same arguments can then differ only by chance.
    pub fn same_image(&self, other: &CompiledModule) -> bool {
        self.format == other.format
            && self.entry_kernel().symbol == other.entry_kernel().symbol
            && (self.image == other.image
                || self.format == ImageFormat::Cubin
                    && super::binary::same_image(&self.image, &other.image))
    }
}

/// A launch that the compiler determines. The caller only gives the grid, in programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompiledLaunch {
    /// Number of threads per block.
    pub threads: u32,
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// Number of blocks in a cluster, along x. A cluster runs one program of the grid; 1 means that
    /// there are no clusters.
    pub blocks_per_program: u32,
    /// Whether the whole grid must be resident at once (a cooperative launch).
    pub cooperative: bool,
    /// Value of each kernel parameter, in order.
    pub parameters: Vec<PassedValue>,
    /// Device memory that each block of the grid needs in addition to its arguments.
    pub scratch: Scratch,
    /// Compile-time constants by name, including those that decorators chose.
    pub constants: Vec<(String, Constant)>,
}

/// Device memory that a kernel needs in addition to its arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scratch {
    /// Scratch memory of one block, bytes.
    pub bytes_per_block: u64,
    /// Alignment of the whole memory, bytes.
    pub align: u64,
}

/// The value that the launch passes for a kernel parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PassedValue {
    /// An argument of the contract, given by its index.
    Argument(usize),
    /// A value that the compiler determined.
    Value(Constant),
    /// The memory of [`CompiledLaunch::scratch`], or null if there is none.
    Scratch,
    /// A tensor of the contract, as a descriptor for the Tensor Memory Accelerator.
    Map {
        /// Index of the contract's argument.
        argument: usize,
        map: TensorMap,
    },
}

/// A compile-time constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Constant {
    Bool(bool),
    Int(i64),
    /// An integer beyond the range of a signed 64-bit integer.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// Duration of a compilation: wall-clock time in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CompileTimings {
    /// Total, including cache look-up and child process.
    pub total_ms: f64,
    /// Time in the compiler only; 0 for a cached image.
    pub compiler_ms: f64,
}

/// A kernel of a compiled image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Symbol of the kernel in the image.
    pub symbol: String,
    /// Readable name of the kernel, e.g. `scale<float>`.
    pub name: String,
    /// Parameters in order; `None` if the image does not list them.
    pub params: Option<Vec<Param>>,
    /// Resource usage of the kernel. `None` if it is unknown.
    pub resources: Option<Resources>,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Name of the parameter in the source. `None` if it is unknown.
    pub name: Option<String>,
    pub ctype: CType,
    /// Size of the parameter, bytes.
    pub bytes: u32,
    /// Offset in the parameter block, in bytes.
    pub offset: u32,
    /// Layout of the structure's fields that the contract names. `None` if it is unknown.
    #[serde(default)]
    pub layout: Option<StructLayout>,
}

/// Layout of the fields of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructLayout {
    /// Alignment of the structure, bytes.
    pub align: u32,
    /// The fields that the contract names and the structure contains.
    pub fields: Vec<Field>,
}

/// Location of a field in a structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Path in the structure, such as `inner.scale` or `weights[2]`.
    pub path: String,
    /// Offset of the field in the structure, bytes.
    pub offset: u32,
    /// Size of the field, bytes.
    pub bytes: u32,
    pub ctype: CType,
    pub is_array: bool,
}

/// Serialises images as byte strings instead of sequences of numbers.
mod image_bytes {
    use std::sync::Arc;

    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(image: &Arc<[u8]>, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_bytes(image)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Arc<[u8]>, D::Error> {
        struct Bytes;
        impl serde::de::Visitor<'_> for Bytes {
            type Value = Arc<[u8]>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a byte string")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Arc<[u8]>, E> {
                Ok(bytes.into())
            }
        }
        d.deserialize_bytes(Bytes)
    }
}
