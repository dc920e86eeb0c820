//! Detects changes in the folder through notifications of the operating system. If there are none,
//! the watcher polls the folder.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// File systems that do not report changes by other machines: NFS, SMB, CIFS, 9P, FUSE, Ceph, AFS
/// (`statfs(2)`).
const REMOTE: [i64; 8] =
    [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x6573_5546, 0x00C3_6400, 0x5346_414F];

/// A message to the watcher.
#[derive(Debug)]
pub(crate) enum Message {
    /// A file changed. `complete` is set if the writer closed the file or renamed it into the
    /// folder.
    File { name: OsString, complete: bool },
    /// A notification may have been lost, so the watcher should scan the whole folder.
    Look,
    /// The work on a file has ended.
    Done(crate::work::Done),
    /// The watcher should stop.
    Stop,
}

/// Returns whether notifications about a directory may be incomplete.
pub(crate) fn is_remote(directory: &Path) -> bool {
    // The sign of `f_type` depends on the platform.
    #[allow(clippy::useless_conversion)]
    rustix::fs::statfs(directory)
        .ok()
        .and_then(|found| i64::try_from(found.f_type).ok())
        .is_some_and(|kind| REMOTE.contains(&(kind & 0xFFFF_FFFF)))
}

/// Subscribes to notifications about a directory. The handler sets `missed` if the watcher's inbox
/// is full.
pub(crate) fn subscribe(
    directory: &Path,
    inbox: SyncSender<Message>,
    missed: Arc<AtomicBool>,
) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        for message in messages(event) {
            if let Err(TrySendError::Full(_)) = inbox.try_send(message) {
                missed.store(true, Ordering::Release);
            }
        }
    })?;
    watcher.watch(directory, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

fn messages(event: notify::Result<notify::Event>) -> Vec<Message> {
    let Ok(event) = event else { return vec![Message::Look] };
    if event.need_rescan() {
        return vec![Message::Look];
    }
    let complete = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To | RenameMode::Both)) => true,
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Data(_)) => false,
        // Removals are ignored. The next scan detects the removal of the directory itself.
        _ => return Vec::new(),
    };
    let name = event.paths.last().and_then(|path| path.file_name()).map(ToOwned::to_owned);
    name.map(|name| Message::File { name, complete }).into_iter().collect()
}
