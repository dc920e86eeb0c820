//! Runners of PyTorch code: processes that hold a submission and none of the judge's data.
//!
//! A [`Runners`] keeps one interpreter that has imported PyTorch, the zygote, which runs no submitted code.
//! The zygote forks for each evaluation. The fork gives up files, network, processes and system calls
//! ([`child`] and `python/confine.py`), and takes one submission. [`Judges`] sends an order, runners and
//! files to a judge process, which receives them as a [`JudgeProcess`]. The judge holds a [`RunnerSession`]
//! with each runner: it sends the questions, and times the answers by its own clock. Between two calls the
//! fork is stopped, with all of its threads. The judge verifies that in `/proc` before it reads or writes the
//! fork's memory, and again before the fork continues.
//!
//! The judge bounds and checks what a fork sends, and trusts none of it. It reads the bytes of tensors from
//! the fork's memory, and writes inputs there, through [`SubmissionMemory`]. So the submission need not copy
//! results while the clock runs, and cannot change them after it has reported completion. [`ProcessMemory`]
//! is the implementation for the CPU; buffers on a GPU have another one.
//!
//! A fork has no compilers. It sends build requests on a separate socket, whose other end, the
//! [`BuildSocket`], stays with the server. The answer is a file, which the fork loads itself
//! (`python/building.py`).

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

/// A stream of numbers that a submission cannot predict.
#[derive(Default)]
pub struct Secret {
    state: std::hash::RandomState,
    next: u64,
}

impl Secret {
    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        use std::hash::BuildHasher;
        self.next += 1;
        // SipHash of a counter under a key that the operating system chose.
        self.state.hash_one(self.next)
    }

    /// Returns a key of 256 bits.
    pub fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        key.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&self.bits().to_le_bytes()));
        key
    }
}
