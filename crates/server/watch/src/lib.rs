//! Kernels handed in as files of a folder, and results that come back as files; the same through a git
//! repository.
//!
//! - [`Folder`] is the folder: its layout, its lock, and the journal by which each file is evaluated once,
//!   whatever ends the process.
//! - [`watch`] finds files that are complete, has them evaluated by an [`Evaluator`], and publishes
//!   results.
//! - [`KernelResult`] is a result: the fields of the reference executor, measured or `null` with a reason, and
//!   the whole report.
//! - [`mailbox`] is the repository.
//!
//! How a kernel is evaluated is not known here: here or at a server, that is the [`Evaluator`]'s matter.

#![forbid(unsafe_code)]

mod comment;
mod evaluator;
mod folder;
mod intake;
mod journal;
mod kernel_file;
pub mod mailbox;
mod news;
mod outcome;
mod watcher;
mod work;

pub use evaluator::{Evaluator, EvaluatorError, FileRejection, UNMET};
pub use folder::{Folder, FolderError};
pub use kernel_file::{
    Compile, ContractFrom, InferredContract, KernelRequest, infer_file, kernel_type, request_of,
};
pub use outcome::{KernelFileId, KernelResult};
pub use watcher::{WatchEvent, WatchOptions, WatchStop, watch};
