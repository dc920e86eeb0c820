//! Runners of PyTorch code: processes that have a submission and nothing of the judge's.
//!
//! A [`Runners`] keeps one interpreter that has imported PyTorch, the zygote, which runs no stranger's
//! code. For each evaluation it forks; the fork gives up files, network, processes and system calls
//! ([`child`] and `python/confine.py`), and takes one submission. A process of ours takes a [`JudgeProcess`] to
//! judge it, where [`Judges`] hands over an order, runners and files. It holds a [`RunnerSession`] with each:
//! it says what is to be done next, and how long it took by its own clock. Between two calls the fork is
//! stopped, with all of its threads: the judge observes that in `/proc` before it reads or writes anything, and
//! again before the fork goes on.
//!
//! What a fork says is bounded and checked, and believed in nothing: the bytes of its tensors are read
//! from its memory, and inputs are written there, through [`SubmissionMemory`]. Results need no copy that the
//! submission would make while the clock runs, and none can be changed after it said that it is done.
//! Buffers on a GPU will be another `SubmissionMemory`.
//!
//! A fork has no compilers. What it wants compiled it asks for on a socket of its own, whose other end, the
//! [`BuildSocket`], stays with the server; what comes back is a file, which it loads itself (`python/building.py`).

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
pub use judge_process::{COMMAND as JUDGE, JudgeConnection, JudgeProcess};
pub use judges::{JudgeAnswer, JudgeError, JudgeResources, Judges};
pub use layout::{LayoutError, TensorAt};
pub use locked::{LockedCall, LockedOrder, RunnerGate};
pub use memory::{ProcessMemory, SubmissionMemory};
pub use runners::{RunnerPermit, RunnerUnavailable, Runners, RunnersConfig};
pub use session::{
    CallBatch, CompletedBatch, CompletedCall, LentTensor, NotBegun, RunnerSession, TensorLayout,
    TorchSubmission,
};
pub use wire::{
    DeviceTrace, EntryPoint, ExtensionSettings, GradientInput, LoadedModule, MAX_FRAME_BYTES,
    ModuleParameter, RunnerError, RunnerFault, Scalar, SuggestedInput, SuggestedInputs, Tree,
    TreeOf, Versions,
};

/// A stream of numbers that a submission cannot foresee.
#[derive(Default)]
pub struct Secret {
    state: std::hash::RandomState,
    next: u64,
}

impl Secret {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        use std::hash::BuildHasher;
        self.next += 1;
        // SipHash of a counter under a key that the operating system chose.
        self.state.hash_one(self.next)
    }

    /// A key of 256 bits.
    pub fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        key.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&self.bits().to_le_bytes()));
        key
    }
}
