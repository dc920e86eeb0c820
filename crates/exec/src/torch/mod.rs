//! Kernels in Python: run in a process that holds nothing but them, and judged from here.
//!
//! Each order is judged in a process of its own, to which [`process`] is the seam: the server starts it and
//! hands it the runners. The judge owns seeds, inputs, expected values and the clock. It writes the inputs
//! of a call into the memory of the runner once the call before has ended, reads what came of it from
//! there while the runner is stopped, and compares its own copy. References run in processes of their own.
//!
//! [`judge`] has the order of the calls, `player` one submission in its runner, `inputs` what it gets,
//! `values` what it gives and `backward` its gradients, `report` the answer; `expected` computes what
//! kernels for devices are expected to leave, and `mixed` has both kinds beside each other. `builder`
//! compiles what runners ask for. `counters` has Nsight Compute look at a call. `functions` runs what callers send to be run, and judges
//! nothing; `waiting` has those of its processes that wait for another call.

mod backward;
mod builder;
mod compare;
mod counters;
mod evaluate;
mod expected;
mod fault;
mod functions;
mod gpu;
mod held;
mod inputs;
mod judge;
mod mixed;
mod player;
pub mod process;
mod report;
mod runs;
mod timeline;
mod values;
mod waiting;

pub(super) use runs::{Side, Torch};
pub(super) use waiting::WaitingFunctions;

/// Most bytes of one tensor, and of all that one call returns.
const MOST_BYTES: u64 = 1 << 30;
