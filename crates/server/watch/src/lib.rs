//! Evaluates kernel files that appear in a folder or a git repository, and writes results as files.
//!
//! - [`Folder`] is the watched folder: its layout, its lock, and the journal that ensures that each
//!   file is evaluated once, even if the process is killed.
//! - [`watch`] finds complete files, evaluates them with an [`Evaluator`], and publishes results.
//! - [`KernelResult`] is the result for a file. It contains the fields of the reference executor,
//!   each either measured or `null` with a reason, and the complete report.
//! - [`mailbox`] evaluates kernels that are sent through a git repository.
//!
//! This crate does not evaluate kernels: an [`Evaluator`] does so, on this machine or on a server.

#![forbid(unsafe_code)]

mod comment;
mod evaluator;
mod folder;
mod intake;
mod journal;
mod kernel_file;
mod language;
pub mod mailbox;
mod news;
mod outcome;
mod watcher;
mod work;

pub use evaluator::{Evaluator, EvaluatorError, FileRejection, UNMET};
pub use folder::{Folder, FolderError};
pub use kernel_file::{
    Compile, ContractFrom, InferredContract, KernelRequest, infer_file, kernel_type, request_of,
    request_with,
};
pub use outcome::{KernelFileId, KernelResult};
pub use watcher::{WatchEvent, WatchOptions, WatchStop, watch};
