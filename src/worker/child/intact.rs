//! After the launches: nothing written that should not be.

use super::buffers::JobBuffer;
use super::executor::Executor;
use super::job::{Failed, JobResult, environment};
use crate::contract::Role;
use crate::worker::protocol::Blame;

/// Nothing was written before or after a buffer.
pub(super) fn guards_intact(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    let tools = executor.tools()?;
    let guarded = buffers.iter().filter_map(|buffer| Some((buffer, buffer.guard_bands()?)));
    let (owners, bands): (Vec<_>, Vec<_>) = guarded.unzip();
    let Some(value) = owners.first().map(|buffer| buffer.guard_byte()) else { return Ok(()) };
    let bands = bands.concat();
    let found = tools.support.first_other(&bands, value, tools.stream).map_err(environment)?;
    for (pair, buffer) in found.chunks(2).zip(owners) {
        let name = &buffer.spec.name;
        let place = match *pair {
            [_, Some(at)] => format!("{at} bytes after the end of `{name}`"),
            [Some(at), _] => {
                let distance = buffer.guard_bands().map_or(0, |[before, _]| before.1 as u64) - at;
                format!("{distance} bytes before the start of `{name}`")
            }
            _ => continue,
        };
        let text = format!(
            "the kernel wrote outside its buffers, first {place}; check its bounds against the \
             shapes of the contract, or run it with `sanitize: true` on the emulator"
        );
        return Err(Failed::new("guard_band_written", text, Blame::Candidate));
    }
    Ok(())
}

/// No input was changed.
pub(super) fn inputs_unchanged(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    let tools = executor.tools()?;
    for buffer in buffers.iter().filter(|buffer| buffer.spec.role == Role::Input) {
        if let Some(at) = buffer.first_change(tools).map_err(environment)? {
            let place = buffer.element_of(at);
            let place =
                place.map_or(String::new(), |element| format!(", first at element {element}"));
            let text = format!(
                "the kernel changed its input `{}`{place}; an argument that a kernel writes needs \
                 role `output` or `inout`",
                buffer.spec.name
            );
            return Err(Failed::new("input_modified", text, Blame::Candidate));
        }
    }
    Ok(())
}
