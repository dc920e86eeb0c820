//! A mailbox: a branch of a git repository that contains `kernels/` and `results/`.
//!
//! [`serve`] fetches the branch and evaluates its kernels in a local folder, each once even if the
//! process is killed. It pushes results and removals in one commit. It publishes a result only
//! while the branch contains the unchanged kernel, because otherwise no sender waits for the
//! result. So after a failed push, a rewritten history or a kill, repeating the same steps leads to
//! the same state. [`send`] submits a kernel.

mod git;
mod sender;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

pub use git::GitError;
pub use sender::{MailboxMessage, send};

use self::git::{Blob, Branch, Change};
use crate::evaluator::{Evaluator, FileRejection};
use crate::folder::{Folder, FolderError, failed};
use crate::intake::{MAX_BINARY_BYTES, MAX_SOURCE_BYTES};
use crate::journal::write_whole;
use crate::kernel_file::{CONTRACTS, kernel_type};
use crate::outcome::{KernelFileId, KernelResult};
use crate::watcher::{WatchEvent, WatchOptions, WatchStop, watch};
use warpgauge_contract::CodeForm;

/// Maximum number of kernels whose results one commit contains, so that the first sender does not
/// wait for many others.
const BATCH: usize = 16;

/// Maximum pause between retries after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Reason why a mailbox cannot be served, or a kernel cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum MailboxError {
    /// An error of git or the repository.
    #[error(transparent)]
    Git(#[from] GitError),
    /// An error of the folder in which kernels are evaluated.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// No result arrived in time.
    #[error(
        "no result arrived within {0} s; the kernel is still in the branch, and the watcher that serves it may still answer"
    )]
    Late(u64),
    #[error("interrupted")]
    Interrupted,
}

/// Address of a mailbox.
#[derive(Debug, Clone)]
pub struct MailboxAddress<'a> {
    /// URL of the repository, in any form that git accepts.
    pub url: &'a str,
    pub branch: &'a str,
    /// Directory in the repository that contains `kernels/` and `results/`; `None` means its root.
    pub within: Option<&'a str>,
    /// Local directory for the files of this mailbox.
    pub directory: &'a Path,
}

impl MailboxAddress<'_> {
    /// Returns the path of a directory or file of the mailbox within the repository.
    fn path(&self, of: &str) -> String {
        self.within.map_or_else(|| of.to_owned(), |within| format!("{within}/{of}"))
    }
}

/// A result that is in the folder and not published yet.
struct Waiting {
    /// Name of the result's file.
    name: String,
    content: Vec<u8>,
    /// blake3 hash of the kernel that the result belongs to; empty if the kernel was not read.
    hash: String,
}

/// A result that can be published.
struct Ready {
    kernel: Blob,
    /// Name of the file in `results/`.
    name: String,
    content: Vec<u8>,
}

/// Serves a mailbox until it is stopped or, with [`WatchOptions::once`], until the mailbox is
/// empty. Failures of the remote repository are passed to `told`, and retried.
///
/// # Errors
/// Another process on this machine serves the mailbox, or an operation on the local directory
/// fails.
pub fn serve(
    address: &MailboxAddress<'_>,
    options: &WatchOptions,
    evaluator: &dyn Evaluator,
    stop: &WatchStop,
    told: &(dyn Fn(WatchEvent<'_>) + Sync),
) -> Result<(), MailboxError> {
    let mut spool = Folder::open(&address.directory.join("folder"))?;
    if options.suffixed_results {
        spool.suffix_results();
    }
    let branch = Branch::open(&address.directory.join("objects"), address.url, address.branch)?;
    let every = options.poll.unwrap_or(Duration::from_secs(10));
    let why = format!("it is the branch {} of a repository", address.branch);
    told(WatchEvent::Watching { polling: Some((every, why)) });
    let mailbox = Mailbox {
        spool: &spool,
        branch: &branch,
        address,
        absence_told: Cell::new(false),
        options,
        evaluator,
        stop,
        told,
    };
    let mut pause = every;
    while !stop.is_stopped() {
        match mailbox.turn() {
            Ok(more) => {
                told(WatchEvent::Looked);
                pause = every;
                if more {
                    continue;
                }
                if options.once {
                    break;
                }
            }
            Err(MailboxError::Git(error)) => {
                let text = error.to_string();
                told(WatchEvent::Waiting { file: "the mailbox", why: &text });
                pause = (pause * 2).min(LONGEST_PAUSE.max(every));
            }
            Err(other) => return Err(other),
        }
        if stop.wait(pause) {
            break;
        }
    }
    Ok(())
}

struct Mailbox<'m> {
    spool: &'m Folder,
    branch: &'m Branch,
    address: &'m MailboxAddress<'m>,
    /// Whether the missing branch has been reported.
    absence_told: Cell<bool>,
    options: &'m WatchOptions,
    evaluator: &'m dyn Evaluator,
    stop: &'m WatchStop,
    told: &'m (dyn Fn(WatchEvent<'_>) + Sync),
}

impl Mailbox<'_> {
    /// Performs one cycle: fetches, evaluates and publishes. Returns whether there were kernels.
    fn turn(&self) -> Result<bool, MailboxError> {
        let Some(commit) = self.branch.fetch()? else {
            if !self.absence_told.replace(true) {
                let name = self.address.branch;
                let why = format!("the repository has no branch `{name}`; `send` creates it");
                (self.told)(WatchEvent::Waiting { file: "the mailbox", why: &why });
            }
            return Ok(false);
        };
        self.absence_told.set(false);
        let files = self.branch.files(&commit, &self.address.path("kernels"))?;
        let kernels = files.iter().filter(|blob| is_kernel(blob)).take(BATCH);
        let mut refused = Vec::new();
        for kernel in kernels.clone() {
            match self.deliver(kernel, &files)? {
                Ok(()) => {}
                Err(refusal) => refused.push(refusal),
            }
        }
        if kernels.clone().next().is_none() {
            // These results belong to kernels that were withdrawn, or were published before a
            // process ended.
            self.clear(&|_| true)?;
            return Ok(false);
        }
        let options =
            WatchOptions { once: true, settle: Duration::ZERO, poll: None, ..self.options.clone() };
        let told = |news: WatchEvent<'_>| {
            if !matches!(news, WatchEvent::Watching { .. }) {
                (self.told)(news);
            }
        };
        watch(self.spool, &options, self.evaluator, self.stop, &told)?;
        self.publish(refused)?;
        Ok(true)
    }

    /// Copies a kernel with its contract to the folder, unless its result already exists.
    fn deliver(&self, kernel: &Blob, files: &[Blob]) -> Result<Result<(), Ready>, MailboxError> {
        let limit = match kernel_type(&kernel.name) {
            Some(kind) if kind.code_form() == CodeForm::Binary => MAX_BINARY_BYTES,
            _ => MAX_SOURCE_BYTES,
        };
        let refusal = if !kernel.mode.starts_with("100") {
            Some(FileRejection::new(
                "symbolic_link",
                "this is a symbolic link or a submodule: send a plain file",
            ))
        } else if kernel.bytes > limit {
            let message =
                format!("the file has {} bytes; at most {limit} are accepted", kernel.bytes);
            Some(FileRejection::new("file_too_large", message))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let subject = KernelFileId { file: &kernel.name, blake3: None };
            let outcome = KernelResult::refused(&subject, None, &refusal);
            let content = outcome.written(self.options.suffixed_results).unwrap_or_default();
            let path = self.spool.result_of(OsStr::new(&kernel.name));
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Ok(Err(Ready { kernel: kernel.clone(), name, content }));
        }
        let content = self.branch.content(kernel)?;
        let hash = blake3::hash(&content).to_hex().to_string();
        if self.results()?.get(&kernel.name).is_some_and(|waiting| waiting.hash == hash) {
            return Ok(Ok(()));
        }
        for contract in contracts(kernel, files) {
            if contract.bytes <= MAX_BINARY_BYTES && contract.mode.starts_with("100") {
                self.put(&contract.name, &self.branch.content(contract)?)?;
            }
        }
        self.put(&kernel.name, &content)?;
        Ok(Ok(()))
    }

    /// Writes a file to the folder. An existing file is not replaced, because it may be in
    /// evaluation.
    fn put(&self, name: &str, content: &[u8]) -> Result<(), MailboxError> {
        let path = self.spool.kernels().join(name);
        if fs::read(&path).is_ok_and(|there| there == content) {
            return Ok(());
        }
        Ok(write_whole(&self.spool.own("ready", "letter"), &path, content, false)?)
    }

    /// Returns the results in the folder, by the name of the kernel file.
    fn results(&self) -> Result<BTreeMap<String, Waiting>, MailboxError> {
        #[derive(serde::Deserialize)]
        struct About {
            kernel_file: String,
            #[serde(default)]
            kernel_file_blake3: Option<String>,
        }
        let directory = self.spool.results();
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(&directory).map_err(failed("list", &directory))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let content = fs::read(entry.path()).map_err(failed("read", &entry.path()))?;
            if let Ok(about) = serde_json::from_slice::<About>(&content) {
                let hash = about.kernel_file_blake3.unwrap_or_default();
                found.insert(about.kernel_file, Waiting { name, content, hash });
            }
        }
        Ok(found)
    }

    /// Pushes one commit with results and removals on top of the current state of the branch.
    fn publish(&self, refused: Vec<Ready>) -> Result<(), MailboxError> {
        let mut pause = Duration::from_millis(100);
        loop {
            let Some(commit) = self.branch.fetch()? else { return Ok(()) };
            let files = self.branch.files(&commit, &self.address.path("kernels"))?;
            let ready = self.ready(&files, &refused)?;
            if ready.is_empty() {
                return Ok(());
            }
            let mut changes: Vec<Change> = Vec::new();
            for Ready { kernel, name, content } in &ready {
                let path = |of: String| self.address.path(&of);
                changes.push((path(format!("results/{name}")), Some(content.clone())));
                changes.push((path(format!("kernels/{}", kernel.name)), None));
                let beside = contracts(kernel, &files)
                    .map(|blob| (path(format!("kernels/{}", blob.name)), None));
                changes.extend(beside);
            }
            let names = ready.iter().map(|ready| ready.kernel.name.as_str()).collect::<Vec<_>>();
            let message = format!("results of {}", names.join(", "));
            match self.branch.push(Some(&commit), &changes, &message) {
                Ok(()) => {
                    let published = |name: &str| ready.iter().any(|ready| ready.name == name);
                    return self.clear(&published);
                }
                // Other processes push too. If the next fetch returns the same commit, the push
                // failed for another reason, and is not retried.
                Err(error) => {
                    if self.branch.fetch()?.as_ref() == Some(&commit) || self.stop.wait(pause) {
                        return Err(error.into());
                    }
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
            }
        }
    }

    /// Returns the results whose kernels have not changed in the branch.
    fn ready(&self, files: &[Blob], refused: &[Ready]) -> Result<Vec<Ready>, MailboxError> {
        let mut results = self.results()?;
        let mut ready = Vec::new();
        for kernel in files.iter().filter(|blob| is_kernel(blob)) {
            if let Some(one) = refused.iter().find(|one| one.kernel == *kernel) {
                let (name, content) = (one.name.clone(), one.content.clone());
                ready.push(Ready { kernel: kernel.clone(), name, content });
            } else if let Some(Waiting { name, content, hash }) = results.remove(&kernel.name) {
                let now = blake3::hash(&self.branch.content(kernel)?);
                // If a result has no hash, the watcher rejected its kernel without reading it.
                if hash.is_empty() || now.to_hex().as_str() == hash {
                    ready.push(Ready { kernel: kernel.clone(), name, content });
                }
            }
        }
        Ok(ready)
    }

    /// Removes results from the folder.
    fn clear(&self, which: &dyn Fn(&str) -> bool) -> Result<(), MailboxError> {
        for Waiting { name, .. } in self.results()?.into_values() {
            if which(&name) {
                let path = self.spool.results().join(name);
                fs::remove_file(&path).map_err(failed("remove", &path))?;
            }
        }
        Ok(())
    }
}

fn is_kernel(blob: &Blob) -> bool {
    kernel_type(&blob.name).is_some() && blob.mode != "040000" && !blob.name.contains('/')
}

/// Returns the contract files next to a kernel.
fn contracts<'f>(kernel: &'f Blob, files: &'f [Blob]) -> impl Iterator<Item = &'f Blob> {
    let stem = kernel.name.rsplit_once('.').map_or(kernel.name.as_str(), |(stem, _)| stem);
    files.iter().filter(move |blob| {
        CONTRACTS.iter().any(|(ending, _)| {
            blob.name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.')) == Some(*ending)
        })
    })
}
