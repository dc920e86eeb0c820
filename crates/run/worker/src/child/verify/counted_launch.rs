//! The launch whose counts the emulator reports, and its outputs.
//!
//! If there are no times, the counts describe the kernel. A kernel can distinguish this launch,
//! because its blocks begin in the order of their indices. The launch is therefore judged like any
//! other: otherwise a kernel could omit work in it.

use super::arranged;
use super::expectations::{Expectations, elements};
use super::oracle::Oracle;
use super::outputs::{Outputs, copy_outputs};
use super::surroundings::nothing_else_touched;
use super::ties;
use super::verdicts::{Otherwise, OutputVerdicts};
use crate::child::device::executor::Executor;
use crate::child::failure::{JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::JobBuffer;
use crate::child::timing::batch::Rig;
use crate::child::timing::inputs::Shown;
use warpgauge_model::LaunchCounts;
use warpgauge_validate::{Filling, ReasonCode};

/// Outputs of a launch on the contract's inputs, and the filling that they had before it.
pub(crate) struct CountedOutputs {
    outputs: Outputs,
    filling: Filling,
}

/// Makes one launch for the emulator's counts before all other launches, and resets the kernel's
/// variables afterwards. `proven`: whether its outputs are judged together with those of the first
/// launch.
pub(crate) fn launch(
    rig: &mut Rig<'_, '_>,
    program: &mut LoadedProgram,
    oracle: &mut Oracle<'_, '_>,
    filling: Filling,
    (proven, sanitize): (bool, bool),
) -> JobResult<Option<LaunchCounts>> {
    let Some(emulator) = rig.executor.emulator else { return Ok(None) };
    rig.executor.arm_checks(false)?;
    let counts = rig.count_launch(program, emulator, filling)?;
    if proven {
        let Rig { executor, buffers, .. } = rig;
        let outputs = oracle.aside(executor, |_| {
            nothing_else_touched(executor, buffers)?;
            copy_outputs(executor, buffers)
        })?;
        oracle.counted = Some(CountedOutputs { outputs, filling });
    }
    program.forget(&rig.executor.stream).map_err(environment)?;
    rig.executor.arm_checks(sanitize)?;
    Ok(counts)
}

impl CountedOutputs {
    /// Checks that the counted launch is correct, given that the first is. `all` has the expected
    /// outputs of both.
    pub(crate) fn confirm(
        &self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        all: &Expectations,
        verdicts: &mut OutputVerdicts<'_>,
    ) -> JobResult<()> {
        let otherwise = Otherwise {
            launch: "the launch that was counted",
            code: ReasonCode::OutputVariesBetweenTrials,
            when: "correct when not counted, but in the launch that was counted: ".to_owned(),
        };
        let (arrangements, elements) = (verdicts.arrangements(), elements(all));
        let shown = Shown::CANONICAL;
        let outputs = (&self.outputs, &*elements);
        let arranged = arranged::arranged(executor, buffers, arrangements, shown, outputs)?;
        let outputs = arranged.as_ref().unwrap_or(&self.outputs);
        let left = (outputs, self.filling);
        let tied = ties::tied(executor, buffers, shown, (outputs, &elements))?;
        verdicts.confirm(buffers, left, (Shown::CANONICAL, all, &tied), &otherwise)
    }
}
