//! The other end of a mailbox: sending a kernel, and waiting for its result.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::git::{Branch, Change, GitError};
use super::{MailboxAddress, MailboxError};
use crate::watcher::WatchStop;

/// Pauses between attempts to push, and between looks for the result.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often a push is tried on a branch that others write, and that moved each time.
const MAX_PUSHES: u32 = 20;

/// What is sent.
#[derive(Debug, Clone)]
pub struct MailboxMessage {
    /// Its name in the branch, without an ending: one that nothing else has.
    pub stem: String,
    /// Endings and contents: the contract, if there is one, and the kernel.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Sends a kernel, waits for its result, and removes that from the branch.
///
/// # Errors
/// Where the branch cannot be read or written, or no result comes within `patience`.
pub fn send(
    address: &MailboxAddress<'_>,
    letter: &MailboxMessage,
    patience: Duration,
    stop: &WatchStop,
    sent: &dyn Fn(),
) -> Result<Value, MailboxError> {
    let branch = Branch::open(address.directory, address.url, address.branch)?;
    let put = letter.files.iter().map(|(ending, content)| {
        (format!("kernels/{}.{ending}", letter.stem), Some(content.clone()))
    });
    put_on_top(&branch, &put.collect::<Vec<_>>(), &format!("evaluate {}", letter.stem), stop)?;
    sent();
    let name = format!("{}.json", letter.stem);
    let (until, mut pause) = (Instant::now() + patience, FIRST_PAUSE);
    let result = loop {
        // The remote may be away for a while.
        let found = branch.fetch().and_then(|commit| match commit {
            Some(commit) => {
                let files = branch.files(&commit, "results")?;
                let blob =
                    files.iter().find(|blob| blob.name == name && blob.mode.starts_with("100"));
                blob.map(|blob| branch.content(blob)).transpose()
            }
            None => Ok(None),
        });
        match found {
            Ok(Some(content)) => break content,
            Ok(None) => {}
            Err(error) if Instant::now() >= until => return Err(error.into()),
            Err(_) => {}
        }
        if Instant::now() >= until {
            return Err(MailboxError::Late(patience.as_secs()));
        }
        if stop.wait(pause) {
            return Err(MailboxError::Interrupted);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    };
    let value = serde_json::from_slice(&result).map_err(|error| GitError::Failed {
        command: "cat-file".to_owned(),
        message: format!("results/{name} is no result: {error}"),
    })?;
    let removal = [(format!("results/{name}"), None)];
    put_on_top(&branch, &removal, &format!("fetched {}", letter.stem), stop)?;
    Ok(value)
}

/// Pushes changes on top of whatever the branch is by then.
fn put_on_top(
    branch: &Branch,
    changes: &[Change],
    message: &str,
    stop: &WatchStop,
) -> Result<(), MailboxError> {
    let mut pause = FIRST_PAUSE;
    let mut pushes = 0;
    loop {
        let commit = branch.fetch()?;
        let Err(error) = branch.push(commit.as_deref(), changes, message) else { return Ok(()) };
        pushes += 1;
        // What is refused although nobody was faster will be refused again.
        if pushes >= MAX_PUSHES || branch.fetch()? == commit {
            return Err(error.into());
        }
        if stop.wait(pause) {
            return Err(MailboxError::Interrupted);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
