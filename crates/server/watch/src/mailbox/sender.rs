//! Sends a kernel to a mailbox, and waits for its result. The main function is [`send`].

use std::time::{Duration, Instant};

use serde_json::Value;

use super::git::{Branch, Change, GitError};
use super::{MailboxAddress, MailboxError};
use crate::watcher::WatchStop;

/// First pause between attempts to push, and between polls for the result.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Maximum number of attempts to push to a branch that other processes keep changing.
const MAX_PUSHES: u32 = 20;

/// A kernel to send.
#[derive(Debug, Clone)]
pub struct MailboxMessage {
    /// Name that is unique in the branch, without extension.
    pub stem: String,
    /// Extensions and contents of the files to send: the contract, if any, and the kernel.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Sends a kernel, waits for its result, and removes the result from the branch.
///
/// # Errors
/// The branch cannot be read or written, or no result arrives within `patience`.
pub fn send(
    address: &MailboxAddress<'_>,
    letter: &MailboxMessage,
    patience: Duration,
    stop: &WatchStop,
    sent: &dyn Fn(),
) -> Result<Value, MailboxError> {
    let branch = Branch::open(address.directory, address.url, address.branch)?;
    let put = letter.files.iter().map(|(ending, content)| {
        (address.path(&format!("kernels/{}.{ending}", letter.stem)), Some(content.clone()))
    });
    put_on_top(&branch, &put.collect::<Vec<_>>(), &format!("evaluate {}", letter.stem), stop)?;
    sent();
    // The watcher decides which of these names the result gets.
    let names = ["", "_result"].map(|suffix| format!("{}{suffix}.json", letter.stem));
    let (until, mut pause) = (Instant::now() + patience, FIRST_PAUSE);
    let (name, result) = loop {
        // The remote repository may be unreachable for a while.
        let found = branch.fetch().and_then(|commit| match commit {
            Some(commit) => {
                let files = branch.files(&commit, &address.path("results"))?;
                let blob = files
                    .iter()
                    .find(|blob| names.contains(&blob.name) && blob.mode.starts_with("100"));
                let named = blob.map(|blob| Ok((blob.name.clone(), branch.content(blob)?)));
                named.transpose()
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
        message: format!("results/{name} is not a valid result: {error}"),
    })?;
    let removal = [(address.path(&format!("results/{name}")), None)];
    put_on_top(&branch, &removal, &format!("fetched {}", letter.stem), stop)?;
    Ok(value)
}

/// Pushes changes on top of the current state of the branch.
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
        // If the branch has not changed, a retry would fail as well.
        if pushes >= MAX_PUSHES || branch.fetch()? == commit {
            return Err(error.into());
        }
        if stop.wait(pause) {
            return Err(MailboxError::Interrupted);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
