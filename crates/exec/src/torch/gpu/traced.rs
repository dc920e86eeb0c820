//! What the device does during some calls, which are none of the timed ones: the runner's own process reads it,
//! and so it explains, and decides nothing.

use std::time::Duration;

use super::Gpu;
use super::arena::Whose;
use super::calls::Seeds;
use super::stage::Stage;
use crate::torch::judge::{Judge, Stop};
use warpgauge_torch::{Batch, Fault, Trace};

/// Calls that are traced.
const CALLS: u32 = 10;

/// How long they may take, with reading what was recorded.
const WITHIN: Duration = Duration::from_secs(20);

/// What was told.
pub(in crate::torch) struct Traced {
    pub trace: Trace,
    /// During so many calls.
    pub calls: u32,
    /// Product name of the device.
    pub hardware: String,
}

impl Judge {
    /// Has some calls traced. A runner that fails at it has been judged already.
    pub(super) fn trace(&mut self, stage: &mut Stage<'_>, seeds: Seeds) -> Result<(), Stop> {
        let calls = self.calls_at_once(stage).min(CALLS);
        let seeds = self.seeds_of(seeds, calls);
        let generator = self.drawn(stage, &seeds)?;
        let batch = Batch {
            arguments: &stage.arena.tree,
            stride: stage.arena.stride,
            count: calls,
            seed: generator,
            flush: 0,
        };
        let gpu: &Gpu = stage.gpu;
        let session = &mut self.candidate.session;
        let traced = session.prepare(&batch).and_then(|()| {
            let presented = stage.arena.present(gpu, Whose::Candidate, &seeds);
            match presented {
                Ok(_) => session.trace(WITHIN),
                Err(_) => Err(Fault::Forged("its inputs cannot be written".to_owned())),
            }
        });
        self.judged.traced = Some(match traced {
            Ok(trace) => Ok(Traced { trace, calls, hardware: gpu.info.name.clone() }),
            Err(fault) => Err(self.candidate.failed(fault).message),
        });
        Ok(())
    }
}
