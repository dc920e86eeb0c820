//! Content that stays in the memory of a device.

use std::any::Any;
use std::fmt;
use std::io;

/// Content in the memory of a device, in a process that holds it for as long as this is there. Its bytes
/// are for whoever opens that memory, and cannot be read through this.
pub struct OnDevice {
    /// Tells this content from all other.
    pub id: String,
    /// CUDA ordinal of the device.
    pub device: u32,
    /// What opens the memory in another process: a CUDA IPC handle of a whole allocation, which begins with
    /// the content.
    pub handle: Vec<u8>,
    /// Bytes of the content.
    pub bytes: u64,
    /// Bytes of the allocation.
    pub allocation_bytes: u64,
    /// Gives the memory back when it is dropped.
    pub held: Box<dyn Any + Send + Sync>,
}

impl OnDevice {
    /// What is told where its bytes are asked for.
    pub(super) fn unreadable() -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the copy of a shared tensor stayed in the memory of a device, and can be read there only, by \
             the run that it was taken for; send the request again",
        )
    }
}

impl fmt::Debug for OnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnDevice({} bytes on device {})", self.bytes, self.device)
    }
}
