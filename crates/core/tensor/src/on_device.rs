//! Content that stays in the memory of a device. The main type is [`OnDevice`].

use std::any::Any;
use std::fmt;
use std::io;

/// Content in the memory of a device. The memory stays allocated until this value is dropped. The
/// bytes cannot be read through this type; a process must open the memory to read them.
pub struct OnDevice {
    /// Unique id of the content.
    pub id: String,
    /// CUDA ordinal of the device.
    pub device: u32,
    /// Handle with which another process opens the memory: a CUDA IPC handle of a whole allocation,
    /// which begins with the content.
    pub handle: Vec<u8>,
    /// Size of the content, in bytes.
    pub bytes: u64,
    /// Size of the allocation, in bytes.
    pub allocation_bytes: u64,
    /// Value that keeps the memory allocated until it is dropped.
    pub held: Box<dyn Any + Send + Sync>,
}

impl OnDevice {
    /// Returns the error for an attempt to read the bytes.
    pub(super) fn unreadable() -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the copy of a shared tensor is in device memory, where it can be read only by \
             the run that it was made for; send the request again",
        )
    }
}

impl fmt::Debug for OnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnDevice({} bytes on device {})", self.bytes, self.device)
    }
}
