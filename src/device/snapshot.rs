//! A module's variables as they are at one moment, to be put back.

use super::{Context, DeviceBuffer, DeviceError, Module, Stream};

/// Most bytes of variables that are copied.
const MAX_BYTES: usize = 256 << 20;

/// A copy of a module's variables.
///
/// Putting it back makes a launch see the module as if it had just been loaded, so that what a
/// kernel leaves in a variable does not reach its next launch.
pub struct VariableSnapshot {
    /// Keeps the addresses valid.
    module: Module,
    /// Address, bytes, and place in the copy.
    variables: Vec<(u64, usize, usize)>,
    copy: Option<DeviceBuffer>,
}

impl VariableSnapshot {
    /// Copies the variables named. `Ok(None)`: there are too many bytes, or the driver does not
    /// know one of the names.
    ///
    /// # Errors
    /// As the driver says.
    pub fn take(
        context: &Context,
        module: &Module,
        names: &[String],
        stream: &Stream,
    ) -> Result<Option<Self>, DeviceError> {
        let (mut variables, mut total) = (Vec::new(), 0usize);
        for name in names {
            let Some((address, bytes)) = module.global(name)? else { return Ok(None) };
            variables.push((address, bytes, total));
            total = total.saturating_add(bytes);
        }
        if total > MAX_BYTES {
            return Ok(None);
        }
        let mut copy = None;
        if total > 0 {
            let buffer = DeviceBuffer::new(context, total as u64, "a copy of variables")?;
            for &(address, bytes, at) in &variables {
                copy_on_device(context, buffer.address() + at as u64, address, bytes, stream)?;
            }
            copy = Some(buffer);
        }
        Ok(Some(Self { module: module.clone(), variables, copy }))
    }

    /// Queues putting the variables back.
    ///
    /// # Errors
    /// As the driver says.
    pub fn restore(&self, stream: &Stream) -> Result<(), DeviceError> {
        let Some(copy) = &self.copy else { return Ok(()) };
        for &(address, bytes, at) in &self.variables {
            let from = copy.address() + at as u64;
            copy_on_device(self.module.context(), address, from, bytes, stream)?;
        }
        Ok(())
    }

    /// Gives up the copy's memory, for scrubbing.
    pub fn into_memory(self) -> Option<DeviceBuffer> {
        self.copy
    }
}

fn copy_on_device(
    context: &Context,
    to: u64,
    from: u64,
    bytes: usize,
    stream: &Stream,
) -> Result<(), DeviceError> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: one range is that of a variable, as the driver named it, whose module is alive; the
    // other is a part of our own buffer, of the same size.
    let result = unsafe { (context.api().copy_on_device)(to, from, bytes, stream.handle) };
    context.api().check(result, "copy a variable")
}
