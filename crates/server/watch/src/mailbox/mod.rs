//! A folder behind a git repository: a branch with `kernels/` and `results/`.
//!
//! [`serve`] fetches, has the kernels evaluated in a folder of its own (so that each is evaluated once,
//! whatever ends the process), and pushes results and removals in one commit. A result is published as
//! long as its kernel, unchanged, is in the branch; if it is not, nobody waits for it. So whatever becomes
//! of pushes, of histories and of this process, the same steps made again lead to the same end.
//! [`send`] is the other end.

mod git;
mod sender;

use std::cell::Cell;
use std::collections::BTreeMap;
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

/// Kernels that one commit answers, at most: whoever sent the first does not wait for a thousand others.
const BATCH: usize = 16;

/// Longest pause after something went wrong.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why a mailbox cannot be served, or something cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum MailboxError {
    /// Git, or the repository.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The folder in which kernels are evaluated.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// No result came.
    #[error(
        "no result came within {0} s; the kernel is still in the branch, and whoever serves it may answer yet"
    )]
    Late(u64),
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// Where letters are.
#[derive(Debug, Clone)]
pub struct MailboxAddress<'a> {
    /// The repository, as git names it.
    pub url: &'a str,
    /// The branch.
    pub branch: &'a str,
    /// A directory of our own for this mailbox.
    pub directory: &'a Path,
}

/// A result that waits in the folder.
struct Waiting {
    /// Its file's name.
    name: String,
    content: Vec<u8>,
    /// blake3 of the kernel that it is of; empty if that was not read.
    hash: String,
}

/// A result that can be published.
struct Ready {
    kernel: Blob,
    /// Its file's name in `results/`.
    name: String,
    content: Vec<u8>,
}

/// Serves a mailbox until it is told to stop, or, with [`WatchOptions::once`], until nothing is in it. What
/// goes wrong with the remote is told, and tried again.
///
/// # Errors
/// Where the mailbox is served by another process here, or our own directory is in trouble.
pub fn serve(
    address: &MailboxAddress<'_>,
    options: &WatchOptions,
    evaluator: &dyn Evaluator,
    stop: &WatchStop,
    told: &(dyn Fn(WatchEvent<'_>) + Sync),
) -> Result<(), MailboxError> {
    let spool = Folder::open(&address.directory.join("folder"))?;
    let branch = Branch::open(&address.directory.join("objects"), address.url, address.branch)?;
    let every = options.poll.unwrap_or(Duration::from_secs(10));
    let why = format!("it is the branch {} of a repository", address.branch);
    told(WatchEvent::Watching { polling: Some((every, why)) });
    let mailbox = Mailbox {
        spool: &spool,
        branch: &branch,
        name: address.branch,
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
    /// The branch's name, and whether it was told that there is none.
    name: &'m str,
    absence_told: Cell<bool>,
    options: &'m WatchOptions,
    evaluator: &'m dyn Evaluator,
    stop: &'m WatchStop,
    told: &'m (dyn Fn(WatchEvent<'_>) + Sync),
}

impl Mailbox<'_> {
    /// Fetches, evaluates and publishes; whether there was something.
    fn turn(&self) -> Result<bool, MailboxError> {
        let Some(commit) = self.branch.fetch()? else {
            if !self.absence_told.replace(true) {
                let why = format!("the repository has no branch `{}`; `send` makes it", self.name);
                (self.told)(WatchEvent::Waiting { file: "the mailbox", why: &why });
            }
            return Ok(false);
        };
        self.absence_told.set(false);
        let files = self.branch.files(&commit, "kernels")?;
        let kernels = files.iter().filter(|blob| is_kernel(blob)).take(BATCH);
        let mut refused = Vec::new();
        for kernel in kernels.clone() {
            match self.deliver(kernel, &files)? {
                Ok(()) => {}
                Err(refusal) => refused.push(refusal),
            }
        }
        if kernels.clone().next().is_none() {
            // Results of kernels that were withdrawn, or were published before the end of a process.
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

    /// Puts a kernel with its contract into the folder, unless its result is there.
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
            let message = format!(
                "the file has {} bytes, and {limit} is the most that is taken",
                kernel.bytes
            );
            Some(FileRejection::new("file_too_large", message))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let subject = KernelFileId { file: &kernel.name, blake3: None };
            let outcome = KernelResult::refused(&subject, None, &refusal);
            let content = serde_json::to_vec_pretty(&outcome).unwrap_or_default();
            let stem = kernel.name.rsplit_once('.').map_or(kernel.name.as_str(), |(stem, _)| stem);
            return Ok(Err(Ready {
                kernel: kernel.clone(),
                name: format!("{stem}.json"),
                content,
            }));
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

    /// Writes a file into the folder, unless it is there already: it may be under way.
    fn put(&self, name: &str, content: &[u8]) -> Result<(), MailboxError> {
        let path = self.spool.kernels().join(name);
        if fs::read(&path).is_ok_and(|there| there == content) {
            return Ok(());
        }
        Ok(write_whole(&self.spool.own("ready", "letter"), &path, content, false)?)
    }

    /// Results in the folder by kernel file: their names, contents, and the hashes of the kernels.
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

    /// One commit with results and removals, on top of whatever the branch is by now.
    fn publish(&self, refused: Vec<Ready>) -> Result<(), MailboxError> {
        let mut pause = Duration::from_millis(100);
        loop {
            let Some(commit) = self.branch.fetch()? else { return Ok(()) };
            let files = self.branch.files(&commit, "kernels")?;
            let ready = self.ready(&files, &refused)?;
            if ready.is_empty() {
                return Ok(());
            }
            let mut changes: Vec<Change> = Vec::new();
            for Ready { kernel, name, content } in &ready {
                changes.push((format!("results/{name}"), Some(content.clone())));
                changes.push((format!("kernels/{}", kernel.name), None));
                let beside =
                    contracts(kernel, &files).map(|blob| (format!("kernels/{}", blob.name), None));
                changes.extend(beside);
            }
            let names = ready.iter().map(|ready| ready.kernel.name.as_str()).collect::<Vec<_>>();
            let message = format!("results of {}", names.join(", "));
            match self.branch.push(Some(&commit), &changes, &message) {
                Ok(()) => {
                    let published = |name: &str| ready.iter().any(|ready| ready.name == name);
                    return self.clear(&published);
                }
                // Others write too. Whether it was they, the next fetch shows: what is refused for
                // another reason is so with the same commit.
                Err(error) => {
                    if self.branch.fetch()?.as_ref() == Some(&commit) || self.stop.wait(pause) {
                        return Err(error.into());
                    }
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
            }
        }
    }

    /// Results whose kernels are in the branch as they were evaluated.
    fn ready(&self, files: &[Blob], refused: &[Ready]) -> Result<Vec<Ready>, MailboxError> {
        let mut results = self.results()?;
        let mut ready = Vec::new();
        for kernel in files.iter().filter(|blob| is_kernel(blob)) {
            if let Some(one) = refused.iter().find(|one| one.kernel == *kernel) {
                let (name, content) = (one.name.clone(), one.content.clone());
                ready.push(Ready { kernel: kernel.clone(), name, content });
            } else if let Some(Waiting { name, content, hash }) = results.remove(&kernel.name) {
                let now = blake3::hash(&self.branch.content(kernel)?);
                // What the watcher refused without reading has no hash, and was no file here.
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

/// Contracts beside a kernel.
fn contracts<'f>(kernel: &'f Blob, files: &'f [Blob]) -> impl Iterator<Item = &'f Blob> {
    let stem = kernel.name.rsplit_once('.').map_or(kernel.name.as_str(), |(stem, _)| stem);
    files.iter().filter(move |blob| {
        CONTRACTS.iter().any(|(ending, _)| {
            blob.name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.')) == Some(*ending)
        })
    })
}
