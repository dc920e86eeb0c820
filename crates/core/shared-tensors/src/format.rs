//! File formats for the content of tensors. The main type is [`TransferFormat`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_tensor::Dtype;
use warpgauge_tensor::encoding::NpyHeader;

use crate::{TensorFileError, safetensors};

/// Format of a tensor's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransferFormat {
    /// A `.npy` file.
    #[default]
    Npy,
    /// A `.safetensors` file with one tensor that is called `tensor`.
    Safetensors,
    /// Raw elements.
    Raw,
}

impl TransferFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Npy, Self::Safetensors, Self::Raw];

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::Raw => "raw",
        }
    }

    /// Returns the header of a file that precedes `bytes` bytes of elements.
    ///
    /// # Errors
    /// Returns an error if the format does not support the element type.
    pub fn head(self, dtype: Dtype, shape: &[u64], bytes: u64) -> Result<Vec<u8>, TensorFileError> {
        match self {
            Self::Npy => Ok(NpyHeader::write(dtype, shape)),
            Self::Safetensors => safetensors::head(dtype, shape, bytes),
            Self::Raw => Ok(Vec::new()),
        }
    }
}
