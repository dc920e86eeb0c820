//! What compilation yields.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warpgauge_model::{Diagnostic, ImageFormat, Resources};

/// A loadable module and what is known of its kernels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Artifact {
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
}

impl Artifact {
    /// The kernel to run.
    pub fn entry_kernel(&self) -> &KernelInfo {
        &self.kernels[self.entry]
    }

    /// Whether both kernels are the same machine code, whatever their names; `None` if the images
    /// do not tell (only cubins do).
    pub fn same_code(&self, other: &Artifact) -> Option<bool> {
        if self.format != ImageFormat::Cubin || other.format != ImageFormat::Cubin {
            return None;
        }
        let (own, theirs) = (&self.entry_kernel().symbol, &other.entry_kernel().symbol);
        super::binary::same_code((&self.image, own), (&other.image, theirs))
    }

    /// Whether both are one image to the last byte that bears on how it runs, and start the same
    /// kernel: two launches of them with the same arguments cannot differ but by chance.
    pub fn same_image(&self, other: &Artifact) -> bool {
        self.format == other.format
            && self.entry_kernel().symbol == other.entry_kernel().symbol
            && (self.image == other.image
                || self.format == ImageFormat::Cubin
                    && super::binary::same_image(&self.image, &other.image))
    }
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

/// C type of a kernel parameter, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CType {
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// `__half`.
    F16,
    /// `__nv_bfloat16`.
    Bf16,
    /// `signed char`, `int8_t`.
    I8,
    /// `short`.
    I16,
    /// `int`.
    I32,
    /// `long`, `long long`.
    I64,
    /// `unsigned char`.
    U8,
    /// `unsigned short`.
    U16,
    /// `unsigned int`.
    U32,
    /// `unsigned long`, `unsigned long long`, `size_t`.
    U64,
    /// `bool`.
    Bool,
    /// A pointer; `pointee` as written in the source, where known (`float`, `void`, `__half`).
    Pointer {
        /// Element type.
        pointee: Option<Box<CType>>,
        /// Points to const.
        is_const: bool,
    },
    /// A structure or another type by value: its name, where known.
    Aggregate(String),
    /// Integer bits of a known size and unknown signedness (PTX `.u32`/`.b32`).
    Integer,
    /// Only the size is known (machine code without names).
    Unknown,
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
