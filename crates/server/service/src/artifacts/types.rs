//! Kinds of artifacts, and the types that describe and contain them.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArtifactKind {
    /// Triton IR.
    Ttir,
    /// Triton GPU IR, which also contains the layout of data over the threads of a block.
    Ttgir,
    /// LLVM IR, which is compiled to PTX.
    Llir,
    /// PTX, the input of the assembler.
    Ptx,
    /// SASS, disassembled from the machine code.
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

    /// Returns the kind's name in paths.
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

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the media type of the content.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Ttir | Self::Ttgir | Self::Llir | Self::Ptx | Self::Sass | Self::Log => {
                "text/plain; charset=utf-8"
            }
            Self::Cubin | Self::NcuRep | Self::NsysRep => "application/octet-stream",
        }
    }
}

/// Artifacts of a job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactList {
    /// Id of the job.
    pub job_id: String,
    /// Artifacts of every kind for every kernel of the job.
    pub artifacts: Vec<ArtifactView>,
}

/// Artifact, or the reason why it is missing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactView {
    /// Name: `ptx`, `sass`, `cubin`, `log`, `ttir`, `ttgir`, `llir`, `ncu-rep` or `nsys-rep`.
    pub name: String,
    /// Kernel to which the artifact belongs: `kernel`, or in a comparison `reference` or the name
    /// of a candidate.
    pub kernel: String,
    /// Whether the artifact is available.
    pub available: bool,
    /// Path of the artifact. Absent if it is not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Media type of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Size of the content, bytes. Absent for an artifact that is compiled on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Reason why the artifact is missing, with a remedy, or a note on the artifact.
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
