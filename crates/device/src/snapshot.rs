//! A module's variables as they are at one moment, to be put back.

use super::support::Support;
use super::{Context, DeviceBuffer, DeviceError, Module, PreparedLaunch, Stream};

/// Most bytes of variables that are copied.
const MAX_BYTES: usize = 256 << 20;

/// Each copy begins at a multiple of this, so that it is copied as fast as its variable allows.
const ALIGNMENT: usize = 16;

/// A copy of a module's variables.
///
/// Putting it back makes a launch see the module as if it had just been loaded, so that what a
/// kernel leaves in a variable does not reach its next launch.
pub struct VariableSnapshot {
    /// `None`: the module has no variables.
    held: Option<Held>,
}

/// Variables there are.
struct Held {
    restore: PreparedLaunch,
    copy: DeviceBuffer,
    table: DeviceBuffer,
    /// Keeps the addresses valid.
    _module: Module,
}

impl VariableSnapshot {
    /// Copies the variables named. `Ok(None)`: there are too many bytes, or the driver does not
    /// know one of the names.
    ///
    /// # Errors
    /// As the driver says.
    pub fn take(
        context: &Context,
        support: &Support,
        module: &Module,
        names: &[String],
        stream: &Stream,
    ) -> Result<Option<Self>, DeviceError> {
        let (mut variables, mut total) = (Vec::new(), 0usize);
        for name in names {
            let Some((address, bytes)) = module.global(name)? else { return Ok(None) };
            variables.push((address, bytes as u64, total as u64));
            total = total.saturating_add(bytes.next_multiple_of(ALIGNMENT));
            if total > MAX_BYTES {
                return Ok(None);
            }
        }
        if total == 0 {
            return Ok(Some(Self { held: None }));
        }
        let copy = DeviceBuffer::new(context, total as u64, "a copy of variables")?;
        let table = |to_copy: bool| {
            let range = |&(address, bytes, at): &(u64, u64, u64)| {
                let kept = copy.address() + at;
                if to_copy { [kept, address, bytes] } else { [address, kept, bytes] }
            };
            variables.iter().flat_map(range).flat_map(u64::to_ne_bytes).collect::<Vec<_>>()
        };
        let bytes = 24 * variables.len() as u64;
        let ranges = DeviceBuffer::new(context, bytes, "a table of variables")?;
        let mut launch =
            support.copy_launch(ranges.address(), variables.len() as u32, total as u64)?;
        ranges.copy_from_host(0, &table(true), stream)?;
        launch.launch(stream)?;
        ranges.copy_from_host(0, &table(false), stream)?;
        let held = Held { restore: launch, copy, table: ranges, _module: module.clone() };
        Ok(Some(Self { held: Some(held) }))
    }

    /// Whether the module has no variables.
    pub fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Queues putting the variables back.
    ///
    /// # Errors
    /// As the driver says.
    pub fn restore(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        self.held.as_mut().map_or(Ok(()), |held| held.restore.launch(stream))
    }

    /// Gives up its memory, for scrubbing.
    pub fn into_memory(self) -> impl Iterator<Item = DeviceBuffer> {
        self.held.into_iter().flat_map(|held| [held.copy, held.table])
    }
}
