//! Messages between the server and a holder: frames on the holder's standard input, which is a
//! socket.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warpgauge_model::FailureCode;
use warpgauge_shared_tensors::ExportedTensor;

/// Version of this protocol. Both sides are the same program, unless its file was replaced while it
/// ran.
pub(crate) const VERSION: u32 = 4;

/// Maximum number of bytes copied from a file per request. Other requests wait meanwhile.
pub(crate) const FILL_BYTES: u64 = 256 << 20;

/// The byte that accompanies a file's descriptor.
pub(crate) const FILE: u8 = b'f';

/// A request to a holder, which answers each request before the next is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToHolder {
    Hello {
        version: u32,
    },
    /// Allocates a tensor of zeros.
    Create {
        id: Uuid,
        bytes: u64,
    },
    /// Copies bytes of a file, starting at `from`, to `offset`. The file's descriptor follows the
    /// frame.
    Fill {
        id: Uuid,
        offset: u64,
        from: u64,
        bytes: u64,
    },
    /// Allocates a tensor and copies the first `bytes` bytes of another tensor into it. Fails
    /// unless the free memory is several times `bytes`, and fails for host memory.
    Copy {
        from: Uuid,
        id: Uuid,
        bytes: u64,
    },
    Read {
        id: Uuid,
        offset: u64,
        bytes: u64,
    },
    /// Returns the handle with which another process opens the tensor. With `event`, also returns
    /// the handle of an event for the tensor.
    Export {
        id: Uuid,
        event: bool,
    },
    Free {
        id: Uuid,
    },
}

/// A holder's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromHolder {
    Ready {
        version: u32,
    },
    Done,
    Data(#[serde(with = "warpgauge_model::byte_string")] Vec<u8>),
    Exported(ExportedTensor),
    /// The request failed; the holder continues.
    Failed {
        code: FailureCode,
        message: String,
    },
}
