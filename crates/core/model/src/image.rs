//! Loadable images. The main type is [`Image`].

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
    /// Container of several images.
    Fatbin,
    /// No code, but the name of a function of an NVIDIA library.
    Library,
}

/// A loadable image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Content. It is shared, because it takes most of a job's memory.
    #[serde(with = "crate::byte_string")]
    pub bytes: Arc<[u8]>,
    pub format: ImageFormat,
}
