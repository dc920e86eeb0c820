//! Outputs with more than one correct form. Parts that do not matter are cleared, and rows are
//! brought into the expected order.

use super::expectations::{Expectations, Expected};
use super::outputs::Outputs;
use crate::child::device::executor::Executor;
use crate::child::failure::{JobResult, environment};
use crate::child::memory::buffers::JobBuffer;
use crate::child::timing::inputs::{Shown, present};
use crate::protocol::Checks;
use warpgauge_device::Staging;
use warpgauge_validate::{ArgumentContents, Arrangement, Content, Rearranged, RowOrder};

/// Contents of the tensors that arrangements read, for one launch.
struct Read {
    contents: Vec<(usize, Vec<u8>)>,
}

impl Read {
    /// Collects expected outputs, and copies inputs from the device. If inputs must be copied, this
    /// rewrites all buffers first.
    fn new(
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        arrangements: &[Arrangement],
        (shown, expected): (Shown, &[(usize, &[u8])]),
    ) -> JobResult<Self> {
        let mut contents: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut presented = false;
        for buffer in arrangements.iter().flat_map(Arrangement::reads) {
            if contents.iter().any(|(known, _)| *known == buffer) || buffer >= buffers.len() {
                continue;
            }
            if let Some((_, bytes)) = expected.iter().find(|(index, _)| *index == buffer) {
                contents.push((buffer, bytes.to_vec()));
                continue;
            }
            if !presented {
                present(shown, buffers, executor.tools()?)?;
                presented = true;
            }
            let mut bytes = vec![0; buffers[buffer].len()];
            let copied = buffers[buffer].copy_to_host(&mut bytes, &executor.stream);
            copied.map_err(environment)?;
            contents.push((buffer, bytes));
        }
        Ok(Self { contents })
    }

    fn of<'a>(&'a self, buffers: &'a [JobBuffer<'_>], buffer: usize) -> Option<Content<'a>> {
        let (_, bytes) = self.contents.iter().find(|(index, _)| *index == buffer)?;
        let spec = buffers[buffer].spec;
        Some(Content { dtype: spec.dtype, shape: &spec.shape, bytes })
    }
}

/// Clears the parts of expected outputs that do not matter. May rewrite all buffers.
pub(crate) fn clear(
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
    arrangements: &[Arrangement],
    (shown, expected): (Shown, &mut Expectations),
) -> JobResult<()> {
    if arrangements.is_empty() {
        return Ok(());
    }
    let elements = super::expectations::elements(expected);
    let read = Read::new(executor, buffers, arrangements, (shown, &elements))?;
    for arrangement in arrangements {
        let mut group = contents_of(arrangement, |buffer| {
            expected.iter().find(|(index, _)| *index == buffer).map(|(_, one)| one.bytes())
        });
        let mut views = views(buffers, &mut group);
        arrangement.clear(&|buffer| read.of(buffers, buffer), &mut views);
        for (buffer, bytes) in group {
            let Some((_, one)) = expected.iter_mut().find(|(index, _)| *index == buffer) else {
                continue;
            };
            match one {
                Expected::Computed(content, _) => content.bytes_mut().copy_from_slice(&bytes),
                Expected::File(_) | Expected::Cleared(_) => *one = Expected::Cleared(bytes),
            }
        }
    }
    Ok(())
}

/// Returns a launch's outputs in the order of the expected outputs; `None` if there are no
/// arrangements. `expected` must be cleared already. May rewrite all buffers.
pub(crate) fn arranged(
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
    arrangements: &[Arrangement],
    shown: Shown,
    (outputs, expected): (&Outputs, &[(usize, &[u8])]),
) -> JobResult<Option<Outputs>> {
    if arrangements.is_empty() {
        return Ok(None);
    }
    let read = Read::new(executor, buffers, arrangements, (shown, expected))?;
    let copy = |(buffer, content): &(usize, Staging)| {
        let mut copy = executor.pinned.take(content.bytes().len());
        copy.bytes_mut().copy_from_slice(content.bytes());
        (*buffer, copy)
    };
    let mut all: Outputs = outputs.iter().map(copy).collect();
    for arrangement in arrangements {
        let mut group = contents_of(arrangement, |buffer| {
            all.iter().find(|(index, _)| *index == buffer).map(|(_, content)| content.bytes())
        });
        let wanted = |buffer: &usize| expected.iter().find(|(index, _)| index == buffer);
        let wanted: Vec<&[u8]> = group
            .iter()
            .filter_map(|(buffer, _)| wanted(buffer))
            .map(|(_, bytes)| *bytes)
            .collect();
        let mut views = views(buffers, &mut group);
        let contents = |buffer| read.of(buffers, buffer);
        arrangement.clear(&contents, &mut views);
        arrangement.arrange(&contents, &mut views, &wanted);
        for (buffer, bytes) in group {
            if let Some((_, content)) = all.iter_mut().find(|(index, _)| *index == buffer) {
                content.bytes_mut().copy_from_slice(&bytes);
            }
        }
    }
    Ok(Some(all))
}

/// Copies the available contents of an arrangement's outputs.
fn contents_of<'a>(
    arrangement: &Arrangement,
    content: impl Fn(usize) -> Option<&'a [u8]>,
) -> Vec<(usize, Vec<u8>)> {
    let all = arrangement.outputs();
    all.filter_map(|buffer| Some((buffer, content(buffer)?.to_vec()))).collect()
}

fn views<'a>(
    buffers: &'a [JobBuffer<'_>],
    group: &'a mut [(usize, Vec<u8>)],
) -> Vec<Rearranged<'a>> {
    let view = |(buffer, bytes): &'a mut (usize, Vec<u8>)| {
        let spec = buffers[*buffer].spec;
        Rearranged { dtype: spec.dtype, shape: &spec.shape, bytes }
    };
    group.iter_mut().map(view).collect()
}

/// For an output whose rows may come in any order, returns the inputs of the same size and type.
/// The rows of each are brought into the order of the expected content, for each seed.
pub(crate) fn in_expected_order(
    checks: &Checks,
    buffers: &[JobBuffer<'_>],
    output: usize,
    inputs: &[ArgumentContents<'_>],
    expected: &[&[u8]],
) -> Vec<(usize, Vec<Vec<u8>>)> {
    let free = |one: &&Arrangement| {
        one.order != RowOrder::Given && one.outputs().any(|buffer| buffer == output)
    };
    if !checks.arrangements.iter().any(|one| free(&one)) {
        return Vec::new();
    }
    let alone =
        Arrangement { output, along: Vec::new(), order: RowOrder::Any, ..Arrangement::NONE };
    let spec = buffers[output].spec;
    let sorted = |input: &ArgumentContents<'_>| {
        let place = buffers.iter().position(|buffer| buffer.spec.name == input.name)?;
        let pairs = || input.seeds.iter().zip(expected);
        let alike =
            input.dtype == spec.dtype && pairs().all(|(own, other)| own.len() == other.len());
        alike.then(|| {
            let in_order = |(own, other): (&&[u8], &&[u8])| {
                let mut bytes = own.to_vec();
                let view = Rearranged { dtype: spec.dtype, shape: &spec.shape, bytes: &mut bytes };
                alone.arrange(&|_| None, &mut [view], &[other]);
                bytes
            };
            (place, pairs().map(in_order).collect())
        })
    };
    inputs.iter().filter_map(sorted).collect()
}
