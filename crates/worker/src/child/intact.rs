//! After a launch: nothing written that should not be.

use super::buffers::{Change, JobBuffer, Tools};
use super::executor::Executor;
use super::job::{Failed, JobResult, environment};
use warpgauge_contract::Role;
use warpgauge_device::inspection::{Finding, Findings, Inspection};
use warpgauge_validate::Reason;

/// What is looked at beside the outputs: queued, and judged once the findings were read.
pub(super) struct Surroundings {
    /// Buffers, and what was found before and after each.
    bands: Vec<(usize, [Finding; 2])>,
    inputs: Vec<(usize, Change)>,
}

/// Nothing was written before or after a buffer, nor to an input.
pub(super) fn nothing_else_touched(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
) -> JobResult<()> {
    look(executor, buffers, |tools, inspection| Surroundings::queue(buffers, tools, inspection))
}

/// Nothing was written before or after a buffer.
pub(super) fn guards_intact(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    look(executor, buffers, |_, inspection| {
        Ok(Surroundings { bands: queue_bands(buffers, inspection)?, inputs: Vec::new() })
    })
}

fn look(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
    queue: impl FnOnce(Tools<'_>, &mut Inspection<'_>) -> JobResult<Surroundings>,
) -> JobResult<()> {
    let tools = executor.tools()?;
    let mut inspection = tools.support.inspect(tools.stream).map_err(environment)?;
    let surroundings = queue(tools, &mut inspection)?;
    surroundings.judge(buffers, &inspection.read().map_err(environment)?)
}

impl Surroundings {
    /// Queues looking at guard bands and inputs.
    pub(super) fn queue(
        buffers: &[JobBuffer<'_>],
        tools: Tools<'_>,
        inspection: &mut Inspection<'_>,
    ) -> JobResult<Self> {
        let bands = queue_bands(buffers, inspection)?;
        let mut inputs = Vec::new();
        for (index, buffer) in buffers.iter().enumerate() {
            if buffer.spec.role == Role::Input {
                let change = buffer.look_for_change(tools, inspection).map_err(environment)?;
                inputs.push((index, change));
            }
        }
        Ok(Self { bands, inputs })
    }

    /// What the looks found speaks against the candidate.
    pub(super) fn judge(self, buffers: &[JobBuffer<'_>], findings: &Findings) -> JobResult<()> {
        judge_bands(&self.bands, buffers, findings)?;
        judge_inputs(self.inputs, buffers, findings)
    }
}

fn queue_bands(
    buffers: &[JobBuffer<'_>],
    inspection: &mut Inspection<'_>,
) -> JobResult<Vec<(usize, [Finding; 2])>> {
    let guarded = buffers.iter().enumerate();
    let guarded = guarded.filter_map(|(index, buffer)| {
        let bands = buffer.guard_bands()?;
        Some((index, bands, buffer.guard_byte()))
    });
    let looks = guarded.map(|(index, bands, value)| {
        let found = inspection.first_other(bands, value).map_err(environment)?;
        Ok((index, found))
    });
    looks.collect()
}

fn judge_bands(
    bands: &[(usize, [Finding; 2])],
    buffers: &[JobBuffer<'_>],
    findings: &Findings,
) -> JobResult<()> {
    for &(index, found) in bands {
        let buffer = &buffers[index];
        let (before, distance) = match found.map(|finding| findings.of(finding)) {
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

fn judge_inputs(
    inputs: Vec<(usize, Change)>,
    buffers: &[JobBuffer<'_>],
    findings: &Findings,
) -> JobResult<()> {
    for (index, change) in inputs {
        let buffer = &buffers[index];
        if let Some(at) = buffer.changed_at(change, findings).map_err(environment)? {
            let reason = Reason::input_modified(&buffer.spec.name, Some(buffer.element_of(at)));
            return Err(Failed::reason(reason));
        }
    }
    Ok(())
}
