//! After the launches: nothing written that should not be.

use super::buffers::JobBuffer;
use super::executor::Executor;
use super::job::{Failed, JobResult, environment};
use warpgauge_contract::Role;
use warpgauge_validate::Reason;

/// Nothing was written before or after a buffer.
pub(super) fn guards_intact(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    let tools = executor.tools()?;
    let guarded = buffers.iter().filter_map(|buffer| Some((buffer, buffer.guard_bands()?)));
    let (owners, bands): (Vec<_>, Vec<_>) = guarded.unzip();
    let Some(value) = owners.first().map(|buffer| buffer.guard_byte()) else { return Ok(()) };
    let bands = bands.concat();
    let found = tools.support.first_other(&bands, value, tools.stream).map_err(environment)?;
    for (pair, buffer) in found.chunks(2).zip(owners) {
        let (before, distance) = match *pair {
            [_, Some(at)] => (false, at),
            [Some(at), _] => {
                let band = buffer.guard_bands().map_or(0, |[before, _]| before.1 as u64);
                (true, band - at)
            }
            _ => continue,
        };
        let reason = Reason::guard_band_written(&buffer.spec.name, before, distance);
        return Err(Failed::reason(reason));
    }
    Ok(())
}

/// No input was changed.
pub(super) fn inputs_unchanged(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    let tools = executor.tools()?;
    for buffer in buffers.iter().filter(|buffer| buffer.spec.role == Role::Input) {
        if let Some(at) = buffer.first_change(tools).map_err(environment)? {
            let reason = Reason::input_modified(&buffer.spec.name, Some(buffer.element_of(at)));
            return Err(Failed::reason(reason));
        }
    }
    Ok(())
}
