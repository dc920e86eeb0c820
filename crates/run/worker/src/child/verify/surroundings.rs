//! Checks after a launch that no memory except its outputs was written.

use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::memory::buffers::JobBuffer;
use crate::child::memory::input_changes::Change;
use crate::child::memory::tools::Tools;
use warpgauge_contract::Role;
use warpgauge_device::RangeContent;
use warpgauge_device::inspection::{FindingHandle, Findings, Inspection};
use warpgauge_validate::Reason;

/// Queued inspections of guard bands and inputs. They are judged after the findings have been read.
pub(crate) struct Surroundings {
    /// Indices of the buffers, with the findings in the guard bands before and after each.
    bands: Vec<(usize, [FindingHandle; 2])>,
    inputs: Vec<(usize, Change)>,
}

/// Checks that no guard band and no input was written.
pub(crate) fn nothing_else_touched(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
) -> JobResult<()> {
    look(executor, buffers, |tools, inspection| Surroundings::queue(buffers, tools, inspection))
}

/// Checks that no guard band was written.
pub(crate) fn guards_intact(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    look(executor, buffers, |_, inspection| Surroundings::of_bands(buffers, inspection))
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
    /// Queues the inspection of guard bands and inputs.
    pub(crate) fn queue(
        buffers: &[JobBuffer<'_>],
        tools: Tools<'_>,
        inspection: &mut Inspection<'_>,
    ) -> JobResult<Self> {
        let mut held = Vec::new();
        let bands = bands(buffers, &mut held);
        let mut inputs = Vec::new();
        for (index, buffer) in buffers.iter().enumerate() {
            if buffer.spec.role != Role::Input {
                continue;
            }
            let change = match buffer.held(tools.kind) {
                Some(content) => {
                    held.push(content);
                    Looked::Here(held.len() - 1)
                }
                None => Looked::There(buffer.look_for_change(tools).map_err(environment)?),
            };
            inputs.push((index, change));
        }
        Self::look(inspection, &held, bands, inputs)
    }

    /// Queues the inspection of guard bands alone.
    fn of_bands(buffers: &[JobBuffer<'_>], inspection: &mut Inspection<'_>) -> JobResult<Self> {
        let mut held = Vec::new();
        let bands = bands(buffers, &mut held);
        Self::look(inspection, &held, bands, Vec::new())
    }

    /// Queues one inspection of all ranges.
    fn look(
        inspection: &mut Inspection<'_>,
        held: &[RangeContent],
        bands: Vec<(usize, [usize; 2])>,
        inputs: Vec<(usize, Looked)>,
    ) -> JobResult<Self> {
        let found = inspection.first_others(held).map_err(environment)?;
        let bands = bands.into_iter().map(|(index, band)| (index, band.map(|band| found[band])));
        let inputs = inputs.into_iter().map(|(index, change)| match change {
            Looked::Here(place) => (index, Change::Looked(found[place])),
            Looked::There(change) => (index, change),
        });
        Ok(Self { bands: bands.collect(), inputs: inputs.collect() })
    }

    /// Returns a failure if the findings show a forbidden write.
    pub(crate) fn judge(self, buffers: &[JobBuffer<'_>], findings: &Findings) -> JobResult<()> {
        judge_bands(&self.bands, buffers, findings)?;
        judge_inputs(self.inputs, buffers, findings)
    }
}

/// The inspection that checks an input: the common one, or a separate one.
enum Looked {
    /// The common inspection checks the input, as the range with this index.
    Here(usize),
    /// A separate check of this input.
    There(Change),
}

/// Adds the guard bands to `held`. Returns the indices of the buffers with the indices of their
/// guard bands.
fn bands(buffers: &[JobBuffer<'_>], held: &mut Vec<RangeContent>) -> Vec<(usize, [usize; 2])> {
    let guarded = buffers.iter().enumerate();
    let guarded = guarded.filter_map(|(index, buffer)| Some((index, buffer.guard_bands()?)));
    let places = guarded.map(|(index, bands)| {
        held.extend(bands);
        (index, [held.len() - 2, held.len() - 1])
    });
    places.collect()
}

fn judge_bands(
    bands: &[(usize, [FindingHandle; 2])],
    buffers: &[JobBuffer<'_>],
    findings: &Findings,
) -> JobResult<()> {
    for &(index, found) in bands {
        let buffer = &buffers[index];
        let (before, distance) = match found.map(|finding| findings.of(finding)) {
            [_, Some(at)] => (false, at),
            [Some(at), _] => (true, buffer.front() as u64 - at),
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
