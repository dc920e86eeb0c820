//! The reference kernels: loaded at first use, and run on the inputs of a launch to compute the
//! expected outputs.

use super::arranged;
use super::expectations::{Expectations, Expected, ExpectedFile};
use super::oracle::unknown;
use crate::child::device::executor::Executor;
use crate::child::device::runners::RemoteProgram;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, restore_all, rewrite_inputs};
use crate::child::memory::residue::Residue;
use crate::child::memory::variables::Restored;
use crate::child::secret::Secret;
use crate::child::timing::inputs::{Shown, present};
use crate::protocol::{Blame, Checks, LentSets};
use warpgauge_contract::Role;
use warpgauge_device::Staging;
use warpgauge_validate::{Filling, Nudge};

/// The reference kernels of a job.
pub(crate) struct ReferenceKernels<'a> {
    checks: &'a Checks,
    residue: &'a mut Residue,
    /// Whether random inputs are drawn for each launch.
    redrawn: bool,
    /// Loaded references, in the plan's order.
    loaded: Vec<LoadedProgram>,
    /// Unfused forms of references. They stay loaded, because a process that unloads one program
    /// must unload all.
    unfused: Vec<LoadedProgram>,
    /// Random fillings of the references' outputs, new for each run. A candidate therefore cannot
    /// match elements that a reference never wrote.
    fillings: Secret,
}

impl<'a> ReferenceKernels<'a> {
    pub(crate) fn new(checks: &'a Checks, residue: &'a mut Residue, redrawn: bool) -> Self {
        Self {
            checks,
            residue,
            redrawn,
            loaded: Vec::new(),
            unfused: Vec::new(),
            fillings: Secret::new(),
        }
    }

    /// Hands the memory of all references over for scrubbing, and returns the residue.
    pub(crate) fn retire(self) -> &'a mut Residue {
        for reference in self.loaded.into_iter().chain(self.unfused) {
            reference.retire(self.residue);
        }
        self.residue
    }

    /// Loads all references before their first use.
    pub(crate) fn load_all(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
    ) -> JobResult<()> {
        for index in self.loaded.len()..self.checks.references.len() {
            self.load(executor, buffers, index)?;
        }
        Ok(())
    }

    /// Makes the process of a single reference compute the outputs of all prepared sets, and
    /// unloads the reference. Returns `false` if that is impossible.
    pub(crate) fn expect_sets(&mut self, executor: &Executor, sets: LentSets) -> JobResult<bool> {
        let ([reference], true) = (&*self.checks.references, self.checks.files.is_empty()) else {
            return Ok(false);
        };
        let Some(runners) = &executor.runners else { return Ok(false) };
        // The process cannot have the buffers open as well.
        for reference in self.loaded.drain(..) {
            reference.retire(self.residue);
        }
        let runner = runners.of(Blame::Reference)?;
        let how = (Blame::Reference, Restored::ConstantsToo);
        let mut program = RemoteProgram::load_on_sets(runner, &reference.launches, sets, how)?;
        program.expect().map_err(|error| Failed::device(error, Blame::Reference))?;
        Ok(true)
    }

    fn load(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<()> {
        let launches = &self.checks.references[index].launches;
        let how = (Blame::Reference, Restored::ConstantsToo);
        let arm = LoadedProgram::load(executor, launches, buffers, self.residue, how)?;
        self.loaded.push(arm);
        Ok(())
    }

    /// Returns the expected outputs for these inputs, by buffer.
    pub(crate) fn expect(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        shown: Shown,
    ) -> JobResult<Expectations> {
        let mut expected = Vec::new();
        for (buffer, path) in &self.checks.files {
            let spec = buffers.get(*buffer).map(|buffer| buffer.spec);
            let spec = spec.ok_or_else(|| unknown(*buffer))?;
            let expectation = ExpectedFile::open(path, spec, (self.checks, shown))?;
            expected.push((*buffer, Expected::File(expectation)));
        }
        let checks = self.checks;
        if !checks.references.is_empty() {
            present(shown, buffers, executor.tools()?)?;
        }
        for (index, reference) in checks.references.iter().enumerate() {
            let filling = self.run(executor, buffers, index)?;
            for &buffer in &reference.outputs {
                let content = computed(executor, buffers, buffer)?;
                expected.push((buffer, Expected::Computed(content, filling)));
            }
        }
        arranged::clear(executor, buffers, &checks.arrangements, (shown, &mut expected))?;
        Ok(expected)
    }

    /// Runs a reference on the buffers' inputs, and waits for it. Returns the filling that its
    /// outputs had.
    fn run(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<Filling> {
        let filling = self.queue(executor, buffers, index)?;
        let ended = executor.stream.synchronize();
        ended.map(|()| filling).map_err(|error| Failed::device(error, Blame::Reference))
    }

    /// Runs a reference on the buffers' inputs. With `nudge`, first moves inputs of one type by
    /// some units in the last place. Restores the inputs afterwards.
    pub(crate) fn run_nudged(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
        nudge: Option<Nudge>,
    ) -> JobResult<()> {
        for index in self.loaded.len()..=index {
            self.load(executor, buffers, index)?;
        }
        let tools = executor.tools()?;
        let blame = |error| Failed::device(error, Blame::Reference);
        let reference = &mut self.loaded[index];
        reference.forget(tools.stream).map_err(environment)?;
        restore_all(buffers, Filling::FIXED, tools).map_err(environment)?;
        for (place, buffer) in buffers.iter().enumerate() {
            let moved = nudge.filter(|nudge| {
                buffer.spec.role != Role::Output && buffer.spec.dtype == nudge.dtype
            });
            if let Some(Nudge { steps, seed, .. }) = moved {
                buffer.nudge(steps, seed ^ (place as u64) << 32, tools).map_err(environment)?;
            }
        }
        reference.launch(buffers, tools.stream).map_err(blame)?;
        rewrite_inputs(buffers, false, tools).map_err(blame)?;
        executor.stream.synchronize().map_err(blame)
    }

    /// Loads the unfused form of a reference. Returns whether the reference has one.
    pub(crate) fn load_unfused(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<bool> {
        let Some(launches) = &self.checks.references[index].unfused else { return Ok(false) };
        let how = (Blame::Reference, Restored::ConstantsToo);
        let program = LoadedProgram::load(executor, launches, buffers, self.residue, how)?;
        self.unfused.push(program);
        Ok(true)
    }

    /// Runs the unfused form that was loaded last. Restores the buffers' inputs afterwards.
    pub(crate) fn run_unfused(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
    ) -> JobResult<()> {
        let Some(program) = self.unfused.last_mut() else { return Ok(()) };
        launch(executor, program, buffers, Filling::FIXED)?;
        let rewritten = rewrite_inputs(buffers, false, executor.tools()?);
        let ended = rewritten.and_then(|()| executor.stream.synchronize());
        ended.map_err(|error| Failed::device(error, Blame::Reference))
    }

    /// Queues a reference on the buffers' inputs, and restores those inputs that a later launch
    /// reads. The candidate is not at fault if a reference changes an input.
    pub(crate) fn queue(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<Filling> {
        if index == self.loaded.len() {
            self.load(executor, buffers, index)?;
        }
        let filling = Filling::drawn(self.fillings.bits());
        launch(executor, &mut self.loaded[index], buffers, filling)?;
        // The next reference must read the same inputs.
        let redrawn = self.redrawn && index + 1 == self.checks.references.len();
        let rewritten = rewrite_inputs(buffers, redrawn, executor.tools()?);
        rewritten.map(|()| filling).map_err(|error| Failed::device(error, Blame::Reference))
    }
}

/// Queues a reference on the buffers' inputs, with filled outputs and with variables as after
/// loading.
pub(crate) fn launch(
    executor: &Executor,
    reference: &mut LoadedProgram,
    buffers: &[JobBuffer<'_>],
    filling: Filling,
) -> JobResult<()> {
    let tools = executor.tools()?;
    reference.forget(tools.stream).map_err(environment)?;
    restore_all(buffers, filling, tools).map_err(environment)?;
    let launched = reference.launch(buffers, tools.stream);
    launched.map_err(|error| Failed::device(error, Blame::Reference))
}

fn computed(executor: &Executor, buffers: &[JobBuffer<'_>], buffer: usize) -> JobResult<Staging> {
    let source = buffers.get(buffer).ok_or_else(|| unknown(buffer))?;
    let mut content = executor.pinned.take(source.len());
    source
        .copy_to_host(content.bytes_mut(), &executor.stream)
        .map_err(|error| Failed::device(error, Blame::Reference))?;
    Ok(content)
}
