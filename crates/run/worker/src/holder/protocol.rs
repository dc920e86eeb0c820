//! What a holder is asked, and what it answers: frames on its standard input, which is a socket.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warpgauge_model::FailureCode;
use warpgauge_shared_tensors::ExportedTensor;

/// Both sides are one program, unless somebody replaced its file while it ran.
pub(crate) const VERSION: u32 = 4;

/// Most bytes that are copied from a file for one question: others wait meanwhile.
pub(crate) const FILL_BYTES: u64 = 256 << 20;

/// What comes with the descriptor of a file.
pub(crate) const FILE: u8 = b'f';

/// What a holder is asked. Each is answered before the next is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToHolder {
    Hello {
        version: u32,
    },
    /// Allocate, all zeros.
    Create {
        id: Uuid,
        bytes: u64,
    },
    /// Copy so many bytes of a file, from `from` on, to `offset`. The file's descriptor follows the frame.
    Fill {
        id: Uuid,
        offset: u64,
        from: u64,
        bytes: u64,
    },
    /// Allocate, with as many bytes as another tensor begins with, where the memory that is free is many
    /// times that.
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
    /// What leads another process to it; with `event`, to one that goes with it, too.
    Export {
        id: Uuid,
        event: bool,
    },
    Free {
        id: Uuid,
    },
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromHolder {
    Ready {
        version: u32,
    },
    Done,
    Data(#[serde(with = "warpgauge_model::byte_string")] Vec<u8>),
    Exported(ExportedTensor),
    /// It goes on, without that.
    Failed {
        code: FailureCode,
        message: String,
    },
}
