//! A kernel and what was compiled of it, for those who ask for its code later.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use warpgauge_compile::{Artifact, CompileFailure};
use warpgauge_contract::KernelCode;
use warpgauge_model::{ImageFormat, Target};

/// A kernel of a job, and what was compiled of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeptKernel {
    /// `kernel`, or its name in a comparison.
    pub name: String,
    /// The submitted code, without arguments, and without the image of a binary.
    pub code: KernelCode,
    /// What it was compiled for.
    pub target: Target,
    /// Whether it was compiled with line information.
    pub lineinfo: bool,
    /// The compiler's messages.
    pub log: String,
    /// `None` if it did not compile.
    pub built: Option<BuiltImage>,
}

/// What ran.
#[derive(Debug, Serialize, Deserialize)]
pub struct BuiltImage {
    /// The image.
    #[serde(with = "warpgauge_model::byte_string")]
    pub image: Arc<[u8]>,
    /// Its format.
    pub format: ImageFormat,
}

impl KeptKernel {
    /// A kernel that compiled.
    pub fn built(
        name: &str,
        code: &KernelCode,
        target: Target,
        lineinfo: bool,
        artifact: &Artifact,
    ) -> Self {
        let built = BuiltImage { image: Arc::clone(&artifact.image), format: artifact.format };
        let log = artifact.log.clone();
        Self { built: Some(built), ..Self::bare(name, code, target, lineinfo, log) }
    }

    /// One that did not.
    pub fn rejected(
        name: &str,
        code: &KernelCode,
        target: Target,
        lineinfo: bool,
        failure: &CompileFailure,
    ) -> Self {
        Self::bare(name, code, target, lineinfo, failure.log.clone())
    }

    fn bare(name: &str, code: &KernelCode, target: Target, lineinfo: bool, log: String) -> Self {
        let code = KernelCode {
            source_code: code.source_code.clone(),
            binary_b64: None,
            kernel_type: code.kernel_type,
            io: None,
            metadata: code.metadata.clone(),
        };
        Self { name: name.to_owned(), code, target, lineinfo, log, built: None }
    }
}
