//! What compilation yields.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ctype::CType;
use warpgauge_model::{Diagnostic, ImageFormat, Resources, TensorMap};

/// A loadable module and what is known of its kernels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompiledModule {
    /// The image. PTX text carries no terminating NUL here.
    #[serde(with = "image_bytes")]
    pub image: Arc<[u8]>,
    /// Its format.
    pub format: ImageFormat,
    /// Kernels in the image, in symbol-table order.
    pub kernels: Vec<KernelInfo>,
    /// Index in `kernels` of the kernel to run.
    pub entry: usize,
    /// Compiler and version, e.g. `nvrtc 13.0.88`; `passthrough` for binaries.
    pub compiler: String,
    /// Complete compiler log (warnings included), bounded.
    pub log: String,
    /// Warnings of the log, structured.
    pub diagnostics: Vec<Diagnostic>,
    /// Content address: blake3 of every input of the compilation, hex.
    pub key: String,
    /// Whether the image came from the cache.
    pub cache_hit: bool,
    /// Where the time went.
    pub timings: CompileTimings,
    /// How the kernel is launched, where its compiler decides that.
    #[serde(default)]
    pub launch: Option<CompiledLaunch>,
    /// What the source became on its way to the image, by language (`ttir`, `ttgir`, `llir`, `ptx`).
    #[serde(default)]
    pub stages: Vec<(String, String)>,
}

impl CompiledModule {
    /// The kernel to run.
    pub fn entry_kernel(&self) -> &KernelInfo {
        &self.kernels[self.entry]
    }

    /// Whether both kernels are the same machine code, whatever their names; `None` if the images
    /// do not tell (only cubins do).
    pub fn same_code(&self, other: &CompiledModule) -> Option<bool> {
        if self.format != ImageFormat::Cubin || other.format != ImageFormat::Cubin {
            return None;
        }
        let (own, theirs) = (&self.entry_kernel().symbol, &other.entry_kernel().symbol);
        super::binary::same_code((&self.image, own), (&other.image, theirs))
    }

    /// Whether both are one image to the last byte that bears on how it runs, and start the same
    /// kernel: two launches of them with the same arguments cannot differ but by chance.
    pub fn same_image(&self, other: &CompiledModule) -> bool {
        self.format == other.format
            && self.entry_kernel().symbol == other.entry_kernel().symbol
            && (self.image == other.image
                || self.format == ImageFormat::Cubin
                    && super::binary::same_image(&self.image, &other.image))
    }
}

/// A launch as a compiler decided it: what a caller gives is the grid, in programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompiledLaunch {
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster, in x, that one program of the grid is spread over; 1: there is no cluster.
    pub blocks_per_program: u32,
    /// The whole grid is resident at once.
    pub cooperative: bool,
    /// What each parameter of the kernel gets, in order.
    pub parameters: Vec<PassedValue>,
    /// Device memory that each block of the grid needs beside its arguments.
    pub scratch: Scratch,
    /// Compile-time constants by name, those that decorators chose among them.
    pub constants: Vec<(String, Constant)>,
}

/// Device memory beside arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scratch {
    /// Bytes for each block.
    pub bytes_per_block: u64,
    /// Alignment of the whole, bytes.
    pub align: u64,
}

/// What a parameter gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PassedValue {
    /// An argument of the contract, by index.
    Argument(usize),
    /// A value that the compiler decided.
    Value(Constant),
    /// The memory of [`CompiledLaunch::scratch`], or null where there is none.
    Scratch,
    /// A tensor of the contract as the device's copy engine reads it.
    Map {
        /// The argument of the contract, by index.
        argument: usize,
        /// How it is read.
        map: TensorMap,
    },
}

/// A value that is known when a kernel is compiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Constant {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number beyond that.
    Unsigned(u64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

/// Time a compilation took, in milliseconds of wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CompileTimings {
    /// Whole stage, cache look-up and child process included.
    pub total_ms: f64,
    /// The compiler itself; 0 when cached.
    pub compiler_ms: f64,
}

/// One kernel of an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Symbol in the image.
    pub symbol: String,
    /// Name as a person would write it, e.g. `scale<float>`.
    pub name: String,
    /// Parameters in order; `None` where the image does not tell.
    pub params: Option<Vec<Param>>,
    /// Resource usage, where known.
    pub resources: Option<Resources>,
}

/// One kernel parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Name in the source, where known.
    pub name: Option<String>,
    /// Type.
    pub ctype: CType,
    /// Size in bytes.
    pub bytes: u32,
    /// Offset in the parameter block, in bytes.
    pub offset: u32,
}

/// Images travel as byte strings, not as sequences of numbers.
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
