//! Loadable images.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// ELF machine code for one architecture.
    Cubin,
    /// PTX text.
    Ptx,
    /// Container of several.
    Fatbin,
    /// No code: the name of a function of a library of NVIDIA's, which is called.
    Library,
}

/// A loadable image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The bytes; shared, since they are the bulk of a job.
    #[serde(with = "crate::byte_string")]
    pub bytes: Arc<[u8]>,
    /// Their format.
    pub format: ImageFormat,
}
