//! A copy of a module's variables at one moment, from which they can be restored.

use super::support::Support;
use super::{Context, DeviceBuffer, DeviceError, Module, PreparedLaunch, Stream};

/// Maximum size of the copy, bytes.
const MAX_BYTES: usize = 256 << 20;

/// Alignment of each variable's copy, bytes. It allows the fastest copy that the variable's own
/// alignment allows.
const ALIGNMENT: usize = 16;

/// Size of an entry in the table of ranges, bytes. An entry has three words.
const RANGE_BYTES: usize = 24;

/// A copy of a module's variables.
///
/// Restoring it resets the module to its state after loading, so that data that a kernel leaves in
/// a variable does not reach its next launch. The copy is kept in the host's pageable memory,
/// because a kernel could write to memory on the device or to page-locked memory.
pub struct VariableSnapshot {
    /// The copy. `None` if the module has no variables.
    held: Option<Held>,
}

/// The copy of at least one variable.
struct Held {
    /// Launch that copies from `device` to the variables.
    restore: PreparedLaunch,
    /// The table of ranges to copy, followed by the content of all variables.
    host: Vec<u8>,
    /// Device memory of the same size as `host`. It is written again for each restoration.
    device: DeviceBuffer,
    /// Keeps the module loaded, so that the addresses stay valid.
    _module: Module,
}

/// Address range of a variable on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariableRange {
    pub address: u64,
    /// Size of the variable, bytes.
    pub bytes: u64,
}

/// A variable, and the offset of its copy in bytes.
struct Copied {
    variable: VariableRange,
    at: u64,
}

impl VariableSnapshot {
    /// Copies the variables. Returns `Ok(None)` if the copy would exceed 256 MiB.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn take(
        context: &Context,
        support: &Support,
        module: &Module,
        all: &[VariableRange],
        stream: &Stream,
    ) -> Result<Option<Self>, DeviceError> {
        let mut variables = Vec::new();
        let content = (RANGE_BYTES * all.len()).next_multiple_of(ALIGNMENT);
        let mut end = content;
        for &variable in all {
            variables.push(Copied { variable, at: end as u64 });
            if variable.bytes > MAX_BYTES as u64 {
                return Ok(None);
            }
            end += (variable.bytes as usize).next_multiple_of(ALIGNMENT);
            if end > MAX_BYTES {
                return Ok(None);
            }
        }
        if end == content {
            return Ok(Some(Self { held: None }));
        }
        let device = DeviceBuffer::new(context, end as u64, "a copy of variables")?;
        let total = (end - content) as u64;
        let mut launch = support.copy_launch(device.address(), variables.len() as u32, total)?;
        device.copy_from_host(0, &table(&variables, device.address(), Direction::Out), stream)?;
        launch.launch(stream)?;
        let mut host = vec![0; end];
        device.copy_to_host(0, &mut host, stream)?;
        let back = table(&variables, device.address(), Direction::Back);
        host[..back.len()].copy_from_slice(&back);
        let held = Held { restore: launch, host, device, _module: module.clone() };
        Ok(Some(Self { held: Some(held) }))
    }

    /// Returns whether there are no variables to restore.
    pub fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Sends the copy to the device, and queues restoring the variables.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn restore(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        let Some(held) = &mut self.held else { return Ok(()) };
        held.device.copy_from_host(0, &held.host, stream)?;
        held.restore.launch(stream)
    }

    /// Returns the device memory, so that the caller can scrub it.
    pub fn into_memory(self) -> impl Iterator<Item = DeviceBuffer> {
        self.held.into_iter().map(|held| held.device)
    }
}

/// Direction in which variables are copied.
#[derive(Clone, Copy)]
enum Direction {
    Out,
    Back,
}

/// Returns the table of ranges for the kernel that copies them. An entry contains target, source
/// and number of bytes.
fn table(variables: &[Copied], copy: u64, direction: Direction) -> Vec<u8> {
    let range = |&Copied { variable: VariableRange { address, bytes }, at }: &Copied| {
        let kept = copy + at;
        match direction {
            Direction::Out => [kept, address, bytes],
            Direction::Back => [address, kept, bytes],
        }
    };
    variables.iter().flat_map(range).flat_map(u64::to_ne_bytes).collect()
}
