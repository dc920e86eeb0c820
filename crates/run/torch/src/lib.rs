//! Runners of PyTorch code: processes that hold a submission and none of the judge's data.
//!
//! # Files
//! - `runners.rs`: [`Runners`], all runners of a server and the limits on their number. `spares.rs`
//!   has runners that wait with a context; `alone.rs` has a runner under a tool.
//! - `zygote.rs`, `child.rs`: the interpreter that has imported PyTorch and forks, and its
//!   confinement.
//! - `fork.rs`, `threads.rs`, `memory.rs`: a fork from outside: its end, its threads, its memory.
//! - `judges.rs`, `judge_process.rs`: judge processes, from outside ([`Judges`]) and from inside
//!   ([`JudgeProcess`]).
//! - `session.rs`, `wire.rs`, `locked.rs`: the judge's questions to a runner ([`RunnerSession`]),
//!   their frames, and calls whose inputs stay encrypted until their turn.
//! - `function.rs`: calls of a caller's functions, which are not judged.
//! - `builds.rs`: build orders of a fork. A fork has no compilers; the other end of its
//!   [`BuildSocket`] stays with the server.
//! - `python/`: the fork's side.
//!
//! # Life of a runner
//! 1. The zygote, which runs no submitted code, forks.
//! 2. The fork gives up access to files, the network, other processes and system calls
//!    (`python/confine.py`), and takes one submission.
//! 3. The server hands its descriptors to a judge. The judge sends questions, and times the answers
//!    by its own clock.
//! 4. Between two calls all threads of the fork are stopped. The judge verifies this in `/proc`
//!    before it reads or writes the fork's memory ([`SubmissionMemory`]), and again before the fork
//!    continues. The submission therefore cannot change results after it has reported completion.
//! 5. The fork ends with its session, or at the session's deadline.
//!
//! The judge limits and checks everything that a fork sends, and trusts none of it.

#![forbid(unsafe_code)]

mod alone;
mod awaited;
mod builds;
pub mod child;
mod fork;
mod function;
mod judge_process;
mod judges;
mod layout;
mod locked;
mod memory;
mod printed;
mod queues;
mod runners;
mod session;
mod spares;
mod threads;
mod wire;
mod zygote;

pub use alone::Alone;
pub use builds::{BuildSocket, MAX_ORDER_BYTES, NotBuilt};
pub use fork::{Killer, Runner};
pub use function::{CallEnd, FunctionRunner, RunnerCall, RunnerOutput};
pub use judge_process::{COMMAND as JUDGE, DeviceNoise, JudgeConnection, JudgeProcess};
pub use judges::{JudgeAnswer, JudgeError, JudgeResources, Judges};
pub use layout::{LayoutError, TensorAt};
pub use locked::{LockedCall, LockedOrder, RunnerGate};
pub use memory::{ProcessMemory, SubmissionMemory};
pub use queues::Queues;
pub use runners::{RunnerPermit, RunnerUnavailable, Runners, RunnersConfig};
pub use session::{
    CallBatch, CompletedBatch, CompletedCall, GivenArgument, LentTensor, NotBegun, RunnerSession,
    TensorLayout, TorchSubmission,
};
pub use wire::{
    DeviceTrace, EntryPoint, ExtensionSettings, GradientInput, LoadedModule, MAX_FRAME_BYTES,
    ModuleParameter, RunnerError, RunnerFault, Scalar, SuggestedInput, SuggestedInputs, Tree,
    TreeOf, Versions,
};

/// A generator of numbers that a submission cannot predict.
#[derive(Default)]
pub struct Secret {
    state: std::hash::RandomState,
    next: u64,
}

impl Secret {
    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        use std::hash::BuildHasher;
        self.next += 1;
        // SipHash of a counter under a key from the operating system.
        self.state.hash_one(self.next)
    }

    /// Returns a random key of 256 bits.
    pub fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        key.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&self.bits().to_le_bytes()));
        key
    }
}
