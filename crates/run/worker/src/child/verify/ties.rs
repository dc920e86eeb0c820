//! Outputs of indices that differ from the expected ones only among equal keys; these are correct
//! as well.

use super::lint;
use super::outputs::Outputs;
use crate::child::device::executor::Executor;
use crate::child::failure::JobResult;
use crate::child::memory::buffers::JobBuffer;
use crate::child::timing::inputs::Shown;
use warpgauge_device::Staging;

/// Returns the buffers whose indices differ from the expected ones only among equal keys, after a
/// launch with these inputs. If the comparison needs the keys, this rewrites all buffers.
pub(crate) fn tied(
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
    shown: Shown,
    (actual, expected): (&Outputs, &[(usize, &[u8])]),
) -> JobResult<Vec<usize>> {
    let beside = |(index, expected): (usize, &[u8])| {
        let (_, actual) = actual.iter().find(|(other, _)| *other == index)?;
        let is_open = !buffers[index].spec.dtype.is_float() && actual.bytes() != expected;
        is_open.then(|| (index, actual.bytes()))
    };
    let open: Vec<(usize, &[u8])> = expected.iter().copied().filter_map(beside).collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let given = lint::given(executor, buffers, &[shown])?;
    let seeds = given.iter().map(|(_, shown)| shown.iter().map(Staging::bytes).collect());
    let seeds = seeds.collect::<Vec<Vec<_>>>();
    let inputs = given.iter().zip(&seeds);
    let inputs = inputs.map(|((input, _), seeds)| lint::contents(buffers, *input, seeds));
    let inputs = inputs.collect::<Vec<_>>();
    let is_tied = |(index, actual): &(usize, &[u8])| {
        let output = lint::contents(buffers, *index, &[]);
        let expected = expected.iter().find(|(other, _)| other == index);
        expected.is_some_and(|(_, expected)| {
            warpgauge_validate::tie(&output, (actual, expected), &inputs).is_some()
        })
    };
    Ok(open.iter().filter(|one| is_tied(one)).map(|(index, _)| *index).collect())
}
