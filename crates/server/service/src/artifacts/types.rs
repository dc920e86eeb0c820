//! Kinds of artifacts, and the types that describe and carry them.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArtifactKind {
    /// Triton IR.
    Ttir,
    /// Triton GPU IR: the same program with its layout over the threads of a block.
    Ttgir,
    /// LLVM IR, from which PTX is produced.
    Llir,
    /// PTX, the compiler's input for the assembler.
    Ptx,
    /// Machine code as text.
    Sass,
    /// Machine code.
    Cubin,
    /// Messages of the compiler.
    Log,
    /// Nsight Compute's report.
    NcuRep,
    /// Nsight Systems' report.
    NsysRep,
}

impl ArtifactKind {
    pub const ALL: [Self; 9] = [
        Self::Ptx,
        Self::Sass,
        Self::Cubin,
        Self::Log,
        Self::Ttir,
        Self::Ttgir,
        Self::Llir,
        Self::NcuRep,
        Self::NsysRep,
    ];

    /// Name in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ttir => "ttir",
            Self::Ttgir => "ttgir",
            Self::Llir => "llir",
            Self::Ptx => "ptx",
            Self::Sass => "sass",
            Self::Cubin => "cubin",
            Self::Log => "log",
            Self::NcuRep => "ncu-rep",
            Self::NsysRep => "nsys-rep",
        }
    }

    /// Returns the kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Media type of its content.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Ttir | Self::Ttgir | Self::Llir | Self::Ptx | Self::Sass | Self::Log => {
                "text/plain; charset=utf-8"
            }
            Self::Cubin | Self::NcuRep | Self::NsysRep => "application/octet-stream",
        }
    }
}

/// What a job left.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactList {
    /// Identifies the job.
    pub job_id: String,
    /// Every kind, of every kernel of the job.
    pub artifacts: Vec<ArtifactView>,
}

/// One artifact, or why there is none.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactView {
    /// `ptx`, `sass`, `cubin`, `log`, `ttir`, `ttgir`, `llir`, `ncu-rep` or `nsys-rep`.
    pub name: String,
    /// Whose it is: `kernel`, or in a comparison `reference` or a candidate's name.
    pub kernel: String,
    /// Whether it can be fetched.
    pub available: bool,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Media type of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its size. Absent for what is made on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Why there is none, and what would help; or what to know about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An artifact's content.
#[derive(Debug, Clone)]
pub struct ArtifactContent {
    pub kind: ArtifactKind,
    /// Suggested file name.
    pub file_name: String,
    pub content: Bytes,
}
