//! Detects contracts that a kernel can pass without doing the work, by means of the expected
//! outputs for several sets of inputs.

use super::arranged;
use super::expectations::{Expectations, Expected};
use crate::child::device::executor::Executor;
use crate::child::failure::{JobResult, environment};
use crate::child::memory::buffers::JobBuffer;
use crate::child::memory::content::is_random;
use crate::child::timing::inputs::{Shown, present};
use crate::protocol::Checks;
use warpgauge_contract::Role;
use warpgauge_device::Staging;
use warpgauge_validate::{ArgumentContents, OutputFacts, Weakness};

/// Maximum size of an input that the lint reads, bytes.
const LINT_INPUT_BYTES: usize = 16 << 20;

/// Returns the ways in which a kernel could pass the contract without doing the work.
pub(crate) fn weaknesses(
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
    checks: &Checks,
    canonical: &[(usize, Expected)],
    others: &[(Shown, Expectations)],
) -> JobResult<Vec<Weakness>> {
    let mut shown = vec![Shown::CANONICAL];
    shown.extend(others.iter().map(|(shown, _)| *shown));
    let given = given(executor, buffers, &shown)?;
    let mut weaknesses = Vec::new();
    for (index, expected) in canonical {
        let Some(tolerance) = checks.tolerances.of(*index) else { continue };
        let found =
            others.iter().filter_map(|(_, all)| all.iter().find(|(other, _)| other == index));
        let mut seeds = vec![expected.bytes()];
        seeds.extend(found.map(|(_, expected)| expected.bytes()));
        let inputs = given.iter().map(|(input, contents)| {
            (input, contents.iter().map(Staging::bytes).collect::<Vec<_>>())
        });
        let inputs = inputs.collect::<Vec<_>>();
        let inputs = inputs.iter().map(|(input, seeds)| contents(buffers, **input, seeds));
        let mut inputs = inputs.collect::<Vec<_>>();
        // If rows may come in any order, a copy of an input may pass in another order.
        let sorted = arranged::in_expected_order(checks, buffers, *index, &inputs, &seeds);
        let sorted = sorted.iter().map(|(input, seeds)| (input, views(seeds))).collect::<Vec<_>>();
        inputs.extend(sorted.iter().map(|(input, seeds)| contents(buffers, **input, seeds)));
        weaknesses.extend(warpgauge_validate::lint_output(&OutputFacts {
            expected: contents(buffers, *index, &seeds),
            tolerance,
            seeded: buffers.iter().any(|b| is_random(&b.spec.content)),
            inputs: &inputs,
        }));
    }
    Ok(weaknesses)
}

fn views(seeds: &[Vec<u8>]) -> Vec<&[u8]> {
    seeds.iter().map(Vec::as_slice).collect()
}

/// Returns the kernel's inputs for each launch, without those above the size limit. Rewrites all
/// buffers.
pub(crate) fn given(
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
    shown: &[Shown],
) -> JobResult<Vec<(usize, Vec<Staging>)>> {
    let read = |b: &JobBuffer<'_>| b.spec.role != Role::Output && b.len() <= LINT_INPUT_BYTES;
    let read = buffers.iter().enumerate().filter(|(_, buffer)| read(buffer));
    let mut given = read.map(|(index, _)| (index, Vec::new())).collect::<Vec<_>>();
    for shown in shown {
        present(*shown, buffers, executor.tools()?)?;
        for (index, contents) in &mut given {
            let buffer = &buffers[*index];
            let mut content = executor.pinned.take(buffer.len());
            let copied = buffer.copy_to_host(content.bytes_mut(), &executor.stream);
            copied.map_err(environment)?;
            contents.push(content);
        }
    }
    Ok(given)
}

/// Returns a buffer's content for each seed, in the form that the lint takes.
pub(crate) fn contents<'a>(
    buffers: &'a [JobBuffer<'_>],
    index: usize,
    seeds: &'a [&'a [u8]],
) -> ArgumentContents<'a> {
    let spec = buffers[index].spec;
    ArgumentContents { name: &spec.name, dtype: spec.dtype, shape: &spec.shape, seeds }
}
