//! What would pass without doing the work, by what is expected for two sets of inputs.

use super::buffers::{JobBuffer, is_random};
use super::job::{JobResult, environment};
use super::trials::{Shown, present};
use super::verify::{Expectations, Expected, Oracle};
use crate::contract::Role;
use crate::device::Staging;
use crate::validate::{self, Contents, OutputFacts, Weakness};
use crate::worker::protocol::Job;

/// Inputs above this size are not compared with outputs when the contract is linted, bytes.
const LINT_INPUT_BYTES: usize = 16 << 20;

impl Oracle<'_, '_> {
    /// What would pass without doing the work.
    pub(super) fn lint(
        &mut self,
        canonical: &[(usize, Expected)],
        second: Option<&(Shown, Expectations)>,
    ) -> JobResult<Vec<Weakness>> {
        let mut shown = vec![Shown::canonical(self.buffers)];
        shown.extend(second.map(|(shown, _)| shown.clone()));
        let given = self.given(&shown)?;
        let mut weaknesses = Vec::new();
        for (index, expected) in canonical {
            let Some(tolerance) = self.job.tolerance(*index) else { continue };
            let other = second.and_then(|(_, all)| all.iter().find(|(other, _)| other == index));
            let mut seeds = vec![expected.bytes()];
            seeds.extend(other.map(|(_, expected)| expected.bytes()));
            let inputs = given.iter().map(|(input, contents)| {
                (input, contents.iter().map(Staging::bytes).collect::<Vec<_>>())
            });
            let inputs = inputs.collect::<Vec<_>>();
            let inputs = inputs.iter().map(|(input, seeds)| contents(self.job, **input, seeds));
            weaknesses.extend(validate::lint_output(&OutputFacts {
                expected: contents(self.job, *index, &seeds),
                tolerance,
                seeded: self.buffers.iter().any(|b| is_random(&b.spec.content)),
                inputs: &inputs.collect::<Vec<_>>(),
            }));
        }
        Ok(weaknesses)
    }

    /// What the kernel was given in each launch shown, as far as it is not too much to look at.
    fn given(&mut self, shown: &[Shown]) -> JobResult<Vec<(usize, Vec<Staging>)>> {
        let read = |b: &JobBuffer<'_>| b.spec.role != Role::Output && b.len() <= LINT_INPUT_BYTES;
        let read = self.buffers.iter().enumerate().filter(|(_, buffer)| read(buffer));
        let mut given = read.map(|(index, _)| (index, Vec::new())).collect::<Vec<_>>();
        for shown in shown {
            present(shown, self.buffers, self.executor.tools()?)?;
            for (index, contents) in &mut given {
                let buffer = &self.buffers[*index];
                let mut content = self.executor.pinned.take(buffer.len());
                let copied = buffer.copy_window_to_host(content.bytes_mut(), &self.executor.stream);
                copied.map_err(environment)?;
                contents.push(content);
            }
        }
        Ok(given)
    }
}

/// A buffer's content for each seed, as the lint takes it.
fn contents<'a>(job: &'a Job, index: usize, seeds: &'a [&'a [u8]]) -> Contents<'a> {
    let spec = &job.buffers[index];
    Contents { name: &spec.name, dtype: spec.dtype, shape: &spec.shape, seeds }
}
