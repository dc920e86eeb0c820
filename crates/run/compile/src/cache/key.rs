//! The content address of a compilation: a hash of everything that can change its result.
//!
//! Encoding: a domain string, then each component as its one-byte tag, its length (64 bits, little
//! endian) and its bytes. Lists include their length. So no two different inputs have the same
//! encoding. Whenever the encoded components or the encoding change, [`FORMAT`] must change.

use std::fmt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use warpgauge_contract::{Backend, KernelType};
use warpgauge_model::Target;
use warpgauge_turns::Owner;

/// Version of the encoding and of the compile stage's own transformations.
const FORMAT: u32 = 6;

/// Content address of a compilation's result.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(blake3::Hash);

impl Key {
    /// Returns the address of the same content among the results of `owner`. No owner finds the
    /// results of another, so that neither `cache_hit` nor the compilation time reveals what others
    /// submitted.
    pub(crate) fn of_owner(&self, owner: Owner) -> Self {
        if owner == Owner::SERVER {
            return self.clone();
        }
        let mut hasher = Hasher(blake3::Hasher::new());
        hasher.field(0, b"warpgauge owner's key");
        hasher.field(1, owner.as_bytes());
        hasher.field(2, self.0.as_bytes());
        Self(hasher.0.finalize())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Identity of a compiler. It does not depend on where the compiler is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// Name and version of the compiler, e.g. `nvrtc 13.0.88`.
    pub name: String,
    /// Size and modification time of its file, which distinguish builds of one version.
    pub stamp: (u64, u64),
}

impl Compiler {
    /// Reads the stamp of the compiler's file.
    pub(crate) fn of(name: String, file: &Path) -> Self {
        let stamp = file.metadata().map_or((0, 0), |meta| {
            let changed = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            (meta.len(), changed.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX)))
        });
        Self { name, stamp }
    }
}

/// Every input of a compilation.
#[derive(Debug, Clone)]
pub(crate) struct KeyInputs<'a> {
    pub kind: KernelType,
    /// Source text, or the image that the caller sent.
    pub code: &'a [u8],
    pub options: &'a [String],
    /// Suffix of the architecture: `a` or `f`, as in `sm_90a`.
    pub arch_suffix: Option<char>,
    pub backend: Backend,
    pub name_expressions: &'a [String],
    /// Paths of the structure fields whose layout is requested.
    pub fields: &'a [String],
    pub kernel_name: Option<&'a str>,
    pub target: Target,
    /// Whether line information is added to the image.
    pub lineinfo: bool,
    /// The compiler. `None` for images that the caller sent.
    pub compiler: Option<Compiler>,
    /// Text that is inserted before the source.
    pub prelude: &'a str,
    /// Identity of the header directories, if the source can include any.
    pub headers: &'a [String],
}

impl KeyInputs<'_> {
    pub(crate) fn key(&self) -> Key {
        let mut hasher = Hasher(blake3::Hasher::new());
        hasher.field(0, b"warpgauge compile key");
        hasher.field(1, &FORMAT.to_le_bytes());
        hasher.field(2, format!("{:?}", self.kind).as_bytes());
        hasher.field(3, self.code);
        hasher.list(4, self.options);
        hasher.field(5, format!("{:?}", self.backend).as_bytes());
        hasher.list(6, self.name_expressions);
        hasher.optional(7, self.kernel_name);
        let (major, minor) = self.target.compute_capability;
        hasher.field(8, &major.to_le_bytes());
        hasher.field(9, &minor.to_le_bytes());
        hasher.field(10, &self.target.driver_version.to_le_bytes());
        hasher.field(11, &[u8::from(self.target.emulated)]);
        hasher.field(12, &[u8::from(self.lineinfo)]);
        if let Some(compiler) = &self.compiler {
            hasher.field(13, compiler.name.as_bytes());
            hasher.field(14, &compiler.stamp.0.to_le_bytes());
            hasher.field(15, &compiler.stamp.1.to_le_bytes());
        }
        hasher.field(16, blake3::hash(self.prelude.as_bytes()).as_bytes());
        hasher.list(17, self.headers);
        hasher.field(18, self.arch_suffix.map(String::from).unwrap_or_default().as_bytes());
        hasher.list(19, self.fields);
        Key(hasher.0.finalize())
    }
}

/// Returns the content address of a build. `parts` contains lists; within `domain`, their order and
/// number determine their meaning. The address differs from that of every kernel.
pub(crate) fn key_of(domain: &str, compilers: &[Compiler], parts: &[&[String]]) -> Key {
    let mut hasher = Hasher(blake3::Hasher::new());
    hasher.field(0, b"warpgauge build key");
    hasher.field(1, &FORMAT.to_le_bytes());
    hasher.field(2, domain.as_bytes());
    hasher.field(3, &(compilers.len() as u64).to_le_bytes());
    for compiler in compilers {
        hasher.field(13, compiler.name.as_bytes());
        hasher.field(14, &compiler.stamp.0.to_le_bytes());
        hasher.field(15, &compiler.stamp.1.to_le_bytes());
    }
    for part in parts {
        hasher.list(4, part);
    }
    Key(hasher.0.finalize())
}

struct Hasher(blake3::Hasher);

impl Hasher {
    fn field(&mut self, tag: u8, bytes: &[u8]) {
        self.0.update(&[tag]);
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn list(&mut self, tag: u8, items: &[String]) {
        self.field(tag, &(items.len() as u64).to_le_bytes());
        for item in items {
            self.field(tag, item.as_bytes());
        }
    }

    fn optional(&mut self, tag: u8, value: Option<&str>) {
        self.field(tag, &[u8::from(value.is_some())]);
        self.field(tag, value.unwrap_or("").as_bytes());
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
